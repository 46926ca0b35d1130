//! A server with forges in its configuration, and the flows that tests of releases begin with.

use serde_json::json;

use super::forge::{FakeForge, Kind};
use crate::support::{Person, Reply, Request, SignersFile, World, alice};

pub(crate) struct ForgeWorld {
    pub(crate) world: World,
    pub(crate) forge: FakeForge,
}

impl ForgeWorld {
    /// Not in development mode; the forge's entry has nothing but host and kind.
    #[track_caller]
    pub(crate) fn start(kind: Kind) -> Self {
        Self::start_with(FakeForge::start(kind), "", "", &[])
    }

    /// `entry` follows in the forge's table, `tables` stands after it.
    #[track_caller]
    pub(crate) fn start_with(forge: FakeForge, entry: &str, tables: &str, flags: &[&str]) -> Self {
        let host = forge.host();
        let kind = forge.kind.name();
        let text = format!("[[forge]]\nhost = \"{host}\"\nkind = \"{kind}\"\n{entry}\n{tables}\n");
        let world = World::start_with(|launch, _| launch.configured(&text).args(flags.iter().copied()));
        Self { world, forge }
    }

    /// Begins with an active project `acme/app` of alice.
    #[track_caller]
    pub(crate) fn with_project(kind: Kind) -> Self {
        let this = Self::start(kind);
        this.activate("acme/app");
        this
    }

    pub(crate) fn register(&self, url: &str) -> Reply {
        self.world.register_url(&alice(), url)
    }

    /// Registers a repository from its branch `main`; alice, its only signer, signs.
    #[track_caller]
    pub(crate) fn activate(&self, repository: &str) {
        let file = SignersFile::of(1, &[&alice()]);
        self.forge.put_signers(repository, "main", "svc.signers.json", &file);
        self.activate_published(repository);
    }

    #[track_caller]
    pub(crate) fn activate_published(&self, repository: &str) {
        let page = self.forge.kind.page_of(repository, "main", "svc.signers.json");
        self.register(&self.forge.url(&page)).ok();
        let pending = format!("{}/svc.signers.pending/svc.signers.json", self.forge.project(repository));
        self.world.sign_all(&pending, &[&alice()]);
    }

    pub(crate) fn release_request(&self, person: &Person, url: &str) -> Request {
        person.sign(Request::post("/v1/assets", &json!({ "forge_release_url": url })))
    }

    pub(crate) fn register_release(&self, url: &str) -> Reply {
        self.world.server.send(&self.release_request(&alice(), url))
    }

    /// The release is refused as upstream's fault, with these words, and leaves nothing behind.
    #[track_caller]
    pub(crate) fn assert_fails(&self, url: &str, words: &[&str]) -> String {
        let before = self.world.git().commit_count();
        let reply = self.register_release(url);
        assert_eq!(reply.status, 500, "{}", reply.text());
        let message = reply.error(500);
        for word in words {
            assert!(message.contains(word), "`{word}` is missing in: {message}");
        }
        assert_eq!(self.world.git().commit_count(), before, "nothing is stored: {message}");
        let stored = self.world.git().paths();
        assert!(!stored.iter().any(|path| path.contains("/releases/")), "nothing is stored: {message}");
        message
    }
}
