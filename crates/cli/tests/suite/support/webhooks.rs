//! A server with webhooks, and what they should say.

use std::path::PathBuf;

use super::{Person, SignersFile, World, receiver::Receiver, waiting::wait_until};

pub(crate) const SECRET: &str = "a secret of thirty-two characters";

/// A world whose server has a configuration file, which can be changed before the next start.
pub(crate) struct HookedWorld {
    pub(crate) world: World,
}

impl HookedWorld {
    /// In development mode, with this configuration.
    #[track_caller]
    pub(crate) fn start(config: &str) -> Self {
        Self::start_with(config, &["--dev"])
    }

    #[track_caller]
    pub(crate) fn start_with(config: &str, flags: &[&str]) -> Self {
        let world = World::start_with(|launch, files| {
            let port = files.port().to_string();
            let launch = launch.configured(config);
            flags.iter().fold(launch, |launch, flag| launch.arg(&flag.replace("PORT", &port)))
        });
        Self { world }
    }

    pub(crate) fn configure(&self, config: &str) {
        let file = self.world.server.data_dir().with_extension("toml");
        std::fs::write(file, config).expect("it can be written");
    }

    pub(crate) fn progress_file(&self, name: &str) -> PathBuf {
        self.world.server.data_dir().join("webhooks").join(name)
    }

    /// Waits until the server has noted that the webhook has everything. A receiver knows its own answer earlier.
    #[track_caller]
    pub(crate) fn await_recorded(&self, name: &str) {
        let newest = self.world.git().run(&["rev-parse", "main"]);
        let recorded = || std::fs::read_to_string(self.progress_file(name)).unwrap_or_default();
        wait_until("the webhook has everything", || recorded() == format!("{newest}\n"));
    }

    /// The project `acme/app` with alice as its only signer.
    #[track_caller]
    pub(crate) fn activate(&self) -> Person {
        let alice = Person::named("alice");
        self.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
        alice
    }

    /// Type, path and commit of all events, oldest first, as Git tells them.
    pub(crate) fn history(&self) -> Vec<[String; 3]> {
        let log = self.world.git().run(&["log", "--reverse", "--format=%H %s", "main"]);
        let lines = log.lines().filter_map(|line| line.split_once(' '));
        lines.flat_map(|(commit, title)| tell(commit, title)).collect()
    }
}

/// What a commit with this title made happen.
fn tell(commit: &str, title: &str) -> Vec<[String; 3]> {
    let event = |kind: &str, path: String| [kind.to_owned(), path, commit.to_owned()];
    let pending = |project: &str| format!("{project}/svc.signers.pending/svc.signers.json");
    let words: Vec<_> = title.split(' ').collect();
    let path = words.last().expect("a title has words").to_string();
    match words[0] {
        "Create" => vec![],
        "Register" => vec![event("registration", pending(&path))],
        "Activate" => vec![
            event("signature", pending(&path)),
            event("activated", format!("{path}/svc.signers/svc.signers.json")),
        ],
        "Add" => vec![event("release", path)],
        "Sign" if words[1] == "and" => vec![event("signature", path.clone()), event("complete", path)],
        "Sign" => vec![event("signature", path)],
        "Revoke" => vec![event("revoked", path)],
        "Drop" => vec![event("dropped", pending(&path))],
        _ => panic!("{title}"),
    }
}

/// A webhook with this name and these settings besides, that tries again each second.
pub(crate) fn webhook(name: &str, receiver: &Receiver, settings: &str) -> String {
    webhook_to(name, &receiver.url(), &format!("retry_max_seconds = 1\n{settings}"))
}

pub(crate) fn webhook_to(name: &str, url: &str, settings: &str) -> String {
    format!("[[webhook]]\nname = {name:?}\nurl = {url:?}\nsecret = {SECRET:?}\n{settings}\n")
}
