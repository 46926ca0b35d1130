//! One example of every kind of document, and its reader.

use countersign_core::documents::history::{Agreement, History, HistoryEntry};
use countersign_core::documents::index::{Digests, PublishedFile, ReleaseIndex};
use countersign_core::documents::layout::RepositoryMarker;
use countersign_core::documents::said::{EarlierObjections, ObjectionsFile, RebuildsFile, StoredObjection};
use countersign_core::documents::signatures::{Collected, OtherFormatsFile, SignatureSet};
use countersign_core::documents::signed_request::{Registrant, SignedRequest};
use countersign_core::documents::signers::{Metadata, SignersFile, SourceKind};
use countersign_core::documents::statement::{Objection, Rebuild, Revocation, Veto};
use countersign_core::values::{digest::Sha512, json::ParseError, key::SecretKey, other_format::OtherFormat};
use serde_json::Value;

use crate::evidence::{builders, said};
use crate::{
    INDEX, PROJECT, alice, at, bob, carol, dave, format_text, key, log_key, mallory, origin, path, published,
    rebuild_of, signed_request, signers, witness_key,
};

/// Reads a document of one kind and writes it again.
pub type Rewrite = fn(&[u8]) -> Result<Vec<u8>, ParseError>;

#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    pub rewrite: Rewrite,
    /// A document of this kind, as we write it.
    pub example: fn() -> Vec<u8>,
}

pub const KINDS: [Kind; 18] = [
    Kind::of("signers file", |b| SignersFile::parse(b).map(|d| d.write()), signers_file),
    Kind::of("metadata", |b| Metadata::parse(b).map(|d| d.write()), || metadata().write()),
    Kind::of("index", |b| ReleaseIndex::parse(b).map(|d| d.write()), || index().write()),
    Kind::of("revocation", |b| Revocation::parse(b).map(|d| d.write()), || revocation().write()),
    Kind::of("veto", |b| Veto::parse(b).map(|d| d.write()), || veto().write()),
    Kind::of("agreement", |b| Agreement::parse(b).map(|d| d.write()), || agreement().write()),
    Kind::of(
        "signatures",
        |b| SignatureSet::parse(b).map(|d| d.write()),
        || signature_set(b"content").write(),
    ),
    Kind::of("history", |b| History::parse(b).map(|d| d.write()), || history().write()),
    Kind::of("history entry", |b| HistoryEntry::parse(b).map(|d| d.write()), || history().entries[0].write()),
    Kind::of(
        "registration",
        |b| SignedRequest::parse(b).map(|d| d.write()),
        || signed_request(&alice(), at("2026-02-01T12:00:00.25Z"), "{\"a\": \"\\u00e9\"}").write(),
    ),
    Kind::of("other formats", |b| OtherFormatsFile::parse(b).map(|d| d.write()), || other_formats().write()),
    Kind::of(
        "registrant",
        |b| Registrant::parse(b).map(|d| d.write()),
        || Registrant { key: alice().public_key() }.write(),
    ),
    Kind::of("objection", |b| Objection::parse(b).map(|d| d.write()), || objection().write()),
    Kind::of("objections", |b| ObjectionsFile::parse(b).map(|d| d.write()), || objections().write()),
    Kind::of(
        "earlier objections",
        |b| EarlierObjections::parse(b).map(|d| d.write()),
        || earlier_objections().write(),
    ),
    Kind::of("rebuild", |b| Rebuild::parse(b).map(|d| d.write()), || rebuild().write()),
    Kind::of("rebuilds", |b| RebuildsFile::parse(b).map(|d| d.write()), || rebuilds().write()),
    Kind::of(
        "marker",
        |b| RepositoryMarker::parse(b).map(|d| d.write()),
        || RepositoryMarker { format: 1, created_at: at("2026-02-01T12:00:00Z") }.write(),
    ),
];

pub fn kind(name: &str) -> Kind {
    KINDS.into_iter().find(|kind| kind.name == name).expect("a kind of this name")
}

impl Kind {
    pub const fn of(name: &'static str, rewrite: Rewrite, example: fn() -> Vec<u8>) -> Self {
        Self { name, rewrite, example }
    }

    pub fn example_text(&self) -> String {
        String::from_utf8((self.example)()).expect("our documents are text")
    }
}

/// A signers file with every field that there is.
fn signers_file() -> Vec<u8> {
    let text = signers("2026-01-31T10:00:00Z")
        .artifact(2, [&alice(), &bob()])
        .artifact(1, [&carol()])
        .admin(1, [&bob()])
        .master(1, [&dave()])
        .revocation(1, [&alice()])
        .registrars([&mallory()])
        .builders(1, [&key(21)])
        .rebuilt(&["*.tar.gz"])
        .reproduced_first()
        .delay(48)
        .log(&log_key(), &[(1, &[witness_key(1), witness_key(2)]), (1, &[witness_key(3)])])
        .text();
    let named = text.replacen("}}", "}, \"name\": \"alice\"}", 1);
    let fido = format!("{}\"", carol().public_key());
    let named = named.replacen(&fido, &format!("{fido}, \"format\": \"sk-ssh-ed25519\""), 1);
    let more = ", \"servers\": [\"https://sign.example.org\"], \"formats\": [\"minisign\"]}";
    let named = named.trim_end().strip_suffix('}').expect("an object").to_owned() + more;
    SignersFile::parse(named.as_bytes()).expect("the example is valid").write()
}

