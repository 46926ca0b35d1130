//! A signers file that the project publishes vouches for its own past and future, and for no other project's.

use serde_json::json;

use crate::support::hostile::{
    Forgery, HostileServer, Listed, Scene, Victim, index_of, origin, signature_set,
};
use crate::support::{Answer, FileServer, Person, SignersFile, alice, bob, days_ago, mallory};

/// A project on a file server, and a server that shows what Mallory likes.
struct Stage {
    files: FileServer,
    server: HostileServer,
    project: String,
    url: String,
}

impl Stage {
    /// The project publishes this signers file.
    fn publishing(file: &[u8]) -> Self {
        let files = FileServer::start();
        files.put("/acme/app/svc.signers.json", file);
        files.put("/acme/app/1.0/app.tar.gz", "evil");
        let url = files.url("/acme/app/1.0/app.tar.gz");
        Self { project: files.mirror_path("/acme/app"), files, server: HostileServer::alone(), url }
    }

    fn origin(&self) -> serde_json::Value {
        origin("file_server", &self.files.url("/acme/app/svc.signers.json"))
    }

    fn begin(&self) -> Forgery {
        Forgery::of(&self.project)
    }

    /// What a newcomer is shown: this history, and the file signed by these people.
    fn show(&self, history: &Forgery, signers: &[&Person]) -> Victim {
        let index = format!("{}/1.0/svc.index.json", self.project);
        let listed = Listed { name: "app.tar.gz", source: &self.url, bytes: b"evil" };
        history.show(&self.server, &index, &index_of(&self.project, None, &[listed]), signers);
        Victim::of(&self.server)
    }

    #[track_caller]
    fn refuses(&self, history: &Forgery, signers: &[&Person], words: &[&str]) {
        let victim = self.show(history, signers);
        victim.refuses(&self.url, 3, words);
        assert!(victim.memory().is_empty());
    }
}

fn dated(file: SignersFile, days: i64) -> Vec<u8> {
    file.redated(days_ago(days)).bytes()
}

#[test]
fn a_file_in_the_middle_of_the_history_vouches_for_all_of_it() {
    let [first, second, third] = [10, 9, 8].map(|days| dated(SignersFile::of(1, &[&alice()]), days));
    for published in [&first, &second, &third] {
        let stage = Stage::publishing(published);
        let history = [&first, &second, &third]
            .into_iter()
            .fold(stage.begin(), |history, file| history.then(file, &stage.origin(), &[&alice()]));
        stage.show(&history, &[&alice()]).takes(&stage.url, b"evil");
    }
}

#[test]
fn a_history_that_hides_what_the_project_publishes_or_ends_with_what_was_replaced_is_refused() {
    // The second file was proposed from a place of its own, where it still is; the third is in the first one's place.
    let [first, second, third] = [10, 9, 8].map(|days| dated(SignersFile::of(1, &[&alice()]), days));
    let stage = Stage::publishing(&third);
    stage.files.put("/acme/app/svc.signers/next.json", second.clone());
    let next = origin("file_server", &stage.files.url("/acme/app/svc.signers/next.json"));
    let cut = stage.begin().then(&first, &stage.origin(), &[&alice()]).then(&second, &next, &[&alice()]);
    stage.refuses(&cut, &[&alice()], &["not proven"]);
    let hidden = stage.begin().then(&first, &stage.origin(), &[&alice()]);
    stage.refuses(&hidden, &[&alice()], &["not proven"]);
    // A first place that fails, rather than saying that it has nothing, is no reason to ask elsewhere either.
    stage.files.set("/acme/app/svc.signers.json", Answer::Status(500));
    stage.refuses(&cut, &[&alice()], &["not proven"]);
}

#[test]
fn the_origin_of_the_first_entry_counts_and_not_that_of_a_later_one() {
    let [first, second] = [10, 9].map(|days| dated(SignersFile::of(1, &[&mallory()]), days));
    let stage = Stage::publishing(&second);
    let elsewhere = FileServer::start();
    elsewhere.put("/acme/app/svc.signers.json", first.clone());
    let other = origin("file_server", &elsewhere.url("/acme/app/svc.signers.json"));
    let history =
        stage.begin().then(&first, &other, &[&mallory()]).then(&second, &stage.origin(), &[&mallory()]);
    stage.refuses(&history, &[&mallory()], &["not proven"]);
    assert_eq!(elsewhere.asked(), [""; 0]);
}

#[test]
fn who_was_replaced_can_still_sign_with_the_help_of_a_server() {
    // A limit by design: an index is measured by the signers whom its server says that it was signed under, and nothing
    // proves when. Alice was replaced by bob; a server that colludes with her dates her new release back.
    let [first, second] =
        [(alice(), 10), (bob(), 9)].map(|(person, days)| dated(SignersFile::of(1, &[&person]), days));
    let stage = Stage::publishing(&second);
    let before = stage.begin().then(&first, &stage.origin(), &[&alice()]);
    let history = before.clone().then(&second, &stage.origin(), &[&alice(), &bob()]);
    let victim = stage.show(&history, &[&alice()]);
    victim.refuses(&stage.url, 3, &["not enough of the right people"]);
    stage.server.show_chain(&format!("{}/1.0/svc.index.json", stage.project), &before.history());
    victim.takes(&stage.url, b"evil");
}

#[test]
fn a_parents_index_does_not_speak_for_a_directory_that_has_its_own_project() {
    let scene = Scene::start();
    // The release's own index is hidden; one of the directory above is shown instead, which is unsigned.
    let parent = scene.world.index_path("acme/app");
    let listed = Listed { name: "2.0/app.tar.gz", source: &scene.url("2.0"), bytes: b"evil" };
    let text = index_of(&scene.project(), None, &[listed]);
    scene.hostile.hide_file(&scene.index("2.0"));
    scene.hostile.show_file(&parent, text.clone());
    scene.hostile.show_chain(&parent, &scene.history());
    scene.world.files.put("/acme/app/2.0/app.tar.gz", "evil");
    for signers in [&[][..], &[&mallory()], &[&alice()]] {
        let set = signature_set(text.as_bytes(), signers).to_string();
        scene.hostile.show_file(&format!("{parent}.signatures.json"), set);
        scene.refused(3, &[&parent, "not enough of the right people"]);
    }
    scene.hostile.show_file(&format!("{parent}.signatures.json"), json!({ "entries": {} }).to_string());
    scene.refused(3, &[]);
}
