//! Cosignatures of type 06, which another program has made (D263).

use countersign_core::log::note::Note;
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use serde_json::Value;

use super::read_vectors;

#[test]
fn every_cosignature_of_another_program_is_judged_as_it_says() {
    let file = read_vectors("cosignature").remove("ml-dsa-44").expect("the vectors");
    let cases = file["cases"].as_array().expect("a list of cases");
    for case in cases {
        let text = |field: &str| case[field].as_str().expect("a text");
        let key = VerifierKey::parse_kind(text("key"), KeyKind::Witness).expect("a key");
        assert_eq!(key.to_string(), text("key"));
        let note = Note::parse(text("note").as_bytes()).expect("a note");
        assert_eq!(note.to_string(), text("note"));
        let found = match note.signers(std::slice::from_ref(&key)).as_deref() {
            Ok([signer]) => signer.time.map_or("no time", |_| "verified"),
            Ok(_) => "ignored",
            Err(_) => "refused",
        };
        assert_eq!(Value::from(found), case["expect"], "{}", case["name"]);
    }
    let count = |word: &str| cases.iter().filter(|case| case["expect"] == word).count();
    assert_eq!([count("verified"), count("refused"), count("ignored")], [4, 17, 2]);
}
