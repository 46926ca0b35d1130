//! Public keys, signatures and base64 (D1–D3).

use std::collections::BTreeSet;

use countersign_core::documents::layout;
use countersign_core::log::checkpoint::{Checkpoint, SignedCheckpoint};
use countersign_core::log::{note::Note, note::NoteSignature, policy::Policy};
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::key::{PublicKey, SecretKey, Signature, decode_base64, encode_base64};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{bounds::NOTE_SIGNATURES, path::RepoPath, shown::is_unseen, time::Timestamp};
use countersign_server::api::routing::parse_tail;

use crate::checks::promises::{assert_path, assert_shown};

pub fn check_keys(data: &[u8]) {
    check_bytes(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(bytes) = decode_base64(text) {
        // Canonical: the bytes have no other text, except the one without padding.
        let padded = encode_base64(&bytes);
        assert!(text == padded || text == padded.trim_end_matches('='), "{text:?}");
    }
    if let Ok(key) = PublicKey::parse(text) {
        check_key(&key);
        let is_ssh = text.starts_with("ssh-ed25519 ");
        assert!(is_ssh || text.trim_end_matches('=') == key.to_string().trim_start_matches(prefix(text)));
    }
    if let Ok(key) = PublicKey::parse_prefixed(text) {
        assert_eq!(PublicKey::parse(text), Ok(key));
    }
    if let Ok(signature) = Signature::parse(text) {
        assert_eq!(Signature::parse(&signature.to_base64()), Ok(signature));
        assert_eq!(Signature::parse(&signature.to_header()), Ok(signature));
        assert!(text == signature.to_base64() || text == signature.to_header());
    }
    check_digest::<32>(text, Sha256::parse);
    check_digest::<64>(text, Sha512::parse);
    if let Some(digest) = Sha512::parse_prefixed(text) {
        assert_eq!(digest.to_prefixed(), text);
    }
}

/// The prefix that the text lacks.
fn prefix(text: &str) -> &'static str {
    if text.starts_with("svc-pub:") { "" } else { "svc-pub:" }
}

fn check_digest<const N: usize>(
    text: &str,
    parse: fn(&str) -> Option<countersign_core::values::digest::HexDigest<N>>,
) {
    if let Some(digest) = parse(text) {
        assert_eq!(digest.to_string(), text, "digests have one spelling");
        assert_eq!(text.len(), 2 * N);
    }
}

fn check_key(key: &PublicKey) {
    assert_eq!(PublicKey::from_bytes(*key.as_bytes()).as_ref(), Ok(key));
    for spelling in [key.to_string(), key.to_base64(), key.to_ssh_line(""), key.to_ssh_line("a comment")] {
        assert_eq!(PublicKey::parse(&spelling).as_ref(), Ok(key), "{spelling}");
    }
    assert!(!is_of_small_order(key.as_bytes()));
}

fn check_bytes(data: &[u8]) {
    assert_eq!(decode_base64(&encode_base64(data)).as_deref(), Some(data));
    let Some((seed, rest)) = data.split_first_chunk::<32>() else { return };
    if let Ok(key) = PublicKey::from_bytes(*seed) {
        check_key(&key);
        if let Some((bytes, content)) = rest.split_first_chunk::<64>() {
            // A random signature never verifies, least of all for a key whose secret is unknown.
            assert!(key.verify(&Sha512::of(content), &Signature::from_bytes(*bytes)).is_err());
        }
    }
    let secret = SecretKey::from_seed(seed);
    check_key(&secret.public_key());
    let (digest, signature) = (Sha512::of(rest), secret.sign(&Sha512::of(rest)));
    assert!(secret.public_key().verify(&digest, &signature).is_ok());
    if let Some((at, bit)) = rest.first().map(|byte| (usize::from(byte >> 3) % 64, byte & 7)) {
        let mut bytes: [u8; 64] = decode_base64(&signature.to_base64())
            .expect("written by us")
            .try_into()
            .expect("a signature has 64 bytes");
        bytes[at] ^= 1 << bit;
        assert!(secret.public_key().verify(&digest, &Signature::from_bytes(bytes)).is_err());
    }
}

