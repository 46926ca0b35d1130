//! Signatures for other programs (D101, D102): the same as theirs, in one form only, and never one of ours (D34).

use countersign_core::documents::signatures::OtherFormatsFile;
use countersign_core::values::bounds::{OTHER_FORMATS_BYTES, SIGNERS_FILE_ENTRIES};
use countersign_core::values::other_format::{
    FormatError, FormatMessage, OpenpgpPair, OtherFormat, Pair, ReleaseSums,
};
use countersign_core::values::path::RepoPath;
use countersign_core::values::{digest::Sha512, key::PublicKey, key::Signature, other_format};
use countersign_core::values::{key::SecretKey, time::Timestamp};
use countersign_testing::evidence::noon;
use countersign_testing::{
    INDEX, alice, at, bob, documents::other_formats, format_text, key, path, sign_format, signed_request,
};
use serde_json::Value;

const SUMS: &str = include_str!("../../vectors/formats/SHA256SUMS");
const SSH: &str = include_str!("../../vectors/formats/SHA256SUMS.sig");
const MINISIGN: &str = include_str!("../../vectors/formats/SHA256SUMS.minisig");
const LEGACY: &str = include_str!("../../vectors/formats/SHA256SUMS.legacy.minisig");
const MINISIGN_KEY: &str = include_str!("../../vectors/formats/minisign.pub");

fn verify(format: OtherFormat, text: &str) -> Result<(), FormatError> {
    let index = path(INDEX);
    format.verify(
        text,
        &alice().public_key(),
        &ReleaseSums { index: &index, mirrored_on: noon(), text: SUMS },
    )
}

#[test]
fn ours_are_those_of_the_other_programs_byte_for_byte() {
    assert_eq!(format_text(OtherFormat::Ssh, &alice(), INDEX, SUMS), SSH);
    assert_eq!(format_text(OtherFormat::Minisign, &alice(), INDEX, SUMS), MINISIGN);
    assert_eq!(other_format::write_public_key(&alice().public_key()), MINISIGN_KEY);
    assert_eq!(verify(OtherFormat::Ssh, SSH), Ok(()));
    assert_eq!(verify(OtherFormat::Minisign, MINISIGN), Ok(()));
}

#[test]
fn minisigns_legacy_kind_is_refused_although_minisign_accepts_it() {
    assert_eq!(verify(OtherFormat::Minisign, LEGACY), Err(FormatError::Form));
    // Nor does it help to call it prehashed.
    let prehashed = MINISIGN.lines().nth(1).unwrap();
    let posed = format!("{}{}", &prehashed[..4], &LEGACY.lines().nth(1).unwrap()[4..]);
    let posed = LEGACY.replace(LEGACY.lines().nth(1).unwrap(), &posed);
    assert_ne!(verify(OtherFormat::Minisign, &posed), Ok(()));
}

#[test]
fn no_other_spelling_of_a_signature_is_accepted() {
    let openpgp = format_text(OtherFormat::Openpgp, &alice(), INDEX, SUMS);
    for (format, text) in
        [(OtherFormat::Ssh, SSH), (OtherFormat::Minisign, MINISIGN), (OtherFormat::Openpgp, openpgp.as_str())]
    {
        for (i, byte) in text.bytes().enumerate() {
            for other in [byte ^ 1, b'A', b'\n', b' ', b'='] {
                let mut changed = text.as_bytes().to_vec();
                changed[i] = other;
                let Ok(changed) = String::from_utf8(changed) else { continue };
                assert!(changed == text || verify(format, &changed).is_err(), "{format}: {changed}");
            }
            let mut shorter = text.to_owned();
            shorter.remove(i);
            assert_eq!(verify(format, &shorter), Err(FormatError::Form), "{format}: {shorter}");
            let mut longer = text.to_owned();
            longer.insert(i, '\n');
            assert_eq!(verify(format, &longer), Err(FormatError::Form), "{format}: {longer}");
        }
        for changed in [format!("{text}\n"), format!(" {text}"), text.replace('\n', "\r\n"), String::new()] {
            assert_eq!(verify(format, &changed), Err(FormatError::Form), "{format}: {changed}");
        }
        assert_eq!(verify(format, &"A".repeat(OTHER_FORMATS_BYTES)), Err(FormatError::Form));
    }
    // The same blob in lines of another length.
    let unwrapped = SSH.replacen("\n8dl", "8dl", 1);
    assert_ne!(unwrapped, SSH);
    assert_eq!(verify(OtherFormat::Ssh, &unwrapped), Err(FormatError::Form));
}

