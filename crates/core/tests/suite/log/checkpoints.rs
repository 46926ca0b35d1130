//! Checkpoints, cosignatures, and the texts in which they travel.

use countersign_core::log::checkpoint::{
    Checkpoint, CheckpointError, InclusionProof, SignedCheckpoint, WitnessRequest,
};
use countersign_core::log::note::{Note, NoteError, NoteSignature, cosigned_text};
use countersign_core::log::tree::{empty_root, leaf_hash};
use countersign_core::values::bounds::{KEY_NAME_BYTES, PROOF_HASHES, WITNESS_REQUEST_BYTES};
use countersign_core::values::{key::SecretKey, verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_testing::{assert_mentions, key, mallory};

use super::world::{DESIGN_NOTE, log_key, seed, witness_key};

fn checkpoint() -> Checkpoint {
    Checkpoint { origin: "example.com/log".to_owned(), size: 1, root: leaf_hash(b"hello") }
}

fn signed() -> SignedCheckpoint {
    checkpoint().sign(&log_key(), &seed(0))
}

fn witness(n: u8) -> VerifierKey {
    VerifierKey::new(&format!("example.com/w{n}"), KeyKind::Witness, key(n).public_key()).expect("a key")
}

fn open(text: &str, witnesses: &[VerifierKey]) -> Result<SignedCheckpoint, CheckpointError> {
    SignedCheckpoint::open(&Note::parse(text.as_bytes()).expect("a note"), &[log_key()], witnesses)
}

#[test]
fn the_vector_of_the_design_is_made_and_opened() {
    let mut made = signed();
    let cosignature = made.cosign(&witness_key(), &seed(0x20), 1_700_000_000);
    made.add_cosignatures(&[cosignature.line], &[witness_key()]).unwrap();
    assert_eq!(made.note().to_string(), DESIGN_NOTE);
    assert_eq!(made.log_note().to_string().lines().count(), 5);
    let opened = open(DESIGN_NOTE, &[witness_key()]).unwrap();
    assert_eq!(opened, made);
    assert_eq!((opened.checkpoint(), opened.log_key()), (&checkpoint(), &log_key()));
    let times: Vec<u64> = opened.cosignatures().map(|cosignature| cosignature.time).collect();
    assert_eq!(times, [1_700_000_000]);
    // Someone who does not know the witness does not see its cosignature.
    assert_eq!(open(DESIGN_NOTE, &[]).unwrap().cosignatures().count(), 0);
}

#[test]
fn an_agents_signature_makes_the_same_checkpoint() {
    let line = signed().log_note().signatures()[0].clone();
    let mut note = Note::new(checkpoint().text());
    note.add(line);
    assert_eq!(SignedCheckpoint::open(&note, &[log_key()], &[]), Ok(signed()));
    assert!(cosigned_text("x\n", 7).starts_with("cosignature/v1\ntime 7\nx\n"));
}

#[test]
fn a_log_signs_under_its_own_origin_only() {
    let text = |origin: &str, key: &VerifierKey, secret: &SecretKey| {
        Checkpoint { origin: origin.to_owned(), ..checkpoint() }.sign(key, secret).note().to_string()
    };
    let other = VerifierKey::new("example.com/other", KeyKind::Log, key(9).public_key()).unwrap();
    let stranger = VerifierKey::new("example.com/log", KeyKind::Log, mallory().public_key()).unwrap();
    let refused = |text: &str| open(text, &[]).unwrap_err();
    let origin = |name: &str| name.to_owned();
    assert_eq!(
        refused(&text("example.com/other", &log_key(), &seed(0))),
        CheckpointError::UnknownOrigin(origin("example.com/other"))
    );
    assert_eq!(
        refused(&text("example.com/log", &other, &key(9))),
        CheckpointError::NotSigned(origin("example.com/log"))
    );
    assert_eq!(
        refused(&text("example.com/log", &stranger, &mallory())),
        CheckpointError::NotSigned(origin("example.com/log"))
    );
    assert_eq!(
        refused(&text("example.com/log", &log_key(), &mallory())),
        CheckpointError::Note(NoteError::BadSignature(origin("example.com/log")))
    );
    // A witness's key signs no checkpoint in the place of the log.
    let as_witness = VerifierKey::new("example.com/log", KeyKind::Witness, seed(0).public_key()).unwrap();
    let note = Note::parse(DESIGN_NOTE.as_bytes()).unwrap();
    assert!(SignedCheckpoint::open(&note, &[as_witness], &[]).is_err());
}

#[test]
fn of_each_witness_the_newest_cosignature_stays() {
    let mut opened = signed();
    let known = [witness(1), witness(2)];
    let lines = |n: u8, times: &[u64]| -> Vec<NoteSignature> {
        times.iter().map(|time| signed().cosign(&witness(n), &key(n), *time).line).collect()
    };
    assert_eq!(opened.add_cosignatures(&lines(1, &[30, 50, 40]), &known).unwrap().len(), 3);
    assert_eq!(opened.add_cosignatures(&lines(2, &[20]), &known).unwrap().len(), 1);
    assert_eq!(opened.add_cosignatures(&lines(3, &[60]), &known).unwrap().len(), 0);
    let mut times: Vec<u64> = opened.cosignatures().map(|cosignature| cosignature.time).collect();
    times.sort_unstable();
    assert_eq!(times, [20, 50]);
    let wrong = signed().cosign(&witness(2), &key(1), 70).line;
    let before = opened.clone();
    assert!(opened.add_cosignatures(&[lines(1, &[80]), vec![wrong]].concat(), &known).is_err());
    assert_eq!(opened, before, "a wrong line adds nothing");
    assert_eq!(open(&opened.note().to_string(), &known), Ok(opened));
}

#[test]
fn a_witness_with_two_names_counts_once_and_the_first_of_equal_times_stays() {
    let renamed = VerifierKey::new("another.example/w", KeyKind::Witness, key(1).public_key()).unwrap();
    let known = [witness(1), renamed.clone()];
    for names in [[witness(1), renamed.clone()], [renamed.clone(), witness(1)]] {
        let mut opened = signed();
        let lines = names.each_ref().map(|name| signed().cosign(name, &key(1), 50).line);
        assert_eq!(opened.add_cosignatures(&lines, &known).unwrap().len(), 2);
        let kept: Vec<&VerifierKey> = opened.cosignatures().map(|cosignature| &cosignature.witness).collect();
        assert_eq!(kept, [&names[0]]);
    }
}

#[test]
fn a_checkpoint_has_one_form() {
    let text = checkpoint().text();
    assert_eq!(Checkpoint::parse(&text), Ok(checkpoint()));
    let empty = format!("a\n0\n{}\n", countersign_core::log::tree::write_hash(&empty_root()));
    assert!(Checkpoint::parse(&empty).is_ok());
    let longest = text.replacen("example.com/log", &"a".repeat(KEY_NAME_BYTES), 1);
    assert!(Checkpoint::parse(&longest).is_ok());
    let table = [
        ("", "no end"),
        ("example.com/log\n1\n", "three lines"),
        (text.trim_end(), "no end"),
        (&text.replacen("example.com/log", "", 1), "origin"),
        (&text.replacen("example.com/log", "a\u{202e}b", 1), "origin"),
        (&longest.replacen('a', "aa", 1), "origin"),
        (&text.replacen("\n1\n", "\n01\n", 1), "size"),
        (&text.replacen("\n1\n", "\n+1\n", 1), "size"),
        (&text.replacen("\n1\n", "\n9223372036854775808\n", 1), "size"),
        (&text.replacen("\n1\n", "\n0\n", 1), "empty"),
        (&text.replacen('=', "", 1), "root"),
        (&format!("{text}\n"), "empty line"),
        (&format!("{text}extension\n"), "extension"),
    ];
    for (text, reason) in table {
        assert_mentions(&Checkpoint::parse(text).unwrap_err().to_string(), &[reason]);
    }
    // Other logs can have extension lines, which a witness cosigns with the rest.
    let extended = format!("{text}extension\n");
    assert_eq!(Checkpoint::parse_extended(&extended), Ok(checkpoint()));
    let mut note = Note::new(extended.clone());
    note.add(NoteSignature::sign(&extended, &log_key(), &seed(0), 0));
    let opened = open(&note.to_string(), &[]).unwrap();
    assert_eq!(opened.text(), extended);
    let line = opened.cosign(&witness(1), &key(1), 9).line;
    note.add(line);
    assert_eq!(open(&note.to_string(), &[witness(1)]).unwrap().cosignatures().count(), 1);
}

#[test]
fn what_a_witness_is_asked_has_one_form() {
    let hash = leaf_hash(b"");
    for proof in [vec![], vec![hash], vec![hash; PROOF_HASHES]] {
        let request = WitnessRequest { old: 20_852_014, proof, note: signed().log_note() };
        assert_eq!(WitnessRequest::parse(request.write().as_bytes()), Ok(request));
    }
    let request = WitnessRequest { old: 0, proof: vec![hash], note: signed().log_note() };
    let text = request.write();
    let many = WitnessRequest { proof: vec![hash; PROOF_HASHES + 1], ..request }.write();
    let table = [
        (many.as_str(), "too many"),
        ("old 0\n", "empty line"),
        (&text.replacen("old 0", "old", 1), "old"),
        (&text.replacen("old 0", "old 00", 1), "old"),
        (&text.replacen("old 0", "Old 0", 1), "old"),
        (&text.replacen('=', "", 1), "not a hash"),
        (&text.replacen('\n', "\r\n", 1), "old"),
    ];
    for (text, reason) in table {
        assert_mentions(&WitnessRequest::parse(text.as_bytes()).unwrap_err().to_string(), &[reason]);
    }
    assert!(WitnessRequest::parse(b"\xff").is_err());
    // Behind a second empty line, hashes are a part of the note, which is no checkpoint then.
    let misplaced = WitnessRequest::parse(text.replacen('\n', "\n\n", 1).as_bytes()).unwrap();
    assert!(SignedCheckpoint::open(&misplaced.note, &[log_key()], &[]).is_err());
    let padded = |bytes: usize| {
        let text = text.replacen("example.com/log\n1", "X\n1", 1);
        text.replacen("X\n", &format!("{}\n", "x".repeat(bytes + 1 - text.len())), 1)
    };
    assert_mentions(
        &WitnessRequest::parse(padded(WITNESS_REQUEST_BYTES).as_bytes()).unwrap_err().to_string(),
        &["note"],
    );
    let error = WitnessRequest::parse(padded(WITNESS_REQUEST_BYTES + 1).as_bytes()).unwrap_err();
    assert_mentions(&error.to_string(), &["too large"]);
}

#[test]
fn an_inclusion_proof_has_one_form() {
    let hash = leaf_hash(b"");
    for hashes in [vec![], vec![hash], vec![hash; PROOF_HASHES]] {
        let proof = InclusionProof { index: 7, hashes, note: signed().note() };
        assert_eq!(InclusionProof::parse(&proof.write()), Ok(proof));
    }
    let proof = InclusionProof { index: 7, hashes: vec![hash], note: signed().note() };
    let text = proof.write();
    assert!(text.starts_with("c2sp.org/tlog-proof@v1\nindex 7\n"));
    let many = InclusionProof { hashes: vec![hash; PROOF_HASHES + 1], ..proof }.write();
    let table = [
        (many.as_str(), "too many"),
        ("", "empty line"),
        ("c2sp.org/tlog-proof@v1\n\n", "no index"),
        (&text.replacen("@v1", "@v2", 1), "tlog-proof@v1"),
        (&text.replacen("index 7", "index 07", 1), "no index"),
        (&text.replacen("index 7", "extra AAAA\nindex 7", 1), "no index"),
    ];
    for (text, reason) in table {
        assert_mentions(&InclusionProof::parse(text).unwrap_err().to_string(), &[reason]);
    }
}
