//! A past with everything in it that a server does, made once by a real server.

use std::sync::OnceLock;

use countersign_core::{documents::said::RebuildsFile, values::time::Timestamp};
use serde_json::json;
use tempfile::TempDir;

use super::objections::{objection, objection_body, rebuild, veto_body, veto_document};
use super::people::{Person, now};
use super::rewriting::{Commit, export};
use super::signers::{SignersFile, days_ago, named_group};
use super::{git::Git, world::World, world::checksums};
use crate::support::person;

/// The history of a stopped server, as it can be rewritten.
pub(crate) struct Past {
    pub(crate) commits: Vec<Commit>,
    /// What stands before each project in a path: scheme, host and port.
    base: String,
    dir: TempDir,
}

/// The one history that all tests share.
pub(crate) fn past() -> &'static Past {
    static PAST: OnceLock<Past> = OnceLock::new();
    PAST.get_or_init(|| {
        let mut world = World::start();
        live(&mut world);
        let dir = TempDir::new().expect("a temporary directory");
        let copy = dir.path().join("past.git");
        let to = copy.to_str().expect("a plain name");
        world.git().run(&["clone", "--quiet", "--mirror", ".", to]);
        let base = world.files.mirror_path("/");
        let base = base.trim_end_matches('/').to_owned();
        Past { commits: export(&Git::at(&copy)), base, dir }
    })
}

impl Past {
    pub(crate) fn git(&self) -> Git {
        Git::at(self.dir.path().join("past.git"))
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }

    /// Where the first commit is whose message begins with this, and has `name` behind it.
    #[track_caller]
    pub(crate) fn find(&self, title: &str, name: &str) -> usize {
        self.nth(0, title, name)
    }

    #[track_caller]
    pub(crate) fn nth(&self, nth: usize, title: &str, name: &str) -> usize {
        let subject = format!("{title} {}", self.path(name));
        let found = self.commits.iter().enumerate().filter(|(_, commit)| commit.subject() == subject);
        let found: Vec<usize> = found.map(|(position, _)| position).collect();
        *found.get(nth).unwrap_or_else(|| panic!("no {nth} {subject:?} in {:#?}", self.subjects()))
    }

    /// What a file holds after the commit at this position.
    #[track_caller]
    pub(crate) fn content(&self, position: usize, path: &str) -> Vec<u8> {
        let written = self.commits[..=position].iter().rev().find_map(|commit| commit.files.get(path));
        let entry = written.and_then(Option::as_ref).unwrap_or_else(|| panic!("{path} is there"));
        entry.content.clone()
    }

    /// The commits up to one that breaks the rules, which comes last: when emil states what he got, what dora stated is
    /// gone.
    pub(crate) fn with_a_dropped_difference(&self) -> Vec<Commit> {
        let index = "acme/built/v1/svc.index.json";
        let at = self.find("Record a rebuild of", index);
        let path = format!("{}.rebuilds.json", self.path(index));
        let [before, mut after] = [at - 1, at]
            .map(|at| RebuildsFile::parse(&self.content(at, &path)).expect("what builders state"));
        before.entries.keys().for_each(|dora| drop(after.entries.remove(dora).expect("it is there")));
        let mut commits = self.commits[..=at].to_vec();
        commits[at].write(&path, after.write());
        commits
    }

    pub(crate) fn subjects(&self) -> Vec<&str> {
        self.commits.iter().map(Commit::subject).collect()
    }
}

/// Signers of `acme/app`: two of three sign, two admins, a master key, two of three revoke.
pub(crate) fn app_signers(dated: Timestamp) -> SignersFile {
    let [alice, bob, carol, dave, erin] = ["alice", "bob", "carol", "dave", "erin"].map(person);
    SignersFile::dated(dated)
        .artifact(2, &[&alice, &bob, &carol])
        .admin(2, &[&alice, &bob])
        .master(1, &[&dave])
        .revocation(2, &[&bob, &carol, &erin])
}

fn live(world: &mut World) {
    let [alice, bob, carol, dave, erin] = ["alice", "bob", "carol", "dave", "erin"].map(person);
    world.activate("acme/app", &app_signers(days_ago(10)), &[&alice, &bob, &carol, &dave, &erin]);
    let v1 = world.add_signed_release("acme/app/v1", &[&alice, &bob]);
    correct_release(world, "acme/app/v2", [&alice, &bob, &carol]);
    rotate_with_detours(world);
    world.sign_all(&world.index_path("acme/app/v2"), &[&carol, &alice]);

    let document = world.revocation_of(&v1, "key leaked");
    assert_eq!(world.revoke_with(&bob, &v1, &document).status, 202);
    assert_eq!(world.revoke_with(&carol, &v1, &document).status, 200);

    live_with_objections(world);
    live_with_one_key(world);
    live_with_builders(world);
    live_with_vetoes(world);
    live_with_a_dropped_registration(world);
    // What is under way at the end.
    let v3 = world.add_release(&alice, "acme/app/v3");
    world.sign(&alice, &v3).ok();
    world.add_signed_release("acme/app/v4", &[&bob, &carol]);
    let v4 = world.index_path("acme/app/v4");
    let document = world.revocation_of(&v4, "a bad build");
    assert_eq!(world.revoke_with(&erin, &v4, &document).status, 202);
    world.register(&alice, "acme/new", &SignersFile::of(1, &[&alice, &bob])).ok();
    world.sign(&alice, &world.pending_path("acme/new")).ok();
    world.server.stop();
}

