//! Signed notes and the keys of logs and witnesses: what is read, what is ignored, what refuses a note.

use countersign_core::log::note::{MAX_NUMBER, Note, NoteError, NoteSignature, parse_number};
use countersign_core::values::bounds::{KEY_NAME_BYTES, NOTE_BYTES, NOTE_SIGNATURES};
use countersign_core::values::digest::Sha256;
use countersign_core::values::key::{KeyError, SecretKey, encode_base64};
use countersign_core::values::verifier_key::{KeyKind, ML_DSA_KEY_BYTES, VerifierKey, VerifierKeyError};
use countersign_testing::{alice, assert_mentions, bob, key, mallory, ml_dsa_cosign, ml_dsa_key};

use super::world::{DESIGN_NOTE, log_key, seed, witness_key};

const EXAMPLE_KEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
const EXAMPLE: &str = "This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";

fn note(text: &str) -> Note {
    Note::parse(text.as_bytes()).expect("a note")
}

fn named(name: &str, kind: KeyKind, secret: &SecretKey) -> VerifierKey {
    VerifierKey::new(name, kind, secret.public_key()).expect("a key")
}

#[test]
fn the_example_of_c2sp_is_read_verified_and_written() {
    let key = VerifierKey::parse(EXAMPLE_KEY).unwrap();
    assert_eq!(
        (key.name(), key.kind(), key.to_string().as_str()),
        ("example.com/foo", KeyKind::Log, EXAMPLE_KEY)
    );
    assert_eq!(key.short(), "example.com/foo+530d903a");
    let signed = note(EXAMPLE);
    assert_eq!(signed.text(), "This is an example message.\n");
    assert_eq!(signed.signers(std::slice::from_ref(&key)).unwrap()[0].key, key);
    assert_eq!(signed.to_string(), EXAMPLE);
    let lines = NoteSignature::parse_lines(EXAMPLE.split_once("\n\n").unwrap().1.as_bytes()).unwrap();
    assert_eq!((lines.len(), lines[0].name()), (1, "example.com/foo"));
}

#[test]
fn the_vector_of_the_design_is_made_and_read_byte_for_byte() {
    let (log, witness) = (log_key(), witness_key());
    assert_eq!(log.to_string(), "example.com/log+d455c521+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4");
    assert_eq!(
        witness.to_string(),
        "example.com/witness+098ef77f+BCmsuuFBvMrwsi4alNNNC8c2HlJtC/4SyJeUvJMilm3X"
    );
    let text = log_text();
    let mut made = Note::new(text.clone());
    made.add(NoteSignature::sign(&text, &log, &seed(0), 0));
    made.add(NoteSignature::sign(&text, &witness, &seed(0x20), 1_700_000_000));
    assert_eq!(made.to_string(), DESIGN_NOTE);
    let read = note(DESIGN_NOTE);
    assert_eq!(read, made);
    let signers = read.signers(&[log.clone(), witness.clone()]).unwrap();
    let found: Vec<_> = signers.into_iter().map(|signer| (signer.key, signer.time)).collect();
    assert_eq!(found, [(log, None), (witness, Some(1_700_000_000))]);
}

#[test]
fn unknown_signatures_are_ignored_and_a_wrong_one_of_a_known_key_refuses_the_note() {
    let log = log_key();
    let bad = NoteError::BadSignature("example.com/log".to_owned());
    let with = |line: &NoteSignature| note(&format!("{DESIGN_NOTE}{line}"));
    // Another key of the same name, and the same key under another name: neither is known.
    let strangers = [
        NoteSignature::sign("other\n", &named("example.com/log", KeyKind::Log, &mallory()), &mallory(), 0),
        NoteSignature::sign("other\n", &named("example.com/log2", KeyKind::Log, &seed(0)), &seed(0), 0),
        NoteSignature::sign("other\n", &named("example.com/log", KeyKind::Witness, &seed(0)), &seed(0), 1),
    ];
    for stranger in &strangers {
        assert_eq!(with(stranger).signers(std::slice::from_ref(&log)).unwrap().len(), 1);
    }
    let wrong = NoteSignature::sign("other\n", &log, &seed(0), 0);
    assert_eq!(with(&wrong).signers(std::slice::from_ref(&log)), Err(bad.clone()));
    assert!(with(&wrong).signers(&[witness_key()]).is_ok());
    // A changed text is what no one has signed.
    let changed = note(&DESIGN_NOTE.replacen("\n1\n", "\n2\n", 1));
    assert_eq!(changed.signers(&[log]), Err(bad.clone()));
    assert_mentions(&bad.to_string(), &["example.com/log"]);
}

