//! A world that remembers every step, so that each can be replayed.

use std::collections::BTreeSet;

use countersign_core::documents::{signed_request::SignedRequest, signers::SignersOrigin};
use countersign_core::rules::decide::{proposal::Proposal, register, update::update};
use countersign_core::rules::{auth::sign_request, snapshot::Change};
use countersign_core::values::{key::SecretKey, path::RepoPath, time::Timestamp};
use countersign_store::audit::replay::{CommitStep, Replay, Violation};
use countersign_testing::{
    INDEX, PENDING, Repo, Signers, World, alice, bob, carol, dave, key, path, published, release, signers,
};

/// One commit: the states around it, and what it says.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) before: Repo,
    pub(crate) after: Repo,
    pub(crate) message: String,
    pub(crate) time: Timestamp,
    pub(crate) is_first: bool,
}

#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) world: World,
    pub(crate) steps: Vec<Recorded>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let mut recorder = Self { world: World::new(), steps: Vec::new() };
        recorder.act(|world| {
            world.last = register::create(world.now);
            world.repo.apply(&world.last.clone());
        });
        recorder.steps[0].is_first = true;
        recorder
    }

    /// Does something that makes one commit.
    pub(crate) fn act<T>(&mut self, act: impl FnOnce(&mut World) -> T) -> T {
        let before = self.world.repo.clone();
        let done = act(&mut self.world);
        self.world.pass(7);
        self.steps.push(Recorded {
            before,
            after: self.world.repo.clone(),
            message: self.world.last.recorded_message(),
            time: self.world.now,
            is_first: false,
        });
        done
    }

    /// A proposal with a request that asks for it, and has a nonce of its own.
    pub(crate) fn proposal(&self, signers: &Signers, by: &SecretKey) -> Proposal {
        let proposal = self.world.proposal(signers, by);
        let nonce = format!("8c2b5d4e-6f70-4a81-92a3-{:012x}", self.steps.len());
        Proposal { request: Self::request(&proposal, by, self.world.now, &nonce), ..proposal }
    }

    /// A request that asks for this proposal.
    pub(crate) fn request(
        proposal: &Proposal,
        by: &SecretKey,
        dated: Timestamp,
        nonce: &str,
    ) -> SignedRequest {
        let key = by.public_key().to_base64();
        let url = &proposal.origin.url;
        let payload = format!(r#"{{"signers_file_url": "{url}", "public_key": "{key}"}}"#);
        SignedRequest {
            timestamp: dated.to_header(),
            signature: sign_request(by, dated, nonce, payload.as_bytes()),
            nonce: nonce.to_owned(),
            payload,
            public_key: by.public_key(),
        }
    }

    pub(crate) fn register(&mut self, signers: &Signers, by: &SecretKey) {
        let proposal = self.proposal(signers, by);
        self.act(|world| world.register_proposal(&proposal)).expect("a registration");
    }

    pub(crate) fn propose(&mut self, signers: &Signers, by: &SecretKey) {
        let proposal = self.proposal(signers, by);
        self.act(|world| {
            let (change, _) = update(&world.repo, &proposal, world.now).expect("an update");
            world.repo.apply(&change);
            world.last = change;
        });
    }

    /// States that a file of this content comes from the source.
    pub(crate) fn rebuild(&mut self, content: &str, by: &SecretKey) {
        let mut document = self.world.rebuild();
        document.files[0].digests = published("app.tar.gz", content).digests;
        // A test flips the byte in the middle of a file. There must be no time, which is not proven to the second.
        if by.public_key() == key(9).public_key() {
            document.source_commit = "0".repeat(64);
        }
        self.act(|world| world.state(&document, by)).expect("a rebuild");
    }

    pub(crate) fn sign(&mut self, file: &str, keys: &[&SecretKey]) {
        for key in keys {
            self.act(|world| world.sign(file, key)).expect("a signature");
        }
    }
}

pub(crate) fn replay() -> Replay {
    Replay::new(speaks_for)
}

pub(crate) fn speaks_for(_: &SignersOrigin, project: &RepoPath) -> Result<(), String> {
    if *project == path(countersign_testing::PROJECT) { Ok(()) } else { Err("it does not".to_owned()) }
}

