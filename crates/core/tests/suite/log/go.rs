//! Trees and notes, compared with those of Go's checksum database (Debian: `golang-go`, `golang-golang-x-mod-dev`).
//! Where Go is missing, the test says so and proves nothing.

use std::{env, io::Write as _, process::Command, process::Stdio};

use countersign_core::log::note::{Note, NoteSignature};
use countersign_core::log::tree::{Hash, Tree, leaf_hash, write_hash};
use countersign_core::values::{key::encode_base64, verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_testing::mallory;
use serde_json::{Value, json};

use super::world::{DESIGN_NOTE, log_key, seed, witness_key};

const SIZES: u64 = 70;
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/oracle/sumdb.go");

/// What the Go program answers; `None` without Go or its package.
#[expect(clippy::disallowed_methods, reason = "core starts no process, but this test asks another program")]
fn ask(question: &Value) -> Option<Value> {
    let packages = env::var("GOPATH").unwrap_or_else(|_| "/usr/share/gocode".to_owned());
    let mut go = Command::new("go")
        .args(["run", PROGRAM])
        .envs([("GOPATH", packages.as_str()), ("GO111MODULE", "off"), ("GOFLAGS", "")])
        .env("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    go.stdin.take()?.write_all(question.to_string().as_bytes()).ok()?;
    let output = go.wait_with_output().expect("an answer");
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("cannot find package") {
        return None;
    }
    assert!(output.status.success(), "{error}");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn leaf(n: u64) -> String {
    format!("leaf {n}")
}

fn texts(hashes: &[Hash]) -> Value {
    hashes.iter().map(write_hash).collect()
}

/// The notes, and whether they are right.
fn notes() -> Vec<(String, bool)> {
    let text = "example.com/log\n\nany text\n";
    let signed = |lines: &[NoteSignature]| {
        let mut note = Note::new(text.to_owned());
        lines.iter().for_each(|line| note.add(line.clone()));
        note.to_string()
    };
    let right = NoteSignature::sign(text, &log_key(), &seed(0), 0);
    let wrong = NoteSignature::sign("another text\n", &log_key(), &seed(0), 0);
    let same_name = VerifierKey::new(log_key().name(), KeyKind::Log, mallory().public_key()).expect("a key");
    let stranger = NoteSignature::sign(text, &same_name, &mallory(), 0);
    let witness = NoteSignature::sign(text, &witness_key(), &seed(0x20), 7);
    let one = signed(std::slice::from_ref(&right));
    vec![
        (DESIGN_NOTE.to_owned(), true),
        (one.clone(), true),
        (signed(&[stranger.clone(), witness, right.clone()]), true),
        (signed(&[stranger]), false),
        (signed(std::slice::from_ref(&wrong)), false),
        (signed(&[wrong, right]), false),
        (one.replacen("any", "another", 1), false),
        (one.replacen("any", "\tany", 1), false),
        (one.trim_end().to_owned(), false),
        (one.replacen("\n\n— ", "\n— ", 1), false),
        (format!("{one}more\n"), false),
        (one.replacen("— ", "- ", 1), false),
    ]
}

#[test]
fn go_agrees_about_every_tree_and_note() {
    let key = [[1].as_slice(), &std::array::from_fn::<u8, 32, _>(|n| u8::try_from(n).unwrap())].concat();
    let text = DESIGN_NOTE.split_once("\n\n").unwrap().0.to_owned() + "\n";
    let question = json!({
        "leaves": (0..SIZES).map(leaf).collect::<Vec<_>>(),
        "signer_key": format!("PRIVATE+KEY+{}+{}", log_key().short(), encode_base64(&key)),
        "verifier": log_key().to_string(),
        "text": text,
        "notes": notes().into_iter().map(|(note, _)| note).collect::<Vec<_>>(),
    });
    let Some(answer) = ask(&question) else {
        #[expect(clippy::disallowed_macros, reason = "someone should know that this proves nothing")]
        let () = eprintln!("skipped: go or its package golang.org/x/mod is missing");
        return;
    };
    let mut tree = Tree::default();
    for size in 1..=SIZES {
        tree.push(leaf_hash(leaf(size - 1).as_bytes()));
        let at = usize::try_from(size - 1).unwrap();
        assert_eq!(answer["roots"][at], write_hash(&tree.root(size).unwrap()), "{size}");
        for index in 0..size {
            let n = usize::try_from(index).unwrap();
            assert_eq!(
                answer["inclusion"][at][n],
                texts(&tree.inclusion(index, size).unwrap()),
                "{index} of {size}"
            );
            let ours = texts(&tree.consistency(index + 1, size).unwrap());
            assert_eq!(answer["consistency"][at][n], ours, "{} to {size}", index + 1);
        }
    }
    let line = NoteSignature::sign(&text, &log_key(), &seed(0), 0);
    assert_eq!(answer["signed"], format!("{text}\n{line}"));
    for (n, (note, is_right)) in notes().into_iter().enumerate() {
        assert_eq!(answer["opened"][n], is_right, "{note}");
        let ours = Note::parse(note.as_bytes())
            .is_ok_and(|read| read.signers(&[log_key()]).is_ok_and(|known| !known.is_empty()));
        assert_eq!(ours, is_right, "{note}");
    }
}
