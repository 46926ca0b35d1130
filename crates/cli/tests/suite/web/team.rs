//! Three people with names, of whom any two release.

use serde_json::json;

use crate::support::{Person, SignersFile, World, signers::signer};

pub(super) fn named(person: &Person, name: &str) -> serde_json::Value {
    let mut entry = signer(&person.key());
    entry["name"] = json!(name);
    entry
}

pub(super) struct Team {
    pub(super) alice: Person,
    pub(super) bob: Person,
    pub(super) carol: Person,
}

impl Team {
    pub(super) fn new() -> Self {
        let [alice, bob, carol] = ["alice", "bob", "carol"].map(Person::named);
        Self { alice, bob, carol }
    }

    /// Any two of three release.
    pub(super) fn file(&self) -> SignersFile {
        let people = [named(&self.alice, "alice"), named(&self.bob, "bob"), named(&self.carol, "carol")];
        SignersFile::new().with("artifact_signers", json!([{ "threshold": 2, "signers": people }]))
    }

    pub(super) fn everyone(&self) -> [&Person; 3] {
        [&self.alice, &self.bob, &self.carol]
    }

    pub(super) fn world(&self) -> World {
        World::with_project(&self.file(), &self.everyone())
    }
}