/// The encodings of the eight points of small order, by their y-coordinate, which the sign bit does not change.
fn is_of_small_order(bytes: &[u8; 32]) -> bool {
    const ORDER_8: [&str; 2] = [
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    ];
    let mut y = *bytes;
    y[31] &= 0x7f;
    let mut small = [[0; 32], [0; 32], [0xff; 32], [0xff; 32], [0xff; 32]];
    small[1][0] = 1;
    for (point, lowest) in small[2..].iter_mut().zip([0xec, 0xed, 0xee]) {
        (point[0], point[31]) = (lowest, 0x7f);
    }
    let order_8 = ORDER_8.map(|hex| *Sha256::parse(hex).expect("hexadecimal").as_bytes());
    small.contains(&y) || order_8.contains(&y)
}

// Signed notes, keys of logs and witnesses, and checkpoints (D84).

pub fn check_notes(data: &[u8]) {
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

// Mirror-relative paths (D6), checked against a second implementation of the rules.

pub fn check_path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = RepoPath::parse(text);
    check_tail(text);
    assert_eq!(parsed.as_ref().ok().map(RepoPath::as_str), normalise(text).as_deref(), "{text:?}");
    let Ok(path) = parsed else { return };
    assert_path(&path);
    check_relations(&path);
    // The server stores only under paths of URLs, which have a scheme, a host and a port.
    let is_on_server =
        matches!(path.segments().next(), Some("http" | "https")) && path.segments().count() >= 3;
    if is_on_server && path.check_storable_dir().is_ok() {
        check_storable(&path);
    }
}

/// A path inside the target of a request is decoded once.
fn check_tail(text: &str) {
    let Ok(path) = parse_tail(text) else { return };
    assert_path(&path);
    let encoded: String = path.as_str().bytes().map(|byte| format!("%{byte:02X}")).collect();
    assert_eq!(parse_tail(&encoded).expect("every path can be encoded"), path);
    if !text.contains('%') {
        assert_eq!(RepoPath::parse(text), Ok(path));
    }
}

/// Normalises a path by the rules of D6.
fn normalise(text: &str) -> Option<String> {
    const MAX_BYTES: usize = 1_024;
    let text = text.strip_suffix('/').unwrap_or(text);
    let mut segments: Vec<String> = text.split('/').map(str::to_owned).collect();
    let is_bad = |segment: &String| {
        let has_bad_char = segment.chars().any(|c| c == '\\' || c.is_control());
        segment.is_empty() || segment == "." || segment == ".." || has_bad_char
    };
    if segments.iter().any(is_bad) || segments.iter().any(|s| s.eq_ignore_ascii_case(".git")) {
        return None;
    }
    let scheme = segments[0].to_ascii_lowercase();
    if scheme == "http" || scheme == "https" {
        if segments.len() > 1 {
            segments[1] = segments[1].to_ascii_lowercase();
            let port = segments.get(2).and_then(|port| port.parse::<u32>().ok().map(|n| (n, port)));
            let is_port = port.is_some_and(|(n, text)| (1..=65_535).contains(&n) && n.to_string() == *text);
            if !is_port {
                let default = if scheme == "http" { "80" } else { "443" };
                segments.insert(2, default.to_owned());
            }
        }
        segments[0] = scheme;
    }
    let joined = segments.join("/");
    (text.len() <= MAX_BYTES && joined.len() <= MAX_BYTES && segments.len() <= 64).then_some(joined)
}

