//! Keys, times, paths, names, JSON, signatures and places at the edges of what is accepted: for implementations that have
//! a reader of their own for each.

use countersign_core::documents::index::{AssetName, ReleaseIndex};
use countersign_core::documents::{
    signatures::SignatureSet, signers::SignersFile, transparency::WitnessGroup,
};
use countersign_core::values::key::{PublicKey, Signature, encode_base64};
use countersign_core::values::{digest::Sha512, path::RepoPath, shown::is_unseen, time::Timestamp};
use countersign_testing::{SMALL_ORDER, alice, bob};
use serde_json::{Value, json};

use super::value_documents::{documents, indexes, signers};
use super::{value_places::places, value_transparency::transparencies};

/// Each file: its name, what it is about, and its cases with what came out.
pub(crate) fn all() -> Vec<(&'static str, &'static str, Vec<Value>)> {
    vec![
        ("keys", "Spellings of public keys, and the canonical one.", read_all(&keys(), read_key)),
        ("times", "Points in time, as nanoseconds since 1970.", read_all(&times(), read_time)),
        ("paths", "Paths that are in their normal form.", read_all(&paths(), read_path)),
        ("names", "Names of published files.", read_all(&names(), read_name)),
        (
            "json",
            "Lists of signatures: what is not strict JSON is refused.",
            read_all(&documents(), read_document),
        ),
        (
            "signers",
            "Signers files, how many keys and registrars are in them, and their log, witness groups and age.",
            read_all(&[signers(), transparencies()].concat(), read_signers),
        ),
        ("indexes", "Indexes, and how many files are in them.", read_all(&indexes(), read_index)),
        ("signatures", "Signatures over the SHA-512 digest of `content`.", signatures()),
        ("places", "Whether an index with one file is about the place where it lies.", places()),
    ]
}

fn read_all(texts: &[String], read: fn(&str) -> Option<String>) -> Vec<Value> {
    texts.iter().map(|text| json!({ "text": text, "reads_as": read(text) })).collect()
}

fn read_key(text: &str) -> Option<String> {
    PublicKey::parse(text).ok().map(|key| key.to_string())
}

fn read_time(text: &str) -> Option<String> {
    let epoch = Timestamp::from_unix_seconds(0).expect("1970 is a year");
    Timestamp::parse(text).ok().map(|time| time.nanos_since(epoch).to_string())
}

fn read_path(text: &str) -> Option<String> {
    RepoPath::parse(text).ok().filter(|path| path.as_str() == text).map(|path| path.to_string())
}

fn read_name(text: &str) -> Option<String> {
    AssetName::parse(text).ok().map(|name| name.to_string())
}

fn read_document(text: &str) -> Option<String> {
    SignatureSet::parse(text.as_bytes()).ok().map(|set| set.signers().len().to_string())
}

fn read_signers(text: &str) -> Option<String> {
    let file = SignersFile::parse(text.as_bytes()).ok()?;
    let log = file.transparency().map(|found| {
        let group = |group: &WitnessGroup| match group.replaying.len() {
            0 => format!(" {}/{}", group.threshold, group.keys.len()),
            replaying => format!(" {}/{} ({replaying} replay)", group.threshold, group.keys.len()),
        };
        let groups: String = found.witnesses().iter().map(group).collect();
        let age = found.max_age().map_or_else(|| "none".to_owned(), |age| age.as_secs().to_string());
        format!(", log {}, witnesses{groups}, age {age}", found.log().name())
    });
    let registrars = match file.registrars().len() {
        0 => String::new(),
        count => format!(", registrars {count}"),
    };
    Some(format!("{}{registrars}{}", file.keys().len(), log.unwrap_or_default()))
}

fn read_index(text: &str) -> Option<String> {
    ReleaseIndex::parse(text.as_bytes()).ok().map(|index| index.published_files.len().to_string())
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hexadecimal"))
        .collect()
}