#[test]
fn a_cosignature_has_a_time_within_the_numbers_and_exactly_one_length() {
    let witness = witness_key();
    let signed = |line: NoteSignature| {
        let mut note = Note::new("text\n".to_owned());
        note.add(line);
        Note::parse(note.to_string().as_bytes()).unwrap().signers(std::slice::from_ref(&witness))
    };
    for (time, is_right) in [(0, false), (1, true), (MAX_NUMBER, true), (MAX_NUMBER + 1, false)] {
        let verified = signed(NoteSignature::sign("text\n", &witness, &seed(0x20), time));
        assert_eq!(verified.is_ok(), is_right, "{time}");
    }
    // A signature without its time, or a signature like a log's.
    let right = NoteSignature::sign("text\n", &witness, &seed(0x20), 5).to_string();
    let right =
        countersign_core::values::key::decode_base64(right.trim_end().rsplit(' ').next().unwrap()).unwrap();
    for bytes in [&right[..68], &right[..75], &[&right[..], &[0]].concat(), &right[..5]] {
        let line = format!("— {} {}\n", witness.name(), encode_base64(bytes));
        let line = NoteSignature::parse_lines(line.as_bytes()).unwrap().remove(0);
        assert!(signed(line).is_err(), "{} bytes", bytes.len());
    }
    let as_log = NoteSignature::of_witness(
        &log_key(),
        5,
        alice().sign(&countersign_core::values::digest::Sha512::of(b"")),
    );
    assert!(signed(as_log).unwrap().is_empty());
}

#[test]
fn a_note_has_one_form() {
    for text in ["\n", "a\n\nb\n", "\n\n\n", "one\n\n— two\n"] {
        let mut made = Note::new(text.to_owned());
        made.add(NoteSignature::sign(text, &log_key(), &seed(0), 0));
        assert_eq!(note(&made.to_string()), made, "{text:?}");
        assert_eq!(made.signers(&[log_key()]).unwrap().len(), 1);
    }
    let table = [
        ("", "empty line"),
        ("a\n", "empty line"),
        ("\n\n", "no end"),
        ("a\n\n", "no end"),
        ("a\n\nb\n", "not a signature"),
        ("a\n\n— b\n", "not a signature"),
        ("a\n\n— b AAAAAAA=\n— c\n", "not a signature"),
        ("a\n\n— b AAAAAAA=", "no end"),
        ("a\n\n- b AAAAAAA=\n", "not a signature"),
        ("a\n\n—  AAAAAAA=\n", "not a signature"),
        ("a\n\n— b  AAAAAAA=\n", "not a signature"),
        ("a\n\n— b+c AAAAAAA=\n", "not a signature"),
        ("a\n\n— b\u{a0}c AAAAAAA=\n", "not a signature"),
        ("a\n\n— b AAAAAAA\n", "not a signature"),
        ("a\n\n— b AAAAAAB=\n", "not a signature"),
        ("a\n\n— b AAAAAA==\n", "not a signature"),
        ("a\tb\n\n— b AAAAAAA=\n", "control"),
        ("a\n\n— b AAAAAAA=\r\n", "control"),
    ];
    for (text, reason) in table {
        assert_mentions(&Note::parse(text.as_bytes()).unwrap_err().to_string(), &[reason]);
    }
    assert!(Note::parse(b"a\n\n\xe2\x80\x94 b AAAAAAA=\n").is_ok());
    assert_mentions(&Note::parse(b"\xff\n\n\xe2\x80\x94 b AAAAAAA=\n").unwrap_err().to_string(), &["UTF-8"]);
}

#[test]
fn a_note_has_a_largest_size_and_number_of_signatures() {
    let line = "— b AAAAAAA=\n";
    let many = |count: usize| format!("a\n\n{}", line.repeat(count));
    assert_eq!(note(&many(NOTE_SIGNATURES)).signatures().len(), NOTE_SIGNATURES);
    assert_eq!(Note::parse(many(NOTE_SIGNATURES + 1).as_bytes()), Err(NoteError::TooManySignatures));
    let long = |bytes: usize| format!("{}\n\n{line}", "a".repeat(bytes - line.len() - 2));
    assert!(Note::parse(long(NOTE_BYTES).as_bytes()).is_ok());
    assert_eq!(Note::parse(long(NOTE_BYTES + 1).as_bytes()), Err(NoteError::TooLarge));
}

