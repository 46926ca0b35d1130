//! Mirrors and `countersign fsck` repeat a history. Mirrors decide nothing by themselves, and `fsck` finds a wait or a
//! veto that someone has shortened.

use serde_json::Value;
use tempfile::TempDir;

use super::scene::{APP, DELAY, Scene, takeover, team};
use crate::support::mirrors::{await_same, url_of};
use crate::support::rewriting::{Commit, export, import};
use crate::support::{Launch, TestServer, fsck::fsck, machine_clock::MachineClock};

/// A rotation that waited and took effect, after a vetoed one.
struct WaitedPast {
    commits: Vec<Commit>,
    project: String,
}

impl WaitedPast {
    fn make() -> Option<Self> {
        let scene = Scene::new()?;
        let vetoed = takeover().with("servers", serde_json::json!(["https://evil.example.org"]));
        scene.agree(&vetoed, &["mallory"]);
        let document = scene.veto_document("not ours");
        scene.veto("mia", &document);
        scene.veto("max", &document).ok();
        scene.agree(&takeover(), &["mallory"]);
        scene.set(DELAY + 60);
        assert_eq!(scene.signers(), takeover().bytes());
        fsck(&scene.world.server.data_dir(), &[]).is_clean();
        Some(Self { commits: export(&scene.world.git()), project: scene.world.id(APP) })
    }

    fn last(&self, title: &str) -> usize {
        self.commits.iter().rposition(|commit| commit.subject().starts_with(title)).expect(title)
    }

    fn path(&self, below: &str) -> String {
        format!("{}/{below}", self.project)
    }

    fn json(&self, commit: usize, path: &str) -> Value {
        let entry = self.commits[commit].files[path].as_ref().expect("it is written");
        serde_json::from_slice(&entry.content).expect("JSON")
    }

    /// What is wrong is found in this commit, about this file, in these words.
    #[track_caller]
    fn assert_found(&self, at: usize, file: &str, words: &str, tamper: impl FnOnce(&mut Vec<Commit>)) {
        let mut commits = self.commits.clone();
        tamper(&mut commits);
        let dir = TempDir::new().expect("a temporary directory");
        let ids = import(dir.path(), &commits);
        fsck(dir.path(), &[]).finds(&ids[at], file, words);
    }
}

fn shifted(time: &str, seconds: i64) -> String {
    use countersign_core::values::time::Timestamp;
    let at = Timestamp::parse(time).expect("a time").unix_seconds();
    Timestamp::from_unix_seconds(at + seconds).expect("a time").to_string()
}

#[test]
fn a_shortened_wait_and_a_veto_by_too_few_or_in_other_words_are_found() {
    let Some(past) = WaitedPast::make() else { return };
    let (agree, activate) = (past.last("Agree to the signers"), past.last("Activate the signers"));
    let (entry, pending) =
        (past.path("svc.signers.history/000002.json"), past.path("svc.signers.pending/svc.signers.json"));
    let agreement = format!("{pending}.agreed.json");
    let text = |value: &Value, field: &str| value[field].as_str().expect("text").to_owned();
    let (recorded, agreed) = (past.json(activate, &entry), past.json(agree, &agreement));
    let (since, due) = (text(&recorded, "agreed_at"), text(&agreed, "due_at"));
    let in_force = text(&recorded, "timestamp");

    past.assert_found(activate, &pending, "not before", |commits| {
        commits[activate].edit(&entry, &in_force, &shifted(&due, -1));
    });
    past.assert_found(activate, &entry, "not what the rules produce", |commits| {
        commits[activate].edit(&entry, &since, &shifted(&since, -3600));
    });
    past.assert_found(agree, &agreement, "not what the rules produce", |commits| {
        commits[agree].edit(&agreement, &due, &shifted(&due, -3600));
    });
    // The commit itself was made too early for what it says.
    past.assert_found(activate, &entry, "the commit was made at", |commits| commits[activate].delay(-3600));

    let veto = past.last("Veto the pending signers");
    let is_record = |path: &&String| path.ends_with("/svc.veto.json");
    let record = past.commits[veto].files.keys().find(is_record).expect("a record").clone();
    let signatures = format!("{record}.signatures.json");
    past.assert_found(veto, "", "the rules refuse", |commits| {
        commits[veto].edit(&record, "not ours", "all mine");
    });
    past.assert_found(veto, &signatures, "not what the rules produce", |commits| {
        let mut set = past.json(veto, &signatures);
        let message = commits[veto].message.clone();
        let entries = set["entries"].as_object_mut().expect("entries");
        entries.retain(|key, _| message.contains(key.as_str()));
        commits[veto].write(&signatures, format!("{set:#}\n"));
    });
    past.assert_found(veto, "", "not part of", |commits| {
        commits[veto].write(&past.path("svc.signers.vetoed/x/svc.veto.json"), "{}");
    });
}

#[test]
fn a_mirror_whose_clock_is_ahead_waits_for_its_origin() {
    let (Some(scene), Some(ahead)) = (Scene::new(), MachineClock::new()) else { return };
    ahead.set(2 * DELAY);
    let origin = url_of(&scene.world.server);
    let mut mirror = TestServer::prepare_as(|dir| ahead.give_to(Launch::mirror(&origin, dir)));
    mirror.start_again();
    // A veto is repeated.
    let vetoed = takeover().with("servers", serde_json::json!(["https://evil.example.org"]));
    scene.agree(&vetoed, &["mallory"]);
    let document = scene.veto_document("not ours");
    scene.veto("mia", &document);
    scene.veto("moe", &document).ok();
    await_same(&mirror, &scene.world.server);
    assert_eq!(mirror.get(&format!("/v1/files/{}", scene.pending())).status, 404);
    scene.agree(&takeover(), &["mallory"]);
    await_same(&mirror, &scene.world.server);
    let signers = || mirror.get(&format!("/v1/get_signers/{}", scene.world.id(APP))).body;
    assert_eq!(signers(), team(10).bytes(), "only the origin decides");
    scene.set(DELAY + 60);
    assert_eq!(scene.signers(), takeover().bytes());
    await_same(&mirror, &scene.world.server);
    assert_eq!(signers(), takeover().bytes());
    fsck(&mirror.data_dir(), &[]).is_clean();
}
