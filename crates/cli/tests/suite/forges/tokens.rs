//! Tokens (D26): sent to the forge's API, and found nowhere else.

use std::path::Path;

use crate::support::fake_forge::{Asset, FakeForge, ForgeAnswer, ForgeWorld, Kind};
use crate::support::{SignersFile, TestServer, alice};

const TOKEN: &str = "ghp_s3cretS3cretS3cret0123456789abcdefgh";
const FILE: &str = "svc.signers.json";

fn assets() -> [Asset; 2] {
    [Asset::new("app.bin", "content"), Asset::new("b.bin", "more content")]
}

fn signers() -> ForgeAnswer {
    ForgeAnswer::bytes(SignersFile::of(1, &[&alice()]).bytes())
}

/// A token file beside the configuration, as an editor leaves it: with a newline.
fn token_entry(dir: &Path) -> String {
    let path = dir.join("token");
    std::fs::write(&path, format!("{TOKEN}\n")).unwrap();
    format!("token_file = {:?}\n", path.to_str().unwrap())
}

/// A repository that exists only for requests with the token: file, release and assets.
fn make_private(forge: &FakeForge) -> String {
    forge.set(&forge.file_target("acme/app", "main", FILE), signers().private(TOKEN));
    for (position, asset) in assets().into_iter().enumerate() {
        let api = format!("{}/repos/acme/app/releases/assets/{}", forge.kind.api_path(), position + 1);
        forge.set(&api, ForgeAnswer::bytes(asset.bytes).private(TOKEN));
    }
    let document = forge.document("acme/app", "v1.0", &assets());
    forge.set(&forge.release_target("acme/app", "v1.0"), ForgeAnswer::json(&document).private(TOKEN));
    forge.release_url("acme/app", "v1.0")
}

/// Nothing below this directory, and nothing in its repository's history, holds the token.
#[track_caller]
fn assert_not_stored(forge: &ForgeWorld) {
    fn scan(dir: &Path) {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                scan(&entry.path());
            } else if entry.file_type().unwrap().is_file() {
                let bytes = std::fs::read(entry.path()).unwrap();
                let found = bytes.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes());
                assert!(!found, "the token is in {}", entry.path().display());
            }
        }
    }
    scan(&forge.world.server.data_dir());
    let history = forge.world.git().run(&["log", "-p", "--all", "--format=fuller"]);
    assert!(!history.contains(TOKEN), "the token is in the history");
}

#[test]
fn a_private_repository_works_with_a_token_which_goes_nowhere_else() {
    let kind = Kind::GitHub;
    let without = ForgeWorld::start(kind);
    make_private(&without.forge);
    without.register(&without.forge.url(&kind.page_of("acme/app", "main", FILE))).error(500);

    let dir = tempfile::TempDir::new().unwrap();
    let flags = ["--allow-fetch", "127.0.0.1:*", "--log-level", "debug"];
    let mut forge = ForgeWorld::start_with(FakeForge::start(kind), &token_entry(dir.path()), "", &flags);
    let url = make_private(&forge.forge);
    forge.activate_published("acme/app");
    forge.register_release(&url).ok();
    let index = forge.world.read_json(&forge.forge.index_path("acme/app", "v1.0"));
    assert_eq!(index["published_files"].as_array().unwrap().len(), 2);
    let seen = forge.forge.seen();
    let downloads: Vec<_> = seen.iter().filter(|seen| seen.target.contains("/releases/assets/")).collect();
    assert_eq!(downloads.len(), 2);
    for seen in downloads {
        let accepted = seen.header("accept");
        assert_eq!(accepted, Some("application/octet-stream"), "GitHub would describe it");
    }

    // Neither an answer nor the log has it, even if the forge repeats it.
    let target = forge.forge.release_target("acme/app", "v1.0");
    let echo = format!("Bad credentials: {TOKEN}");
    let mut replies = Vec::new();
    for answer in [
        ForgeAnswer::status(401, &echo),
        ForgeAnswer::status(403, &echo).with_header("x-ratelimit-remaining", "0"),
        ForgeAnswer::status(500, &echo),
        ForgeAnswer::bytes(echo.clone()),
        ForgeAnswer::redirect(&format!("http://10.0.0.1/?token={TOKEN}")),
        ForgeAnswer::redirect(&forge.forge.url(&format!("/{TOKEN}"))),
    ] {
        forge.forge.set(&target, answer);
        replies.push(forge.register_release(&url));
    }
    make_private(&forge.forge);
    replies.push(forge.register_release(&url));
    assert_eq!(replies.last().unwrap().status, 409);
    for reply in &replies {
        assert!(!reply.text().contains(TOKEN), "{}", reply.text());
    }
    assert!(forge.forge.has_seen_token(TOKEN));
    assert_not_stored(&forge);
    let log = forge.world.server.stop_and_read_log();
    assert!(!log.contains(TOKEN), "{log}");
}

#[test]
fn a_forge_without_a_token_gets_none_of_another_forge() {
    let public = FakeForge::start(Kind::GitHub);
    let tables = format!("[[forge]]\nhost = \"{}\"\nkind = \"github\"\n", public.host());
    let dir = tempfile::TempDir::new().unwrap();
    let forge =
        ForgeWorld::start_with(FakeForge::start(Kind::GitHub), &token_entry(dir.path()), &tables, &[]);
    public.put_signers("acme/app", "main", FILE, &SignersFile::of(1, &[&alice()]));
    forge.register(&public.url(&Kind::GitHub.page_of("acme/app", "main", FILE))).ok();
    assert!(!public.has_seen_token(TOKEN), "{:?}", public.seen());
}

#[test]
fn a_token_file_that_is_missing_or_empty_stops_the_start() {
    let forge = FakeForge::start(Kind::GitHub);
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("token");
    let text = format!(
        "[[forge]]\nhost = \"{}\"\nkind = \"github\"\ntoken_file = {:?}\n",
        forge.host(),
        path.to_str().unwrap()
    );
    let server = TestServer::prepare(|launch| launch.configured(&text));
    let said = server.launch().refusal();
    assert!(said.contains("token"), "{said}");
    for content in ["", "\n", "two words\nand lines\n"] {
        std::fs::write(&path, content).unwrap();
        let said = server.launch().refusal();
        assert!(said.contains("token") && !said.contains("two words"), "{said}");
    }
}