fn keys() -> Vec<String> {
    let key = alice().public_key();
    let (padded, prefixed, line) = (key.to_base64(), key.to_string(), key.to_ssh_line(""));
    let bare = padded.trim_end_matches('=');
    let mut texts = vec![
        padded.clone(),
        bare.to_owned(),
        prefixed.clone(),
        format!("{prefixed}="),
        line.clone(),
        format!("{line} alice@example.org"),
        format!("{line} a comment of words"),
        format!("{line} "),
        format!(" {line}"),
        line.replace("ssh-ed25519 ", "ssh-ed25519  "),
        line.replacen("ssh-ed25519", "ssh-rsa", 1),
        line.replacen("ssh-ed25519", "SSH-ED25519", 1),
        format!("svc-pub:{line}"),
        format!("ssh-ed25519 {padded}"),
        "ssh-ed25519".to_owned(),
        "ssh-ed25519 ".to_owned(),
        format!("{bare}=="),
        format!("{bare}==="),
        format!("{bare}\n"),
        format!("{padded}="),
        format!(" {bare}"),
        format!("SVC-PUB:{bare}"),
        format!("svc-pub: {bare}"),
        format!("svc-pub:svc-pub:{bare}"),
        "svc-pub:".to_owned(),
        String::new(),
        "=".to_owned(),
        bare[..42].to_owned(),
        format!("{bare}A"),
        // The last character has two bits that mean nothing, and must be zero.
        format!("{}{}", &bare[..42], if bare.ends_with('x') { 'y' } else { 'B' }),
        bare.replace(['+', '/'], "-"),
    ];
    texts.extend(SMALL_ORDER.iter().map(|point| encode_base64(&hex(point))));
    // Every encoding that is not reduced, and a few small numbers, about half of which are points.
    for (k, sign) in (0_u8..=18).flat_map(|k| [(k, 0_u8), (k, 0x80)]) {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (0xed + k, 0x7f | sign);
        texts.push(encode_base64(&bytes));
    }
    texts.extend(
        (2_u8..42).map(|y| encode_base64(&std::array::from_fn::<u8, 32, _>(|i| if i == 0 { y } else { 0 }))),
    );
    texts
}

fn times() -> Vec<String> {
    owned(&[
        "2026-01-31T10:00:00Z",
        "2026-01-31T10:00:00+00:00",
        "2026-01-31T10:00:00-00:00",
        "2026-01-31T11:30:00+01:30",
        "2026-01-31T00:30:00-23:59",
        "2026-01-31T10:00:00.5Z",
        "2026-01-31T10:00:00.000000001Z",
        "2026-01-31T10:00:00.0000000019Z",
        "1969-12-31T23:59:59.999999999Z",
        "2024-02-29T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "0000-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "2026-02-29T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-32T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T23:60:00Z",
        "2026-06-30T23:59:60Z",
        "2026-01-31T10:00:00+24:00",
        "2026-01-31T10:00:00+23:60",
        "2026-01-31T10:00:00+0100",
        "2026-01-31T10:00:00.Z",
        "2026-01-31T10:00:00,5Z",
        "2026-01-31t10:00:00Z",
        "2026-01-31T10:00:00z",
        "2026-01-31 10:00:00Z",
        "2026-01-31T10:00:00",
        "2026-01-31T10:00Z",
        "2026-01-31",
        "26-01-31T10:00:00Z",
        "+2026-01-31T10:00:00Z",
        "12026-01-31T10:00:00Z",
        " 2026-01-31T10:00:00Z",
        "2026-01-31T10:00:00Z ",
        "2026-01-31T10:00:00Z\n",
        "٢٠٢٦-01-31T10:00:00Z",
        "1769853600",
        "",
    ])
}

