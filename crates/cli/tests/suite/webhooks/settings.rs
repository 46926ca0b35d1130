//! How webhooks are configured, and where they may send.

use tempfile::TempDir;

use crate::support::webhooks::{HookedWorld, SECRET, webhook};
use crate::support::{Launch, receiver::Manner, receiver::Receiver};

/// What the server says to this configuration.
fn refusal_of(config: &str) -> String {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("countersign.toml");
    std::fs::write(&path, config).unwrap();
    let data = dir.path().join("data");
    let said = Launch::serve(&data).args(["--config", path.to_str().unwrap()]).refusal();
    assert!(!data.exists(), "nothing is created before the configuration is understood");
    said
}

fn table(settings: &str) -> String {
    format!(
        "[[webhook]]\nname = \"ci\"\nurl = \"https://ci.example.org/x\"\nsecret = {SECRET:?}\n{settings}\n"
    )
}

#[test]
fn a_mistake_is_told_in_words_and_without_the_secret() {
    let other = |from: &str, to: &str| table("").replace(from, to);
    let secret_line = format!("secret = {SECRET:?}");
    for (config, words) in [
        (
            table("types = [\"complete\", \"signed\"]"),
            "`signed` is not a type of event: the types are registration, proposal",
        ),
        (table("types = []"), "`types` is empty"),
        (table("prefix = []"), "`prefix` is empty"),
        (table("prefix = [\"a/../b\"]"), "path traversal"),
        (table("key = \"svc-pub:x\""), "its key"),
        (table("timeout_seconds = 0"), "`timeout_seconds` must be from 1 to"),
        (table("retry_min_seconds = 99999999"), "`retry_min_seconds` must be from 1 to"),
        (table("retry_min_seconds = 9\nretry_max_seconds = 8"), "less than"),
        (table("secret_file = \"/x\""), "both `secret` and `secret_file`"),
        (table("colour = 1"), "colour"),
        ([table(""), table("")].concat(), "another one has the same name"),
        (other("\"ci\"", "\"CI/1\""), "small letters"),
        (other("name = \"ci\"\n", ""), "name"),
        (other("https://ci", "ftp://ci"), "does not begin with `https://`"),
        (other("https://ci", "https://alice:pw@ci"), "user information"),
        (other("https://ci.example.org/x", "https://ci.example.org/x#y"), "fragment"),
        (other("https://ci.example.org/x", "ci.example.org"), "is not a URL"),
        (other(&secret_line, ""), "it has no secret"),
        (other(&secret_line, "secret = \"t00-short\""), "shorter than 16 bytes"),
        (other(&secret_line, "secret_file = \"/nowhere/ci\""), "/nowhere/ci"),
        // The parser would quote the line.
        (other(&secret_line, "secret = 123454321"), "line 4: `secret` is not a string"),
        (other(&secret_line, "secret = \"s0-secret-that-it-has-no-end"), "line 4"),
        (other(&secret_line, "secrte = \"s0-secret-that-it-is-misspelt\""), "secrte"),
    ] {
        let said = refusal_of(&config);
        assert!(said.contains(words), "{config}: {said}");
        for secret in [SECRET, "t00-short", "123454321", "s0-secret", "alice:pw"] {
            assert!(!said.contains(secret), "{config}: {said}");
        }
    }
}

#[test]
fn nothing_is_sent_to_an_address_that_is_not_public_unless_it_is_allowed() {
    let receiver = Receiver::start_at("127.0.0.2:0".parse().unwrap(), Manner::Accept);
    let config = webhook("ci", &receiver, "");
    let flags = ["--file-server", "127.0.0.1:PORT", "--log-level", "debug"];
    let closed = format!("allow_fetch = [\"127.0.0.1:*\"]\n{config}");
    let mut hooked = HookedWorld::start_with(&closed, &flags);
    hooked.activate();
    hooked.world.server.get("/v1/ping").ok();
    let log = hooked.world.server.stop_and_read_log();
    assert!(log.contains("nothing of this webhook will be delivered"), "{log}");
    assert!(log.contains("--allow-fetch 127.0.0.2"), "{log}");
    assert_eq!(receiver.tries().len(), 0);

    hooked.configure(&format!("allow_fetch = [\"127.0.0.1:*\", \"127.0.0.2:*\"]\n{config}"));
    hooked.world.server.start_again();
    let deliveries = receiver.await_accepted(3);
    assert_eq!(deliveries.iter().map(|delivery| delivery.event()).collect::<Vec<_>>(), hooked.history());
}
