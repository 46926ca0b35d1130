//! Signatures for other programs (D101, D102): the same as theirs, in one form only, and never one of ours (D34).

use countersign_core::documents::signatures::OtherFormatsFile;
use countersign_core::values::bounds::{OPENPGP_FILES, OTHER_FORMATS_BYTES, SIGNERS_FILE_ENTRIES};
use countersign_core::values::other_format::{
    FileSignature, FormatError, FormatMessage, OpenpgpFile, OpenpgpSignatures, OtherFormat, Pair, ReleaseSums,
};
use countersign_core::values::path::RepoPath;
use countersign_core::values::{digest::Sha256, digest::Sha512, key::Signature, other_format};
use countersign_core::values::{key::SecretKey, time::Timestamp};
use countersign_testing::evidence::noon;
use countersign_testing::{
    INDEX, alice, at, bob, documents::other_formats, format_text, key, path, sign_files, sign_format,
    signed_request,
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
    let index = path(INDEX);
    let with_files = sign_files(OtherFormat::Openpgp, &alice(), &openpgp_sums(&index), &[b"one", b"two"]);
    assert_eq!(verify(OtherFormat::Openpgp, &with_files), Ok(()));
    for (format, text) in [
        (OtherFormat::Ssh, SSH),
        (OtherFormat::Minisign, MINISIGN),
        (OtherFormat::Openpgp, openpgp.as_str()),
        (OtherFormat::Openpgp, with_files.as_str()),
    ] {
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

/// What a signer's key signs.
enum Signed {
    Digest(Sha512),
    Message(FormatMessage),
}

impl Signed {
    fn sign(&self) -> Signature {
        match self {
            Self::Digest(digest) => alice().sign(digest),
            Self::Message(message) => message.sign_with(&alice()),
        }
    }

    fn accepts(&self, signature: &Signature) -> bool {
        match self {
            Self::Digest(digest) => alice().public_key().verify(digest, signature).is_ok(),
            Self::Message(message) => message.is_signed_by(&alice().public_key(), signature),
        }
    }
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

/// All of them over the same text, which is the best that an attacker can hope for.
#[test]
fn no_signature_of_one_kind_counts_as_another() {
    let (index, key) = (path(INDEX), alice().public_key());
    let sums = openpgp_sums(&index);
    let kinds = [
        ("a document", Signed::Digest(digest())),
        ("a request", Signed::Digest(request_digest())),
        ("ssh", Signed::Message(other_format::ssh_message(SUMS))),
        ("minisign", Signed::Message(other_format::minisign_message(SUMS))),
        ("minisign's comment", Signed::Message(global())),
        ("openpgp", Signed::Message(other_format::openpgp_message(&key, &sums))),
        ("openpgp's certificate", Signed::Message(other_format::certification_message(&key))),
        ("openpgp's file", Signed::Message(read(SUMS.as_bytes()).message(&sums))),
    ];
    for (name, signed) in &kinds {
        for (other, read) in &kinds {
            assert_eq!(read.accepts(&signed.sign()), name == other, "{name} as {other}");
        }
    }
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
    // As many signers as fit with all files that can be signed by themselves.
    let index = path(INDEX);
    let (contents, text) = numbered(OPENPGP_FILES);
    let sums = ReleaseSums { text: &text, ..openpgp_sums(&index) };
    let lines =
        sign_numbered(&alice(), &sums, &contents)[sign_numbered(&alice(), &sums, &[]).len()..].to_owned();
    let mut with_files = OtherFormatsFile::default();
    for (key, texts) in file.entries.iter().take(130) {
        let mut texts = texts.clone();
        texts.get_mut(&OtherFormat::Openpgp).unwrap().push_str(&lines);
        with_files.entries.insert(*key, texts);
    }
    let size = with_files.write().len();
    assert!(size <= OTHER_FORMATS_BYTES && size + size / 20 > OTHER_FORMATS_BYTES, "{size} bytes");
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
        let content = vectors["file"].as_str().unwrap().as_bytes();
        let text = sign_files(OtherFormat::Openpgp, &secret, &sums, &[content]);
        let file = other_format::parse_openpgp(&text, &key, &sums).unwrap().files[&Sha256::of(content)];
        assert_eq!(file.digest.as_bytes().to_vec(), unhex(&vectors["file_digest"]));
        assert_eq!(file.signature.to_bytes(), unhex(&vector["file_signature"]));
        let packet = other_format::openpgp_file_packet(&key, &sums, &file);
        assert_eq!(packet, unhex(&vector["file_packet"]));
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
        let signed = OpenpgpSignatures { certification: signature, signature, files: Default::default() };
        let text = other_format::write_openpgp(&key, &sums, &signed);
        assert_eq!(other_format::parse_openpgp(&text, &key, &sums), Some(signed), "{zeros}");
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

// Files by themselves (D254).

fn read(content: &[u8]) -> OpenpgpFile {
    let mut file = OpenpgpFile::default();
    content.chunks(3).for_each(|block| file.update(block));
    file
}

/// So many different files, and the sums of a release of them.
fn numbered(count: usize) -> (Vec<String>, String) {
    let contents: Vec<String> = (0..count).map(|number| format!("content {number}")).collect();
    let line = |content: &String| format!("{}  file of {content}\n", Sha256::of(content.as_bytes()));
    let sums = contents.iter().map(line).collect();
    (contents, sums)
}

fn sign_numbered(key: &SecretKey, sums: &ReleaseSums<'_>, contents: &[String]) -> String {
    let contents: Vec<&[u8]> = contents.iter().map(String::as_bytes).collect();
    sign_files(OtherFormat::Openpgp, key, sums, &contents)
}

fn verify_openpgp(text: &str, sums: &ReleaseSums<'_>) -> Result<(), FormatError> {
    OtherFormat::Openpgp.verify(text, &alice().public_key(), sums)
}

#[test]
fn a_signer_signs_each_content_of_the_release_once_and_nothing_else() {
    let (index, (contents, text)) = (path(INDEX), numbered(3));
    let sums = ReleaseSums { text: &text, ..openpgp_sums(&index) };
    let offered = [&contents[..], &contents[..1], &["of another release".to_owned()]].concat();
    let signed = sign_numbered(&alice(), &sums, &offered);
    assert_eq!(verify_openpgp(&signed, &sums), Ok(()));
    let parsed = other_format::parse_openpgp(&signed, &alice().public_key(), &sums).unwrap();
    assert_eq!(parsed.files.len(), 3);
    for content in &contents {
        let file = &parsed.files[&Sha256::of(content.as_bytes())];
        assert_eq!(file.digest.as_bytes(), read(content.as_bytes()).message(&sums).as_bytes());
    }
    // All but the lines is what signs the sums alone.
    assert!(signed.starts_with(&sign_numbered(&alice(), &sums, &[])));
    for format in [OtherFormat::Ssh, OtherFormat::Minisign] {
        let read: Vec<&[u8]> = contents.iter().map(String::as_bytes).collect();
        assert_eq!(sign_files(format, &alice(), &sums, &read), sign_format(format, &alice(), &sums));
    }
    // Every signer signs the same digest, and another one in a release of another time.
    let bobs = sign_numbered(&bob(), &sums, &contents);
    let bobs = other_format::parse_openpgp(&bobs, &bob().public_key(), &sums).unwrap();
    let later = ReleaseSums { mirrored_on: at("2026-02-01T12:00:01Z"), ..sums };
    for (content, file) in &parsed.files {
        assert_eq!(bobs.files[content].digest, file.digest);
        assert_ne!(bobs.files[content].signature, file.signature);
    }
    assert_ne!(read(b"content 1").message(&later), read(b"content 1").message(&sums));
}

#[test]
fn lines_have_one_form_one_order_and_signatures_of_the_signer() {
    let (index, (contents, text)) = (path(INDEX), numbered(3));
    let sums = ReleaseSums { text: &text, ..openpgp_sums(&index) };
    let signed = sign_numbered(&alice(), &sums, &contents);
    let alone = sign_numbered(&alice(), &sums, &[]);
    let lines: Vec<&str> = signed[alone.len()..].split_inclusive('\n').collect();
    let with = |lines: &[&str]| verify_openpgp(&(alone.clone() + &lines.concat()), &sums);
    assert_eq!(with(&lines), Ok(()));
    assert_eq!(with(&lines[1..]), Ok(()), "some files are enough");
    let without_end = lines[2].trim_end();
    let capitals = lines[2].replacen(&lines[2][..64], &lines[2][..64].to_ascii_uppercase(), 1);
    let malformed = [
        vec![lines[0], lines[0]],
        vec![lines[1], lines[0]],
        vec![lines[0], "\n"],
        vec![lines[0], lines[1], without_end],
        vec![&capitals],
        vec![&lines[2][1..]],
    ];
    for lines in malformed {
        assert_eq!(with(&lines), Err(FormatError::Form), "{lines:?}");
    }
    // Words in the wrong places, of another signer, or of another release.
    let [content, digest, signature] = lines[0].trim_end().split(' ').collect::<Vec<_>>()[..] else {
        panic!()
    };
    let other = lines[1].split(' ').nth(1).unwrap();
    let bobs = sign_numbered(&bob(), &sums, &contents);
    let bobs = bobs.lines().find(|line| line.starts_with(content)).unwrap().split(' ').nth(2).unwrap();
    for (digest, signature) in [(other, signature), (content, signature), (digest, bobs)] {
        let line = format!("{content} {digest} {signature}\n");
        assert_eq!(with(&[&line]), Err(FormatError::FileSignature), "{line}");
    }
    let strange = format!("{} {digest} {signature}\n", Sha256::of(b"elsewhere"));
    assert_eq!(with(&[&strange]), Err(FormatError::NoSuchFile));
    // A digest is the signer's word. Without the content no one can say that it is wrong.
    let swapped = format!("{content} {}", &lines[1][65..]);
    assert_eq!(with(&[&swapped]), Ok(()));
}

#[test]
fn no_file_is_signed_by_itself_in_a_release_of_too_many() {
    let index = path(INDEX);
    let (contents, text) = numbered(OPENPGP_FILES);
    let sums = ReleaseSums { text: &text, ..openpgp_sums(&index) };
    let signed = sign_numbered(&alice(), &sums, &contents);
    assert_eq!(verify_openpgp(&signed, &sums), Ok(()));
    assert_eq!(signed.lines().filter(|line| line.len() > 64).count(), OPENPGP_FILES);
    let (contents, text) = numbered(OPENPGP_FILES + 1);
    let sums = ReleaseSums { text: &text, ..openpgp_sums(&index) };
    assert_eq!(other_format::openpgp_contents(&sums), None);
    let alone = sign_numbered(&alice(), &sums, &contents);
    assert_eq!(alone, sign_numbered(&alice(), &sums, &[]));
    // What another program makes is refused.
    let mut made = other_format::parse_openpgp(&alone, &alice().public_key(), &sums).unwrap();
    for content in &contents {
        let message = read(content.as_bytes()).message(&sums);
        let (digest, signature) =
            (Sha256::from_bytes(message.as_bytes().try_into().unwrap()), message.sign_with(&alice()));
        made.files.insert(Sha256::of(content.as_bytes()), FileSignature { digest, signature });
        let text = other_format::write_openpgp(&alice().public_key(), &sums, &made);
        let is_longer = made.files.len() > OPENPGP_FILES;
        let error = if is_longer { FormatError::Form } else { FormatError::NoSuchFile };
        assert_eq!(verify_openpgp(&text, &sums), Err(error));
    }
    // Copies are one content.
    let (contents, mut text) = numbered(OPENPGP_FILES);
    text += &text.replace("file of", "copy of");
    let sums = ReleaseSums { text: &text, ..openpgp_sums(&index) };
    assert_eq!(verify_openpgp(&sign_numbered(&alice(), &sums, &contents), &sums), Ok(()));
}
