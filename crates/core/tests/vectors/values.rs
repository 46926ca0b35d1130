//! Keys, times, paths, names, JSON, signatures and places at the edges of what is accepted: for implementations that have
//! a reader of their own for each.

use countersign_core::{
    digest::Sha512,
    index::{AssetName, ReleaseIndex},
    key::{PublicKey, Signature, encode_base64},
    path::RepoPath,
    place::{PlaceError, check_place},
    signatures::SignatureSet,
    signers::SignersFile,
    time::Timestamp,
};
use serde_json::{Value, json};

use super::support::{alice, bob};

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
        ("signers", "Signers files, and how many keys are in them.", read_all(&signers(), read_signers)),
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
    SignersFile::parse(text.as_bytes()).ok().map(|file| file.keys().len().to_string())
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

const SMALL_ORDER: [&str; 8] = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
];

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
    texts
}

/// A list of signatures with one entry, as it should be and as it should not.
fn documents() -> Vec<String> {
    let key = alice().public_key().to_string();
    let signature = alice().sign(&Sha512::of(b"content")).to_base64();
    let entry = format!(r#"{{"signature":"{signature}","collected_at":"2026-01-31T10:00:00Z"}}"#);
    let set = |entries: &str| format!(r#"{{"entries":{{{entries}}}}}"#);
    let one = format!(r#""{key}":{entry}"#);
    let good = set(&one);
    let far = format!(r#""{key}"{}:{entry}"#, " ".repeat(100));
    let escaped = format!(r#""\u0073{}":{entry}"#, &key[1..]);
    vec![
        good.clone(),
        set(""),
        format!(" \t\r\n{good}\n"),
        set(&far),
        set(&escaped),
        set(&format!("{one},{one}")),
        set(&format!("{one},{escaped}")),
        set(&format!("{far},{one}")),
        format!(r#"{{"entries":{{}},"entries":{{{one}}}}}"#),
        format!(r#"{{"entries":{{}},"\u0065ntries":{{{one}}}}}"#),
        set(&one.replace("\"collected_at\"", "\"signature\":\"\",\"collected_at\"")),
        set(&one.replace("\"collected_at\"", "\"extra\":1,\"collected_at\"")),
        set(&one.replace("\"collected_at\"", "\"__proto__\":1,\"collected_at\"")),
        set(&one.replace("\"collected_at\"", "\"constructor\":1,\"collected_at\"")),
        set(&one.replace("\"collected_at\"", "\"collected_at?\":1,\"collected_at\"")),
        set(&one.replace("\"2026-01-31T10:00:00Z\"", "1")),
        set(&one.replace("\"2026-01-31T10:00:00Z\"", "null")),
        set(&one.replace("2026-01", "2026\\u002d01")),
        set(&one.replace("2026-01", "\\ud800")),
        set(&format!(r#""{key}=":{entry}"#)),
        set(&format!(r#""{}":{entry}"#, &key["svc-pub:".len()..])),
        set(&one.replace(&signature, signature.trim_end_matches('='))),
        set(&one.replace(&signature, &signature[..signature.len() - 1])),
        set(&format!("{one},")),
        format!("{good}x"),
        format!("{good},"),
        format!("\u{feff}{good}"),
        good.replace(':', " "),
        good.replace('"', "'"),
        good[..good.len() - 1].to_owned(),
        format!("{good}//"),
        r#"{"entries":[]}"#.to_owned(),
        r#"{"entries":null}"#.to_owned(),
        r#"{"entries":""}"#.to_owned(),
        r#"{"entries":{},"a":-1}"#.to_owned(),
        r#"{"entries":{},"version":1}"#.to_owned(),
        "{}".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "0".to_owned(),
        String::new(),
    ]
}

fn signers() -> Vec<String> {
    let [alice, bob] = [alice(), bob()].map(|key| key.public_key().to_string());
    let one =
        |key: &str, name: &str| format!(r#"{{"kind":"key","data":{{"pubkey":"{key}"}},"name":"{name}"}}"#);
    let group =
        |threshold: &str, members: &str| format!(r#"[{{"threshold":{threshold},"signers":[{members}]}}]"#);
    let file = |roles: &str| format!(r#"{{"version":1,"timestamp":"2026-01-01T00:00:00Z",{roles}}}"#);
    let artifact = |threshold: &str, members: &[String]| {
        file(&format!(r#""artifact_signers":{}"#, group(threshold, &members.join(","))))
    };
    let named = |name: &str| artifact("1", &[one(&alice, name), one(&bob, "bob")]);
    let with = |role: &str| {
        let own = group("1", &one(&alice, "alice"));
        file(&format!(r#""artifact_signers":{own},{role}"#))
    };
    let good = named("alice");
    vec![
        good.clone(),
        named(""),
        named("a b <c>"),
        named(&"ü".repeat(64)),
        named(&"ü".repeat(65)),
        named("a\\u202eb"),
        named("a\\u0000"),
        named("a\\u3164"),
        named("bob"),
        artifact("1", &[one(&alice, ""), one(&bob, "")]),
        artifact("1", &[one(&alice, "alice"), one(&alice, "alice")]),
        artifact("1", &[one(&alice, "alice"), one(alice.trim_start_matches("svc-pub:"), "alice")]),
        artifact("2", &[one(&alice, "alice"), one(&bob, "bob")]),
        artifact("3", &[one(&alice, "alice"), one(&bob, "bob")]),
        artifact("1", &[]),
        artifact("0", &[one(&alice, "alice")]),
        artifact("-1", &[one(&alice, "alice")]),
        artifact("-0", &[one(&alice, "alice")]),
        artifact("1.0", &[one(&alice, "alice")]),
        artifact("1e0", &[one(&alice, "alice")]),
        artifact("1E0", &[one(&alice, "alice")]),
        artifact("\"1\"", &[one(&alice, "alice")]),
        artifact("01", &[one(&alice, "alice")]),
        artifact("18446744073709551617", &[one(&alice, "alice")]),
        artifact("null", &[one(&alice, "alice")]),
        with(&format!(r#""admin_keys":{}"#, group("1", &one(&bob, "bob")))),
        with(&format!(r#""admin_keys":{}"#, group("1", &one(&alice, "bob")))),
        with(&format!(r#""admin_keys":{}"#, group("1", &one(&bob, "alice")))),
        with(&format!(r#""master_keys":{}"#, group("1", &one(&bob, "bob")))),
        with(&format!(r#""master_keys":{}"#, group("1", &one(&alice, "alice")))),
        with(&format!(r#""revocation_keys":{}"#, group("1", &one(&alice, "alice")))),
        with(&format!(r#""other_keys":{}"#, group("1", &one(&alice, "alice")))),
        with(r#""admin_keys":null"#),
        with(r#""admin_keys":[]"#),
        with(r#""admin_keys":{}"#),
        file(r#""admin_keys":[]"#),
        good.replace("\"version\":1", "\"version\":2"),
        good.replace("\"version\":1", "\"version\":1.0"),
        good.replace("\"version\":1", "\"version\":true"),
        good.replace("\"version\":1,", ""),
        good.replace("2026-01-01T", "2026-01-01 "),
        good.replace("\"kind\":\"key\"", "\"kind\":\"gpg\""),
        good.replace("\"kind\":\"key\",", ""),
        good.replace("\"data\":{", "\"data\":{\"format\":\"ed25519\","),
        good.replace("\"data\":{", "\"data\":{\"format\":\"rsa\","),
        good.replace("\"data\":{", "\"data\":{\"format\":null,"),
        good.replace("\"name\":\"alice\"", "\"name\":null"),
        good.replace("\"name\":\"alice\"", "\"name\":1"),
        good.replace("\"name\":\"alice\"", "\"Name\":\"alice\""),
    ]
}

fn indexes() -> Vec<String> {
    let digest = "0".repeat(64);
    let entry = |name: &str| {
        format!(
            r#"{{"file_name":"{name}","size":1,"source":"https://a.example/x","digests":{{"sha256":"{digest}"}}}}"#
        )
    };
    let of = |names: &[&str]| {
        let files = names.iter().map(|name| entry(name)).collect::<Vec<_>>().join(",");
        format!(
            r#"{{"version":1,"project_id":"https/a.example/443/x","release_url":null,"mirrored_on":"2026-01-01T00:00:00Z","published_on":null,"published_files":[{files}]}}"#
        )
    };
    let good = of(&["a"]);
    vec![
        good.clone(),
        of(&[]),
        of(&["a", "b"]),
        of(&["a", "ab", "a/b"]),
        of(&["a", "a/b", "ab"]),
        of(&["b", "a"]),
        of(&["a", "a"]),
        of(&["a", "\\u0061"]),
        of(&["B", "a"]),
        of(&["a", "B"]),
        // In UTF-16 the second comes first.
        of(&["\u{ff61}", "\u{10000}"]),
        of(&["\u{10000}", "\u{ff61}"]),
        good.replace(&format!("\"sha256\":\"{digest}\""), ""),
        good.replace(&digest, &digest.replace('0', "A")),
        good.replace(&digest, &digest[1..]),
        good.replace("sha256", "sha512"),
        good.replace("sha256", "md5"),
        good.replace("\"size\":1", "\"size\":null"),
        good.replace("\"size\":1", "\"size\":9007199254740991"),
        good.replace("\"size\":1", "\"size\":-1"),
        good.replace("\"size\":1", "\"size\":1.5"),
        good.replace("\"size\":1", "\"size\":1e3"),
        good.replace("\"size\":1", "\"size\":\"1\""),
        good.replace("\"size\":1,", ""),
        good.replace("/x\"", "/\\ud800\""),
        good.replace("/x\"", "/\\ud83d\\ude00\""),
        good.replace("\"release_url\":null", "\"release_url\":\"\""),
        good.replace("\"release_url\":null,", ""),
        good.replace("\"published_on\":null", "\"published_on\":\"2026\""),
        good.replace("https/a.example/443/x", "https/a.example/x"),
        good.replace("\"version\":1", "\"version\":1,\"version\":1"),
    ]
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
    countersign_core::key::decode_base64(text).expect("base64")
}

/// Project, path of the index, page of the release, source and name of its one file.
fn places() -> Vec<Value> {
    const APP: &str = "https/github.com/443/acme/app";
    const V1: &str = "https/github.com/443/acme/app/releases/tag/v1/svc.index.json";
    const PAGE: &str = "https://github.com/acme/app/releases/tag/v1";
    const GOOD: &str = "https://github.com/acme/app/releases/download/v1/a";
    let pages = [
        PAGE,
        "https://github.com/acme/app/releases/tag/v1/",
        "https://github.com:443/acme/app/releases/tag/v1",
        "HTTPS://GitHub.com/acme/app/releases/tag/v1",
        "https://github.com/acme/app/-/releases/v1",
        "https://github.com/acme/app/releases/tag/%76%31",
        "https://github.com/acme/app/releases/tag/v2",
        "https://github.com/acme/app/releases/tag/v1//",
        "https://github.com/acme/app/releases/tag/",
        "https://github.com/acme/app/releases/v1",
        "https://github.com/ACME/app/releases/tag/v1",
        "https://github.com/acme/app2/releases/tag/v1",
        "https://github.com:8443/acme/app/releases/tag/v1",
        "https://github.com:0443/acme/app/releases/tag/v1",
        "https://github.com:/acme/app/releases/tag/v1",
        "https://user@github.com/acme/app/releases/tag/v1",
        "https://github.com./acme/app/releases/tag/v1",
        "https://github.com/acme/app/releases/tag/v1?x",
        "https://github.com/acme/app/releases/tag/v1#x",
        "https://github.com/acme/app/releases/tag/./v1",
        "https://github.com/acme/app/x/../releases/tag/v1",
        "https://github.com/acme/app/releases/tag/%2e%2e/v1",
        "https://github.com\\acme/app/releases/tag/v1",
        "https://github.com/acme/app/releases/tag/v1 ",
        "https:/github.com/acme/app/releases/tag/v1",
        "//github.com/acme/app/releases/tag/v1",
        "http://github.com/acme/app/releases/tag/v1",
        "ftp://github.com/acme/app/releases/tag/v1",
        "https://github.com/acme/app/releases/tag/%ff",
        "",
    ];
    let assets = [
        GOOD,
        "https://github.com/acme/app/-/releases/v1/downloads/a",
        "https://github.com/acme/app/-/releases/v1/downloads/linux/a",
        "https://cdn.example/anything",
        "https://github.com/acme/other/releases/download/v9/a",
        "https://github.com/acme/app/archive/a",
        "not a url",
        "https://github.com/acme/app/releases/download/v2/a",
        "https://github.com/acme/app/releases/download/v1/b",
        "https://github.com/ACME/App/Releases/download/v2/a",
        "https://GITHUB.com./acme/app/releases/download/v2/a",
        "https://user@github.com/acme/app/releases/download/v1/a",
        "https://github.com:8443/acme/app/releases/download/v1/a",
        "https://github.com//acme/app/releases/download/v2/a",
        "https://github.com/x/../acme/app/releases/download/v2/a",
        "https://github.com/x/%2e%2e/acme/app/releases/download/v2/a",
        "https:\\\\github.com\\acme\\app\\releases\\download\\v2\\a",
        "https:github.com/acme/app/releases/download/v2/a",
        "https:///github.com/acme/app/releases/download/v2/a",
        " https://github.com/acme/app/releases/download/v2/a",
        "https://git\thub.com/acme/app/releases/download/v2/a",
        "https://github.com/%61cme/app/releases/download/v2/a",
        "https://github.com/acme/app/releases/download/v1/a?x=1",
        "https://github.com/acme/app/-/releases/v2/downloads/a",
        "https://github.com/acme/app/releases",
        "https://github.com/acme/app/releasesx/v2/a",
    ];
    const FILES: &str = "https/dl.example/443/app";
    const INDEX: &str = "https/dl.example/443/app/1.0/svc.index.json";
    let sources = [
        "https://dl.example/app/1.0/a",
        "https://dl.example:443/app/1.0/a",
        "https://DL.example/app/1.0/%61",
        "https://dl.example/app/1.0/a/",
        "https://dl.example/app/1.1/a",
        "https://dl.example/app/1.0/x/a",
        "https://dl.example/app/1.0%2Fa",
        "https://dl.example/app/1.0/b",
        "https://dl.example/app/1.0/../1.0/a",
        "http://dl.example/app/1.0/a",
        "https://dl.example/app/1.0/a?",
        "https://evil.example/app/1.0/a",
        "https://dl.example.evil.example/app/1.0/a",
    ];
    let elsewhere = [
        "https/github.com/443/acme/app/releases/tag/v1/svc.index.json.x",
        "https/github.com/443/acme/app/releases/tag/v1/index.json",
        "https/github.com/443/acme/app/releases/tag/v2/svc.index.json",
        "https/github.com/443/acme/app/svc.index.json",
        "https/github.com/443/acme/application/releases/tag/v1/svc.index.json",
        "https/github.com/443/acme/svc.index.json",
        "svc.index.json",
    ];
    let pages = pages.into_iter().map(|page| place(APP, V1, Some(page), GOOD));
    let assets = assets.into_iter().map(|source| place(APP, V1, Some(PAGE), source));
    let sources = sources.into_iter().map(|source| place(FILES, INDEX, None, source));
    let elsewhere = elsewhere.into_iter().map(|path| place(APP, path, Some(PAGE), GOOD));
    pages.chain(assets).chain(sources).chain(elsewhere).collect()
}

fn place(project: &str, path: &str, page: Option<&str>, source: &str) -> Value {
    let digests = json!({ "sha256": "00".repeat(32) });
    let file = json!({ "file_name": "a", "size": null, "source": source, "digests": digests });
    let index = json!({
        "version": 1, "project_id": project, "release_url": page, "mirrored_on": "2026-02-01T12:00:00Z",
        "published_on": null, "published_files": [file],
    });
    let parsed = ReleaseIndex::parse(index.to_string().as_bytes()).expect("an index");
    let fault = match check_place(&parsed, &RepoPath::parse(path).expect("a path")) {
        Ok(()) => None,
        Err(PlaceError::NotAnIndex(_)) => Some("not an index"),
        Err(PlaceError::OtherProject(_)) => Some("other project"),
        Err(PlaceError::OtherRelease(_)) => Some("other release"),
        Err(PlaceError::OtherSource { .. }) => Some("other source"),
    };
    json!({ "path": path, "index": index, "fault": fault })
}