fn correct_release(world: &World, dir: &str, [alice, bob, carol]: [&Person; 3]) {
    let index = world.add_release(alice, dir);
    world.sign(alice, &index).ok();
    let url = world.publish_checksums(dir, &checksums("corrected"));
    world.register_assets(bob, &[&url]).ok();
    world.sign(carol, &index).ok();
}

/// A proposal that is replaced by another one, comes back, and is activated while a release is collecting.
fn rotate_with_detours(world: &World) {
    let [alice, bob, frank] = ["alice", "bob", "frank"].map(person);
    let next = app_signers(days_ago(5)).artifact(1, &[&frank, &person("carol")]);
    let other = app_signers(days_ago(4));
    let pending = world.pending_path("acme/app");
    world.propose(&alice, "acme/app", &next).ok();
    world.sign(&alice, &pending).ok();
    world.propose(&bob, "acme/app", &other).ok();
    world.sign(&bob, &pending).ok();
    world.propose(&alice, "acme/app", &next).ok();
    world.sign_all(&pending, &[&bob, &frank]);
}

/// A release that is objected to and withdrawn, and another one to which an objection stands.
fn live_with_objections(world: &World) {
    let [alice, bob, erin] = ["alice", "bob", "erin"].map(person);
    let object = |by: &Person, path: &str, text| {
        let document = objection(world, path, text);
        world.post_as(by, "/v1/object", &objection_body(by, path, &document)).ok();
    };
    let v5 = world.add_release(&alice, "acme/app/v5");
    object(&erin, &v5, Some("not my build"));
    object(&erin, &v5, None);
    world.sign(&alice, &v5).ok();
    world.post_as(&alice, "/v1/withdraw", &json!({ "file_path": v5, "reason": "the wrong tag" })).ok();
    let v6 = world.add_release(&alice, "acme/app/v6");
    object(&bob, &v6, Some("not my build"));
}

/// A project of one key and a master, which rotates by the master key alone and revokes without a subject.
fn live_with_one_key(world: &World) {
    let [alice, dave] = ["alice", "dave"].map(person);
    let file = |dated| SignersFile::dated(dated).artifact(1, &[&alice]).master(1, &[&dave]);
    world.activate("acme/lib", &file(days_ago(9)), &[&alice, &dave]);
    let index = world.add_signed_release("acme/lib/v1", &[&alice]);
    world.propose(&alice, "acme/lib", &file(days_ago(3))).ok();
    world.sign_all(&world.pending_path("acme/lib"), &[&dave]);
    let document = json!({ "reason": "x", "timestamp": now().unix_seconds() }).to_string();
    world.revoke_with(&alice, &index, &document).ok();
}

/// A release that builders must reproduce: one gets something else, the other two the same, one of them when it is
/// complete.
fn live_with_builders(world: &World) {
    let [alice, dora, emil, frida] = ["alice", "dora", "emil", "frida"].map(person);
    let rebuilds = json!({"builders": named_group(2, &["dora", "emil", "frida"]), "required": true});
    let file = SignersFile::of(1, &[&alice]).with("rebuilds", rebuilds);
    world.activate("acme/built", &file, &[&alice, &dora, &emil, &frida]);
    let index = world.add_release(&alice, "acme/built/v1");
    rebuild(world, &dora, &index, "another archive", &[]).ok();
    rebuild(world, &emil, &index, "acme/built/v1", &[]).ok();
    world.sign(&alice, &index).ok();
    rebuild(world, &frida, &index, "acme/built/v1", &[]).ok();
}

/// Signers who wait, and two masters who veto them.
fn live_with_vetoes(world: &World) {
    let [alice, bob, dave] = ["alice", "bob", "dave"].map(person);
    let file = |days| {
        let file = SignersFile::dated(days_ago(days)).artifact(1, &[&alice]).admin(1, &[&alice]);
        file.master(2, &[&bob, &dave]).with("rotation_delay_hours", json!(48))
    };
    world.activate("acme/slow", &file(9), &[&alice, &bob, &dave]);
    world.propose(&alice, "acme/slow", &file(3)).ok();
    let pending = world.pending_path("acme/slow");
    world.sign(&alice, &pending).ok();
    let document = veto_document(world, "acme/slow", "not now", now());
    for (master, status) in [(&bob, 202), (&dave, 200)] {
        let reply = world.post_as(master, "/v1/veto", &veto_body(master, &pending, &document));
        assert_eq!(reply.status, status, "{}", reply.text());
    }
}

fn live_with_a_dropped_registration(world: &mut World) {
    let [alice, bob] = ["alice", "bob"].map(person);
    world.register(&alice, "acme/tool", &SignersFile::of(1, &[&alice, &bob])).ok();
    world.sign(&alice, &world.pending_path("acme/tool")).ok();
    world.server.stop();
    let dropped = world.server.admin(&["drop", &world.id("acme/tool")]).output();
    assert!(dropped.status.success(), "{}", String::from_utf8_lossy(&dropped.stderr));
    world.server.start_again();
    world.activate("acme/tool", &SignersFile::of(1, &[&bob]), &[&bob]);
}