impl Recorded {
    /// What it changed.
    pub(crate) fn change(&self) -> Change {
        let mut change = Change::new(self.message.clone());
        for path in self.touched() {
            match self.after.has(path.as_str()) {
                true => change.write(path.clone(), self.after.bytes(path.as_str())),
                false => change.delete(path),
            }
        }
        change
    }

    fn touched(&self) -> BTreeSet<RepoPath> {
        let names = self.before.names().into_iter().chain(self.after.names());
        let content = |repo: &Repo, name: &str| repo.has(name).then(|| repo.bytes(name));
        names.filter(|name| content(&self.before, name) != content(&self.after, name)).map(path).collect()
    }

    pub(crate) fn check(&self, replay: &mut Replay) -> Result<(), Vec<Violation>> {
        let touched = self.touched();
        let step = CommitStep {
            message: &self.message,
            time: self.time,
            touched: &touched,
            is_first: self.is_first,
        };
        replay.check(&self.before, &self.after, &step).map(|change| {
            assert_eq!(change.recorded_message(), self.message);
        })
    }

    /// What is wrong with it, seen by itself.
    #[track_caller]
    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.check(&mut replay()).expect_err("a violation")
    }
}

pub(crate) fn team(timestamp: &str) -> Signers {
    signers(timestamp)
        .artifact(2, [&alice(), &bob()])
        .master(1, [&dave()])
        .revocation(2, [&carol(), &key(5), &key(6)])
        .builders(2, [&key(8), &key(9)])
}

/// The first step of [`everything`], as a store asks for it.
pub(crate) fn first_of_everything(_: Timestamp) -> Change {
    everything().steps[0].change()
}

/// A history with every kind of commit.
pub(crate) fn everything() -> Recorder {
    let mut recorder = Recorder::new();
    let everyone = [&alice(), &bob(), &carol(), &dave(), &key(5), &key(6), &key(8), &key(9)];
    recorder.register(&team("2026-01-30T10:00:00Z"), &alice());
    recorder.sign(PENDING, &[&alice()]);
    recorder.act(World::drop_pending).expect("dropped");
    recorder.register(&team("2026-01-31T10:00:00Z"), &bob());
    recorder.world.pass(15 * 24 * 60 * 60);
    recorder.register(&team("2026-01-31T10:00:00Z"), &alice());
    recorder.sign(PENDING, &everyone);
    recorder.act(|world| world.add_release(&release("v1", "zero"), &alice())).expect("a release");
    recorder.act(|world| world.object(Some("not my build"), &carol())).expect("an objection");
    recorder
        .act(|world| world.object(Some("nor mine, and I have built it on two machines"), &bob()))
        .expect("an objection");
    recorder.act(|world| world.object(None, &carol())).expect("taken back");
    recorder.rebuild("other", &key(8));
    recorder.rebuild("zero", &key(9));
    recorder.rebuild("zero", &key(8));
    recorder.sign(INDEX, &[&bob()]);
    recorder.act(|world| world.withdraw(&alice())).expect("withdrawn");
    recorder.act(|world| world.add_release(&release("v1", "one"), &alice())).expect("a release");
    recorder.sign(INDEX, &[&alice()]);
    recorder.act(|world| world.add_release(&release("v1", "two"), &bob())).expect("a correction");
    recorder.rebuild("two", &key(8));
    recorder.sign(INDEX, &[&bob()]);
    let next = team("2026-02-01T10:00:00Z");
    recorder.propose(&next, &alice());
    recorder.sign(PENDING, &[&alice()]);
    recorder.propose(&team("2026-02-02T10:00:00Z"), &dave());
    recorder.sign(PENDING, &[&bob()]);
    recorder.propose(&next, &bob());
    recorder.sign(PENDING, &[&bob()]);
    recorder.sign(INDEX, &[&bob(), &alice()]);
    recorder.act(|world| world.object(Some("too late"), &dave())).expect("an objection");
    recorder.rebuild("other", &key(9));
    let document = recorder.world.revocation_document("a bad build");
    for revoker in [key(5), carol()] {
        let request = recorder.world.revoke_request(&document, &revoker);
        recorder.act(|world| world.revoke(&request)).expect("a revocation");
    }
    recorder
}