/// The error where a signature is of another text. One of OpenPGP has two bytes of what it signs in it.
fn changed_text_error(format: OtherFormat) -> FormatError {
    if format == OtherFormat::Openpgp { FormatError::Form } else { FormatError::Signature }
}

#[test]
fn a_signature_is_of_one_key_one_text_and_in_minisign_one_release() {
    let (index, other_index) = (path(INDEX), path(&INDEX.replace("v1", "v2")));
    let sums = ReleaseSums { index: &index, mirrored_on: noon(), text: SUMS };
    for format in OtherFormat::ALL {
        let text = format_text(format, &alice(), INDEX, SUMS);
        let bobs = bob().public_key();
        assert_eq!(format.verify(&text, &bobs, &sums), Err(FormatError::Form), "{format}");
        // In the form of bob's, but signed by alice.
        let posed = match format {
            OtherFormat::Ssh => other_format::write_ssh(
                &bobs,
                &other_format::parse_ssh(&text, &alice().public_key()).unwrap(),
            ),
            OtherFormat::Openpgp => {
                let pair = other_format::parse_openpgp(&text, &alice().public_key(), &sums).unwrap();
                other_format::write_openpgp(&bobs, &sums, &pair)
            }
            OtherFormat::Minisign => {
                let comment = other_format::trusted_comment(&index);
                let pair = other_format::parse_minisign(&text, &alice().public_key(), &comment).unwrap();
                other_format::write_minisign(&bobs, &comment, &pair)
            }
        };
        assert_eq!(format.verify(&posed, &bobs, &sums), Err(FormatError::Signature), "{format}");
        let other = ReleaseSums { text: "other\n", ..sums };
        let refused = format.verify(&text, &alice().public_key(), &other);
        assert_eq!(refused, Err(changed_text_error(format)), "{format}");
    }
    let elsewhere = ReleaseSums { index: &other_index, mirrored_on: noon(), text: SUMS };
    let moved = OtherFormat::Minisign.verify(MINISIGN, &alice().public_key(), &elsewhere);
    assert_eq!(moved, Err(FormatError::Form));
    // The comment is signed: with another one in its place, the text has the right form for the other release.
    let renamed = MINISIGN.replace("/tag/v1/", "/tag/v2/");
    let moved = OtherFormat::Minisign.verify(&renamed, &alice().public_key(), &elsewhere);
    assert_eq!(moved, Err(FormatError::Signature));
}

/// What a signer's key signs, and how it is checked.
struct SignedKind {
    name: &'static str,
    sign: fn() -> Signature,
    accepts: fn(&PublicKey, &Signature) -> bool,
}

fn digest() -> Sha512 {
    Sha512::of(SUMS.as_bytes())
}

fn request_digest() -> Sha512 {
    let request = signed_request(&alice(), at("2026-02-01T12:00:00Z"), SUMS);
    Sha512::of(format!("{}##{}##{}", request.timestamp, request.nonce, request.payload).as_bytes())
}

fn global() -> FormatMessage {
    let signature = other_format::minisign_message(SUMS).sign_with(&alice());
    other_format::global_message(&signature, &other_format::trusted_comment(&path(INDEX)))
}

fn openpgp_sums(index: &RepoPath) -> ReleaseSums<'_> {
    ReleaseSums { index, mirrored_on: noon(), text: SUMS }
}

const SIGNED_KINDS: [SignedKind; 7] = [
    SignedKind {
        name: "a document",
        sign: || alice().sign(&digest()),
        accepts: |key, signature| key.verify(&digest(), signature).is_ok(),
    },
    SignedKind {
        name: "a request",
        sign: || alice().sign(&request_digest()),
        accepts: |key, signature| key.verify(&request_digest(), signature).is_ok(),
    },
    SignedKind {
        name: "ssh",
        sign: || other_format::ssh_message(SUMS).sign_with(&alice()),
        accepts: |key, signature| other_format::ssh_message(SUMS).is_signed_by(key, signature),
    },
    SignedKind {
        name: "minisign",
        sign: || other_format::minisign_message(SUMS).sign_with(&alice()),
        accepts: |key, signature| other_format::minisign_message(SUMS).is_signed_by(key, signature),
    },
    SignedKind {
        name: "minisign's comment",
        sign: || global().sign_with(&alice()),
        accepts: |key, signature| global().is_signed_by(key, signature),
    },
    SignedKind {
        name: "openpgp",
        sign: || {
            let index = path(INDEX);
            other_format::openpgp_message(&alice().public_key(), &openpgp_sums(&index)).sign_with(&alice())
        },
        accepts: |key, signature| {
            let index = path(INDEX);
            other_format::openpgp_message(key, &openpgp_sums(&index)).is_signed_by(key, signature)
        },
    },
    SignedKind {
        name: "openpgp's certificate",
        sign: || other_format::certification_message(&alice().public_key()).sign_with(&alice()),
        accepts: |key, signature| other_format::certification_message(key).is_signed_by(key, signature),
    },
];