#[test]
fn a_verifier_key_has_one_spelling_and_a_name_that_can_be_shown() {
    let good = log_key().to_string();
    let table = [
        ("example.com/log", VerifierKeyError::Form),
        ("example.com/log+d455c521", VerifierKeyError::Form),
        (&good[..good.len() - 1], VerifierKeyError::Form),
        (&good.replace("d455c521", "D455C521"), VerifierKeyError::Id),
        (&good.replace("d455c521", "d455c522"), VerifierKeyError::Id),
        (&good.replace("d455c521", "+d455c521"), VerifierKeyError::Form),
        (&good.replacen("example.com/log", "example.com/lag", 1), VerifierKeyError::Id),
        (&good.replacen("example.com/log", "", 1), VerifierKeyError::Name),
        (&good.replacen("example.com/log", "a b", 1), VerifierKeyError::Name),
        (&good.replacen("example.com/log", "a\u{200b}", 1), VerifierKeyError::Name),
        (&good.replacen("+AQOh", "+BQOh", 1), VerifierKeyError::Type(5)),
        (&good.replacen("+AQOh", "+BgOh", 1), VerifierKeyError::Form),
        (&good.replacen("+AQOh", "+BAOh", 1), VerifierKeyError::Id),
    ];
    assert_eq!(VerifierKey::parse(&good), Ok(log_key()));
    for (text, error) in table {
        assert_eq!(VerifierKey::parse(text), Err(error), "{text}");
    }
    let weak = format!("a+00000000+{}", encode_base64(&[[1, 1].as_slice(), &[0; 31]].concat()));
    assert_eq!(VerifierKey::parse(&weak), Err(VerifierKeyError::Key(KeyError::Weak)));
    let of_length = |length| VerifierKey::new(&"a".repeat(length), KeyKind::Log, bob().public_key());
    assert!(of_length(KEY_NAME_BYTES).is_ok());
    assert_eq!(of_length(KEY_NAME_BYTES + 1), Err(VerifierKeyError::Name));
    let other_kind = VerifierKeyError::OtherKind(KeyKind::Log, KeyKind::Witness);
    assert_eq!(VerifierKey::parse_kind(&good, KeyKind::Witness), Err(other_kind.clone()));
    assert_mentions(&other_kind.to_string(), &["log", "witness"]);
    // The same key as a log's and as a witness's has two ids.
    assert_ne!(named("a", KeyKind::Log, &key(9)).id(), named("a", KeyKind::Witness, &key(9)).id());
}

#[test]
fn an_ml_dsa_key_is_a_witness_whose_id_is_of_its_name_its_type_and_all_of_it() {
    let (name, witness) = ("witness.example", ml_dsa_key("witness.example", 7));
    let text = witness.to_string();
    assert_eq!(VerifierKey::parse_kind(&text, KeyKind::Witness).as_ref(), Ok(&witness));
    assert_eq!((witness.bytes().len(), witness.ed25519()), (ML_DSA_KEY_BYTES, None));
    let digest = Sha256::of(&[name.as_bytes(), b"\n\x06", witness.bytes()].concat());
    assert_eq!(witness.id(), digest.as_bytes()[..4]);
    assert_eq!(
        VerifierKey::parse_log(&text),
        Err(VerifierKeyError::OtherKind(KeyKind::Witness, KeyKind::Log))
    );
    let spell = |bytes: &[u8]| format!("{}+{}", witness.short(), encode_base64(bytes));
    let typed = [&[6], witness.bytes()].concat();
    assert_eq!(spell(&typed), text);
    for (wrong, error) in [
        (spell(&typed[..ML_DSA_KEY_BYTES]), VerifierKeyError::Form),
        (spell(&[&typed[..], &[0]].concat()), VerifierKeyError::Form),
        (spell(&[&[4], witness.bytes()].concat()), VerifierKeyError::Form),
        (spell(&[&typed[..ML_DSA_KEY_BYTES], &[typed[ML_DSA_KEY_BYTES] ^ 1]].concat()), VerifierKeyError::Id),
        (text.replacen("witness.", "w.", 1), VerifierKeyError::Id),
    ] {
        assert_eq!(VerifierKey::parse(&wrong), Err(error));
    }
    // No key that the id names has signed what an Ed25519 key of the same name has, and the other way round.
    let ed25519 = named(name, KeyKind::Witness, &key(7));
    assert_ne!(witness.id(), ed25519.id());
    let both = [witness.clone(), ed25519.clone()];
    let mut made = Note::new(log_text());
    made.add(ml_dsa_cosign(name, 7, &log_text(), 5));
    made.add(NoteSignature::sign(&log_text(), &ed25519, &key(7), 6));
    let found = made.signers(&both).unwrap().into_iter().map(|signer| (signer.key, signer.time));
    assert_eq!(found.collect::<Vec<_>>(), [(witness, Some(5)), (ed25519, Some(6))]);
}

fn log_text() -> String {
    DESIGN_NOTE.split_once("\n\n").expect("a note").0.to_owned() + "\n"
}

#[test]
fn numbers_have_one_spelling() {
    for (text, number) in [("0", Some(0)), ("1", Some(1)), ("9223372036854775807", Some(MAX_NUMBER))] {
        assert_eq!(parse_number(text), number);
    }
    for text in ["", "+1", "-1", "01", "00", " 1", "1 ", "1.0", "0x1", "9223372036854775808", "１", "1_0"] {
        assert_eq!(parse_number(text), None, "{text:?}");
    }
}
