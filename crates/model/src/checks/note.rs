//! Signed notes, keys of logs and witnesses, and checkpoints (D84).

use countersign_core::{
    log::{
        checkpoint::{Checkpoint, SignedCheckpoint},
        note::{Note, NoteSignature},
    },
    values::{
        bounds::NOTE_SIGNATURES,
        key::SecretKey,
        verifier_key::{KeyKind, VerifierKey},
    },
};

use super::promises::assert_shown;

pub fn check(data: &[u8]) {
    match Note::parse(data) {
        Ok(note) => check_note(&note, data),
        Err(error) => assert_shown(&error),
    }
    if let Ok(lines) = NoteSignature::parse_lines(data) {
        let written: String = lines.iter().map(NoteSignature::to_string).collect();
        assert_eq!(written.as_bytes(), data, "lines have one spelling");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    match VerifierKey::parse(text) {
        Ok(key) => assert_eq!(key.to_string(), text, "a key has one spelling"),
        Err(error) => assert_shown(&error),
    }
    check_checkpoint(text);
}

fn check_note(note: &Note, data: &[u8]) {
    assert_eq!(note.to_string().as_bytes(), data, "a note has one spelling");
    assert!(note.text().ends_with('\n') && (1..=NOTE_SIGNATURES).contains(&note.signatures().len()));
    check_checkpoint(note.text());
    // A key that signs the same text under the names that occur in it.
    let secret = SecretKey::from_seed(&[7; 32]);
    for (kind, time) in [(KeyKind::Log, None), (KeyKind::Witness, Some(9))] {
        let key = VerifierKey::new("fuzz.example", kind, secret.public_key()).expect("a valid name");
        let mut signed = note.clone();
        signed.add(NoteSignature::sign(note.text(), &key, &secret, 9));
        let Ok(signers) = signed.signers(std::slice::from_ref(&key)) else { continue };
        assert_eq!(signers.last().map(|signer| signer.time), Some(time));
        assert!(
            SignedCheckpoint::open(&signed, &[key], &[]).is_err()
                || note.text().starts_with("fuzz.example\n")
        );
    }
}

fn check_checkpoint(text: &str) {
    match Checkpoint::parse_extended(text) {
        Ok(checkpoint) => {
            assert!(text.starts_with(&checkpoint.text()), "the first three lines have one spelling");
            assert_eq!(Checkpoint::parse(text).is_ok(), checkpoint.text() == text);
            assert_eq!(Checkpoint::parse(&checkpoint.text()), Ok(checkpoint));
        }
        Err(error) => assert_shown(&error),
    }
}
