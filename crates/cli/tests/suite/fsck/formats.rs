//! `countersign fsck`: tampering with signatures in other formats.

use serde_json::Value;
use tempfile::TempDir;

use crate::export::scene::{Scene, asking};
use crate::support::rewriting::{Commit, export, import};
use crate::support::{client::put_release, fsck::fsck, person};

/// A history in which alice and bob sign for all tools, and another release follows.
struct FormatsPast {
    commits: Vec<Commit>,
    file: String,
}

impl FormatsPast {
    fn new() -> Self {
        let mut scene = Scene::collecting(&asking());
        scene.sign("alice", &[]).ok();
        scene.sign("bob", &[]).ok().says(&["complete"]);
        let sums = put_release(&scene.world.files, "acme/app/2.0", &[("app", b"the next one")]);
        scene.computer.run_as("alice", &["release", "--checksums", &sums]).ok();
        let (commits, file) = (export(&scene.world.git()), scene.formats_path());
        scene.world.server.stop();
        Self { commits, file }
    }

    /// The last commit that writes the file: bob's, after alice's.
    fn second_signing(&self) -> usize {
        let writes = |commit: &Commit| commit.files.contains_key(&self.file);
        self.commits.iter().rposition(writes).expect("two signatures")
    }

    fn texts_at(&self, at: usize) -> Value {
        let entry = self.commits[at].files[&self.file].as_ref().expect("the file");
        serde_json::from_slice(&entry.content).expect("JSON")
    }

    /// Writes another file in the commit at this position, which `fsck` finds.
    #[track_caller]
    fn finds(&self, at: usize, texts: &Value, words: &str) {
        let mut commits = self.commits.clone();
        commits[at].write(&self.file, format!("{texts:#}\n"));
        let dir = TempDir::new().expect("a temporary directory");
        let ids = import(dir.path(), &commits);
        fsck(dir.path(), &[]).finds(&ids[at], &self.file, words);
    }
}

#[test]
fn what_was_collected_in_other_formats_stays_as_it_was() {
    let past = FormatsPast::new();
    let (second, last) = (past.second_signing(), past.commits.len() - 1);
    let [alice, bob] = ["alice", "bob"].map(|name| person(name).key());
    let whole = past.texts_at(second);
    let dir = TempDir::new().unwrap();
    import(dir.path(), &past.commits);
    fsck(dir.path(), &[]).is_clean();

    let mut dropped = whole.clone();
    dropped["other_formats"].as_object_mut().unwrap().remove(&alice);
    past.finds(second, &dropped, "not what the rules produce");
    past.finds(last, &dropped, "not part of what the commit claims");

    let mut poorer = whole.clone();
    poorer["other_formats"][&alice].as_object_mut().unwrap().remove("ssh");
    past.finds(second, &poorer, "not what the rules produce");

    for format in ["ssh", "minisign", "openpgp"] {
        let mut changed = whole.clone();
        let text = changed["other_formats"][&bob][format].as_str().unwrap().to_owned();
        let (at, old) = text.char_indices().filter(|(_, c)| c.is_ascii_lowercase()).nth(60).unwrap();
        let new = if old == 'a' { "b" } else { "a" };
        changed["other_formats"][&bob][format] =
            Value::from(format!("{}{new}{}", &text[..at], &text[at + 1..]));
        past.finds(second, &changed, "is refused");
        past.finds(last, &changed, "not part of what the commit claims");
    }
}