fn paths() -> Vec<String> {
    let mut texts = owned(&[
        "https/github.com/443/acme/app",
        "http/127.0.0.1/8000/acme",
        "https",
        "http",
        "x/y",
        "a b/ü/\u{202e}",
        "https/github.com/443/svc.index.json",
        "https/github.com/1/a",
        "https/github.com/65535/a",
        "https/github.com/65536/a",
        "https/github.com/0443/a",
        "https/github.com/0/a",
        "https/github.com/acme/app",
        "https/github.com",
        "HTTPS/github.com/443/a",
        "Http",
        "https/GitHub.com/443/a",
        "x/GitHub.com/443/a",
        "https/gitHÜb.com/443/a",
        "https/github.com/443/a/",
        "/https/github.com/443/a",
        "https//443/a",
        "https/github.com/443/./a",
        "https/github.com/443/../a",
        "https/github.com/443/.../a",
        "https/github.com/443/.git/a",
        "https/github.com/443/.GIT/a",
        "https/github.com/443/.github/a",
        "https/github.com/443/a\\b",
        "https/github.com/443/a\u{0}b",
        "https/github.com/443/a\u{85}b",
        "https/github.com/443/a\nb",
        "",
        "/",
    ]);
    texts.extend([64, 65].map(|count| vec!["a"; count].join("/")));
    texts.extend([1_024, 1_025].map(|length| "a".repeat(length)));
    texts.extend([512, 513].map(|length| "ü".repeat(length)));
    texts
}

fn names() -> Vec<String> {
    let mut texts = owned(&[
        "app.tar.gz",
        "extra/app.tar.gz",
        "a b <c>.zip",
        "...",
        "ü.zip",
        "a\u{3164}",
        "",
        "/app",
        "app/",
        "a//b",
        "./a",
        "../a",
        "a/..",
        "a\\b",
        "a\nb",
        "a\u{7f}",
        "a\u{ad}",
        "a\u{202e}b",
        "a\u{200b}b",
        "a\u{feff}",
        "a\u{2028}b",
        "a\u{e0001}",
    ]);
    texts.extend([200, 201].map(|length| "a".repeat(length)));
    texts.extend([100, 101].map(|length| format!("{}/x", "ü".repeat(length))));
    texts.extend(
        [1_024, 1_025].map(|length| ["aaaaaaaaaaaaaaa/".repeat(63), "b".repeat(length - 1_008)].concat()),
    );
    texts.extend(edges_of_unseen().into_iter().map(|c| format!("a{c}b")));
    texts
}

/// The first and the last character of each range that names must not have, and those beside them.
fn edges_of_unseen() -> Vec<char> {
    let is_unseen = |code: u32| char::from_u32(code).is_some_and(is_unseen);
    let edges = (1..=0x10_ffff_u32).filter(|code| is_unseen(*code) != is_unseen(code - 1));
    edges.flat_map(|code| [code - 1, code]).filter_map(char::from_u32).collect()
}

fn signatures() -> Vec<Value> {
    let digest = Sha512::of(b"content");
    let right = decoded(&alice().sign(&digest).to_base64());
    let order = hex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let mut above = right.clone();
    let mut carry = 0;
    for (byte, addend) in above[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(addend) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    let with = |at: usize, byte: u8| {
        let mut changed = right.clone();
        changed[at] ^= byte;
        changed
    };
    let mut all =
        vec![right.clone(), above, with(0, 1), with(31, 0x80), with(32, 1), with(63, 0x20), vec![0; 64]];
    for point in SMALL_ORDER {
        all.push([hex(point), right[32..].to_vec()].concat());
        all.push([hex(point), vec![0; 32]].concat());
    }
    all.push(decoded(&alice().sign(&Sha512::of(b"other")).to_base64()));
    let case = |signer: PublicKey, bytes: &[u8]| {
        let signature = Signature::from_bytes(bytes.try_into().expect("64 bytes"));
        let verifies = signer.verify(&digest, &signature).is_ok();
        json!({ "key": signer.to_string(), "signature": signature.to_base64(), "verifies": verifies })
    };
    let mut cases: Vec<Value> = all.iter().map(|bytes| case(alice().public_key(), bytes)).collect();
    cases.push(case(bob().public_key(), &right));
    cases
}

fn decoded(text: &str) -> Vec<u8> {
    countersign_core::values::key::decode_base64(text).expect("base64")
}