fn check_relations(path: &RepoPath) {
    let ancestors: Vec<RepoPath> = path.self_and_ancestors().collect();
    assert_eq!(ancestors.len(), path.segments().count());
    for ancestor in &ancestors[1..] {
        assert!(path.is_inside(ancestor) && !ancestor.is_inside(path));
    }
    assert!(!path.is_inside(path));
    assert_eq!(path.segments().next_back(), Some(path.file_name()));
    if let Some(behind) = layout::signable_behind(path) {
        assert_eq!(behind.parent(), path.parent());
    }
    if let Some(project) = layout::project_with_signers_at(path) {
        assert!(path.is_inside(&project));
    }
    if let Some(project) = layout::project_of_active_signers(path) {
        assert_eq!(layout::active_signers(&project), *path);
    }
}

/// Checks a path where strangers can make the server store files. Clients can ask for every file there.
fn check_storable(path: &RepoPath) {
    for name in path.segments().skip(3) {
        let lower = name.to_ascii_lowercase();
        assert!(!lower.starts_with("svc.") && !lower.starts_with(".git\u{0}"), "{name:?}");
        assert!(name.len() <= 200 && !name.ends_with(['.', ' ']), "{name:?}");
        assert!(!name.chars().any(is_unseen), "{name:?}");
        let git_names = [".git", ".gitmodules", ".gitattributes", ".gitignore", ".mailmap", "git~1"];
        assert!(!git_names.contains(&lower.as_str()), "{name:?}");
    }
    let index = layout::index_in(path);
    let deepest = [
        layout::request_of(&layout::revocation_of(&index)),
        layout::pending_revocation_signatures_of(&index),
        layout::registration_of(&layout::superseded_signers(
            path,
            &countersign_core::values::digest::Sha512::of(b""),
        )),
        layout::history(path),
        layout::history_entry(path, 999_999),
    ];
    deepest.iter().for_each(assert_path);
}

// Policies, and how they count (D85).

pub fn check_policy(data: &[u8]) {
    let policy = match Policy::parse(data) {
        Ok(policy) => policy,
        Err(error) => return assert_shown(&error),
    };
    let written = policy.to_string();
    assert_eq!(Policy::parse(written.as_bytes()).as_ref(), Ok(&policy), "what we write can be read");
    assert_eq!(list_keys(&policy).len(), policy.logs().len() + policy.witnesses().len(), "a key occurs once");
    let witnesses = policy.quorum_witnesses();
    let everyone: BTreeSet<VerifierKey> = witnesses.iter().copied().flatten().cloned().collect();
    assert!(policy.is_met(&everyone));
    let Some(tolerance) = policy.tolerance() else { return assert!(everyone.is_empty()) };
    assert!(!policy.is_met(&BTreeSet::new()));
    // However many keys a witness has, its name is in one place, and counts once (D264).
    let names: BTreeSet<&str> = everyone.iter().map(VerifierKey::name).collect();
    assert_eq!(witnesses.len(), names.len());
    assert!((1..=names.len()).contains(&tolerance.needed) && tolerance.witnesses == names.len());
    assert!(tolerance.needed + tolerance.may_be_down <= names.len());
    assert!(tolerance.must_collude <= tolerance.needed);
    let times = || everyone.iter().cloned().zip(1..);
    let as_of = policy.as_of(times()).expect("everyone is enough");
    let since = |time: u64| -> BTreeSet<VerifierKey> {
        times().filter(|(_, signed)| *signed >= time).map(|(key, _)| key).collect()
    };
    assert!(policy.is_met(&since(as_of)) && !policy.is_met(&since(as_of + 1)));
}

/// The keys of logs and witnesses, without their names.
pub(super) fn list_keys(policy: &Policy) -> BTreeSet<Vec<u8>> {
    policy.log_keys().iter().chain(&policy.witness_keys()).map(|key| key.bytes().to_vec()).collect()
}

// Times (spec §5, D4), checked against a hand-written parser of RFC 3339.

const NANOS: i128 = 1_000_000_000;