/// All of them over the same text, which is the best that an attacker can hope for.
#[test]
fn no_signature_of_one_kind_counts_as_another() {
    for signed in &SIGNED_KINDS {
        for read in &SIGNED_KINDS {
            let is_accepted = (read.accepts)(&alice().public_key(), &(signed.sign)());
            assert_eq!(is_accepted, signed.name == read.name, "{} as {}", signed.name, read.name);
        }
    }
}

#[test]
fn the_signed_bytes_differ_in_length_hash_or_beginning() {
    let ssh = other_format::ssh_message(SUMS);
    assert_eq!(ssh.as_bytes().len(), 96);
    assert!(ssh.as_bytes().starts_with(b"SSHSIG\0\0\0\x04file"));
    // As long as a digest of ours, but of another hash over the same text.
    let prehashed = other_format::minisign_message(SUMS);
    assert_eq!(prehashed.as_bytes().len(), 64);
    assert_ne!(prehashed.as_bytes(), digest().as_bytes());
    // A path is not empty, and even without one there is a comment.
    assert!(global().as_bytes().len() > 64 + "countersign ".len());
}

/// A comment of 32 bytes would make minisign's second message as long as that of SSHSIG. Every comment is longer.
#[test]
fn minisigns_second_message_is_longer_than_all_others() {
    let signature = other_format::minisign_message(SUMS).sign_with(&alice());
    let shortest = other_format::trusted_comment(&path("http/a/1/svc.index.json"));
    let message = other_format::global_message(&signature, &shortest);
    assert!(message.as_bytes().len() > other_format::ssh_message(SUMS).as_bytes().len());
}

#[test]
fn a_pair_that_is_put_together_from_two_signatures_is_refused() {
    let (index, comment) = (path(INDEX), other_format::trusted_comment(&path(INDEX)));
    let one = other_format::parse_minisign(MINISIGN, &alice().public_key(), &comment).unwrap();
    let other = format_text(OtherFormat::Minisign, &alice(), INDEX, "other\n");
    let other = other_format::parse_minisign(&other, &alice().public_key(), &comment).unwrap();
    let mixed = Pair { signature: one.signature, global: other.global };
    let mixed = other_format::write_minisign(&alice().public_key(), &comment, &mixed);
    let sums = ReleaseSums { index: &index, mirrored_on: noon(), text: SUMS };
    let refused = OtherFormat::Minisign.verify(&mixed, &alice().public_key(), &sums);
    assert_eq!(refused, Err(FormatError::Signature));
}

#[test]
fn what_does_not_verify_is_left_out() {
    let mut file = other_formats();
    let (index, stranger) = (path(INDEX), key(9).public_key());
    let sums = ReleaseSums { index: &index, mirrored_on: noon(), text: "sums" };
    assert_eq!(file.keep_verifying(&sums), file);
    let right = file.clone();
    file.entries.insert(stranger, right.entries[&alice().public_key()].clone());
    assert_eq!(file.keep_verifying(&sums), right);
    file.entries.get_mut(&alice().public_key()).unwrap().remove(&OtherFormat::Ssh);
    assert_eq!(file.keep_verifying(&sums).count(OtherFormat::Ssh), 2);
    assert_eq!(file.keep_verifying(&sums).count(OtherFormat::Minisign), 3);
    assert_eq!(file.keep_verifying(&sums).count(OtherFormat::Openpgp), 3);
}

/// The signatures of as many signers as there can be, on a release with a long path of this character.
fn file_of_everyone(character: &str) -> OtherFormatsFile {
    let dir = character.repeat(100);
    let longest = format!("https/example.org/443/{}/svc.index.json", [dir.as_str(); 8].join("/"));
    assert!(path(&longest).parent().unwrap().check_storable_dir().is_ok());
    let texts = OtherFormat::ALL.map(|format| (format, format_text(format, &alice(), &longest, SUMS)));
    let mut file = OtherFormatsFile::default();
    for number in 0..SIGNERS_FILE_ENTRIES {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        let public = countersign_core::values::key::SecretKey::from_seed(&seed).public_key();
        file.entries.insert(public, texts.clone().into());
    }
    file
}