pub fn metadata() -> Metadata {
    let mut origin = origin(at("2026-02-01T12:00:00Z"));
    origin.kind = SourceKind::FileServer;
    Metadata {
        origin,
        project_id: path(PROJECT),
        signers_file_digest: Sha512::of(b"signers"),
        previous: Some(Sha512::of(b"previous")),
    }
}

pub fn index() -> ReleaseIndex {
    let checksum_only = PublishedFile {
        size: None,
        digests: Digests { sha512: None, ..published("b", "b").digests },
        ..published("sub/b.txt", "b")
    };
    ReleaseIndex {
        project_id: path(PROJECT),
        release_url: Some("https://github.com/acme/app/releases/tag/v1".to_owned()),
        mirrored_on: at("2026-02-01T12:00:00Z"),
        published_on: Some(at("2026-01-30T08:00:00.5Z")),
        published_files: vec![published("app.tar.gz", "one"), checksum_only],
    }
}

pub fn revocation() -> Revocation {
    Revocation {
        reason: "a \"bad\" build".to_owned(),
        timestamp: at("2026-02-01T12:00:00Z"),
        subject_digest: Some(Sha512::of(b"content")),
        initiator: Some(alice().public_key()),
    }
}

pub fn veto() -> Veto {
    Veto {
        veto: "not by \"us\"".to_owned(),
        project_id: path(PROJECT),
        signers_file_digest: Sha512::of(b"proposed"),
        previous: Sha512::of(b"current"),
        timestamp: at("2026-02-01T12:00:00Z"),
    }
}

fn agreement() -> Agreement {
    Agreement { agreed_at: at("2026-02-01T12:00:00Z"), due_at: at("2026-02-03T12:00:00Z") }
}

pub fn signature_set(content: &[u8]) -> SignatureSet {
    let mut set = SignatureSet::default();
    for key in [alice(), bob(), carol()] {
        let signature = key.sign(&Sha512::of(content));
        set.add(key.public_key(), Collected { signature, collected_at: at("2026-02-01T12:00:00Z") });
    }
    set
}

pub fn other_formats() -> OtherFormatsFile {
    let texts = |key: &SecretKey| {
        OtherFormat::ALL.map(|format| (format, format_text(format, key, INDEX, "sums"))).into()
    };
    let entries = [alice(), bob(), carol()].map(|key| (key.public_key(), texts(&key)));
    OtherFormatsFile { entries: entries.into() }
}

pub fn objection() -> Objection {
    Objection {
        text: Some("a \"bad\" build".to_owned()),
        subject_digest: Sha512::of(b"content"),
        timestamp: at("2026-02-01T12:00:00.25Z"),
    }
}

pub fn objections() -> ObjectionsFile {
    let entry = |key: SecretKey, document: Objection| {
        let text = String::from_utf8(document.write()).expect("our documents are text");
        let signature = key.sign(&Sha512::of(text.as_bytes()));
        let collected_at = at("2026-02-01T12:00:00Z");
        (key.public_key(), StoredObjection { text, document, signature, collected_at })
    };
    let entries = [
        entry(alice(), objection()),
        entry(bob(), Objection { text: None, ..objection() }),
        entry(carol(), Objection { timestamp: at("2026-01-01T12:00:00Z"), ..objection() }),
    ];
    ObjectionsFile { entries: entries.into() }
}

pub fn rebuild() -> Rebuild {
    let text = String::from_utf8(index().write()).expect("our documents are text");
    rebuild_of(&path(INDEX), &text)
}

pub fn rebuilds() -> RebuildsFile {
    RebuildsFile { entries: builders().iter().map(|builder| said(&rebuild(), builder)).collect() }
}

pub fn earlier_objections() -> EarlierObjections {
    let mut earlier = EarlierObjections::default();
    earlier.retire(objections());
    earlier
}

pub fn history() -> History {
    let (signers_config, metadata) = (signers_file(), metadata().write());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("our documents are text");
    let entry = HistoryEntry {
        signatures: signature_set(&signers_config),
        metadata_signatures: signature_set(&metadata),
        signers_config: text(&signers_config),
        metadata: text(&metadata),
        timestamp: at("2026-02-01T12:00:00Z"),
        agreed_at: Some(at("2026-01-31T12:00:00Z")),
    };
    History { entries: vec![entry.clone(), entry] }
}

/// Every place below a value where something stands, as a JSON pointer.
pub fn pointers(value: &Value) -> Vec<String> {
    let below = |name: String, value: &Value| {
        let mut all = vec![name.clone()];
        all.extend(pointers(value).into_iter().map(|pointer| format!("{name}{pointer}")));
        all
    };
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| {
                below(format!("/{}", name.replace('~', "~0").replace('/', "~1")), value)
            })
            .collect(),
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(n, item)| below(format!("/{n}"), item)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}