pub fn check_timestamp(data: &[u8]) {
    if let Some((number, _)) = data.split_first_chunk::<8>() {
        check_seconds(i64::from_le_bytes(*number));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let epoch = Timestamp::from_unix_seconds(0).expect("in the range of timestamps");
    let parsed = Timestamp::parse(text);
    let nanos = parsed.as_ref().ok().map(|time| time.nanos_since(epoch));
    assert_eq!(nanos, read(text), "{text:?}");
    let Ok(time) = parsed else { return };
    for spelling in [time.to_string(), time.to_header()] {
        let again = Timestamp::parse(&spelling).expect("a time can be read");
        assert_eq!((again, again.to_string()), (time, time.to_string()), "{spelling}");
    }
    let header = time.to_header();
    assert!(header.ends_with("+00:00") && !header.contains('Z'));
    assert!(!header.contains('.') || !header.trim_end_matches("+00:00").ends_with('0'), "{header}");
    assert_eq!(Timestamp::from_unix_nanos(time.nanos_since(epoch)), Ok(time));
    let whole = time.to_whole_seconds();
    assert_eq!(whole.nanos_since(epoch), time.nanos_since(epoch).div_euclid(NANOS) * NANOS);
    assert_eq!(whole.unix_seconds(), time.unix_seconds());
    assert!(time.to_whole_milliseconds() <= time && time.to_whole_milliseconds() >= whole);
}

fn check_seconds(seconds: i64) {
    let Ok(time) = Timestamp::from_unix_seconds(seconds) else { return };
    assert_eq!(time.unix_seconds(), seconds);
    assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
    assert_eq!(time.to_string().len(), "2026-01-31T10:00:00Z".len());
}

/// Nanoseconds since 1970.
fn read(text: &str) -> Option<i128> {
    let number = |text: &str| {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<i128>().ok())?
    };
    if !text.is_ascii() || text.len() < 20 {
        return None;
    }
    let (clock, rest) = text.split_at(19);
    for (at, expected) in [(4, '-'), (7, '-'), (10, 'T'), (13, ':'), (16, ':')] {
        clock[at..].starts_with(expected).then_some(())?;
    }
    let part = |from: usize, to: usize| number(&clock[from..to]);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    let zone_at = rest.find(['Z', '+', '-'])?;
    let (fraction, zone) = rest.split_at(zone_at);
    let fraction = match fraction.strip_prefix('.') {
        // Digits beyond nanoseconds are dropped.
        Some(digits) => {
            let (kept, dropped) = digits.split_at(digits.len().min(9));
            dropped.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
            number(kept)? * 10_i128.pow(9 - kept.len() as u32)
        }
        None if fraction.is_empty() => 0,
        None => return None,
    };
    let offset = match zone.split_at(1) {
        ("Z", "") => 0,
        (sign, clock) if clock.len() == 5 && &clock[2..3] == ":" && sign != "Z" => {
            let (hours, minutes) = (number(&clock[..2])?, number(&clock[3..])?);
            (hours <= 23 && minutes <= 59).then_some(())?;
            (hours * 60 + minutes) * if sign == "-" { -60 } else { 60 }
        }
        _ => return None,
    };
    let in_range = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    (in_range && hour <= 23 && minute <= 59 && second <= 59).then_some(())?;
    let seconds = days_before(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset;
    let first = days_before(0, 1, 1) * 86_400;
    let last = days_before(10_000, 1, 1) * 86_400;
    (first..last).contains(&seconds).then_some(seconds * NANOS + fraction)
}

fn is_leap(year: i128) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i128, month: i128) -> i128 {
    match month {
        2 => 28 + i128::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to this date.
fn days_before(year: i128, month: i128, day: i128) -> i128 {
    let leap_days = |year: i128| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let years = 365 * (year - 1_970) + leap_days(year - 1) - leap_days(1_969);
    years + (1..month).map(|month| days_in(year, month)).sum::<i128>() + day - 1
}