/// JSON writes a quotation mark as two characters. So the last signers may have to sign without other formats.
#[test]
fn a_file_of_every_signer_is_too_large_only_if_its_path_is_full_of_quotation_marks() {
    let written = file_of_everyone("\"").write();
    assert!(written.len() > OTHER_FORMATS_BYTES, "{} bytes", written.len());
    assert!(OtherFormatsFile::parse(&written).is_err());
    let mut file = file_of_everyone("d");
    let texts = file.entries.values().next().unwrap().clone();
    let written = file.write();
    assert!(written.len() <= OTHER_FORMATS_BYTES, "{} bytes", written.len());
    assert_eq!(OtherFormatsFile::parse(&written), Ok(file.clone()));
    file.entries.insert(bob().public_key(), texts);
    assert!(OtherFormatsFile::parse(&file.write()).is_err(), "one key too many");
    let padded = [written.as_slice(), &vec![b' '; OTHER_FORMATS_BYTES + 1 - written.len()]].concat();
    assert!(OtherFormatsFile::parse(&padded[..OTHER_FORMATS_BYTES]).is_ok());
    assert!(OtherFormatsFile::parse(&padded).is_err());
}

fn unhex(text: &Value) -> Vec<u8> {
    let digits = text.as_str().expect("hexadecimal digits").as_bytes();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn openpgp_packets_are_those_that_the_stock_tools_accepted() {
    let vectors: Value = serde_json::from_str(include_str!("../../vectors/formats/openpgp.json")).unwrap();
    let (index, text) = (path(INDEX), vectors["sums"].as_str().unwrap());
    let mirrored_on = Timestamp::from_unix_seconds(vectors["signature_time"].as_i64().unwrap()).unwrap();
    let sums = ReleaseSums { index: &index, mirrored_on, text };
    for vector in vectors["keys"].as_array().unwrap() {
        let secret = SecretKey::from_seed(&unhex(&vector["seed"]).try_into().unwrap());
        let key = secret.public_key();
        assert_eq!(other_format::openpgp_fingerprint(&key).to_vec(), unhex(&vector["fingerprint"]));
        assert_eq!(key.to_string(), vector["user_id"].as_str().unwrap());
        let [named, signed] =
            [other_format::certification_message(&key), other_format::openpgp_message(&key, &sums)];
        assert_eq!(named.as_bytes(), unhex(&vector["self_digest"]));
        assert_eq!(signed.as_bytes(), unhex(&vector["data_digest"]));
        let (certification, signature) = (named.sign_with(&secret), signed.sign_with(&secret));
        assert_eq!(certification.to_bytes(), unhex(&vector["self_signature"]));
        assert_eq!(signature.to_bytes(), unhex(&vector["data_signature"]));
        let certificate = other_format::openpgp_certificate(&key, &certification);
        assert_eq!(certificate, unhex(&vector["certificate"]));
        let packet = other_format::openpgp_packet(&key, &sums, &signature);
        assert_eq!(packet, unhex(&vector["signature_packet"]));
    }
}

#[test]
fn openpgp_numbers_without_leading_zeros_are_read_back() {
    let (index, key) = (path(INDEX), alice().public_key());
    let sums = openpgp_sums(&index);
    for zeros in [0, 1, 2, 31, 32] {
        let mut bytes = [0x7f; 64];
        bytes[..zeros].fill(0);
        bytes[32..32 + zeros].fill(0);
        let signature = Signature::from_bytes(bytes);
        let pair = OpenpgpPair { certification: signature, signature };
        let text = other_format::write_openpgp(&key, &sums, &pair);
        assert_eq!(other_format::parse_openpgp(&text, &key, &sums), Some(pair), "{zeros}");
    }
}

#[test]
fn openpgps_time_ends_in_2106_and_later_releases_have_the_last_one() {
    let index = path(INDEX);
    let text_at = |time: &str| {
        sign_format(
            OtherFormat::Openpgp,
            &alice(),
            &ReleaseSums { mirrored_on: at(time), ..openpgp_sums(&index) },
        )
    };
    assert_ne!(text_at("2106-02-07T06:28:14Z"), text_at("2106-02-07T06:28:15Z"));
    assert_eq!(text_at("2106-02-07T06:28:15Z"), text_at("2300-01-01T00:00:00Z"));
}
