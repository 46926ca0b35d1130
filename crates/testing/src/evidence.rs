//! What a server shows of a release, made by hand, so that every part of it can be a lie.

use countersign_core::documents::history::{History, HistoryEntry};
use countersign_core::documents::index::{AssetName, Digests, PublishedFile, ReleaseIndex};
use countersign_core::documents::said::{RebuildsFile, StoredRebuild};
use countersign_core::documents::signatures::{Collected, SignatureSet};
use countersign_core::documents::signers::{Metadata, SignersOrigin, SourceKind};
use countersign_core::documents::statement::{Rebuild, Revocation, StatementKind};
use countersign_core::proof::verify::{Evidence, RevocationEvidence};
use countersign_core::rules::decide::assets::Release;
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::{key::PublicKey, key::SecretKey, path::RepoPath, time::Timestamp};

use crate::fido::SignsDigests;
use crate::{
    INDEX, PROJECT, Signers, World, alice, at, bob, carol, dave, key, path, revocation_text, shifted_seconds,
    signed_request, signed_statement, signers,
};

pub const OTHER_PROJECT: &str = "https/github.com/443/acme/other";
const HOUR: i128 = 3_600;

pub fn noon() -> Timestamp {
    at("2026-02-01T12:00:00Z")
}

/// Right signatures of these people on a text.
pub fn signed_by<S: SignsDigests + ?Sized>(text: &str, people: &[&S]) -> SignatureSet {
    let mut set = SignatureSet::default();
    for person in people {
        let signature = person.sign(&Sha512::of(text.as_bytes()));
        set.add(person.public_key(), Collected { signature, collected_at: noon() });
    }
    set
}

/// The set with a signature more, right or wrong.
pub fn with_signature(mut set: SignatureSet, of: &SecretKey, signature_on: &str) -> SignatureSet {
    let signature = of.sign(&Sha512::of(signature_on.as_bytes()));
    set.add(of.public_key(), Collected { signature, collected_at: noon() });
    set
}

/// One person's signature put under another's name.
pub fn under_name_of(text: &str, real: &SecretKey, claimed: &SecretKey) -> SignatureSet {
    let signature = real.sign(&Sha512::of(text.as_bytes()));
    let mut set = SignatureSet::default();
    set.add(claimed.public_key(), Collected { signature, collected_at: noon() });
    set
}

/// The signers files of a project so far.
#[derive(Debug, Clone)]
pub struct Past {
    pub project: RepoPath,
    pub history: History,
}

impl Past {
    pub fn of(project: &str) -> Self {
        Self { project: path(project), history: History::default() }
    }

    /// Adds one more signers file, which these people sign.
    pub fn then<S: SignsDigests + ?Sized>(self, signers: &Signers, by: &[&S]) -> Self {
        self.then_text(signers.text(), by)
    }

    pub fn then_text<S: SignsDigests + ?Sized>(mut self, text: String, by: &[&S]) -> Self {
        let hours = HOUR * self.history.entries.len() as i128;
        let metadata = Metadata {
            origin: origin_of(&self.project, shifted_seconds(noon(), hours)),
            project_id: self.project.clone(),
            signers_file_digest: Sha512::of(text.as_bytes()),
            previous: self.history.entries.last().map(|e| Sha512::of(e.signers_config.as_bytes())),
        };
        let metadata = String::from_utf8(metadata.write()).expect("our documents are text");
        self.history.entries.push(HistoryEntry {
            signatures: signed_by(&text, by),
            metadata_signatures: signed_by(&metadata, by),
            signers_config: text,
            metadata,
            timestamp: shifted_seconds(noon(), hours + 600),
            agreed_at: None,
        });
        self
    }

    pub fn digest(&self, entry: usize) -> Sha512 {
        Sha512::of(self.history.entries[entry].signers_config.as_bytes())
    }

    /// The digest of the file in force.
    pub fn last_digest(&self) -> Sha512 {
        self.digest(self.history.entries.len() - 1)
    }

    /// Lets the people of an entry sign other metadata.
    pub fn remark<S: SignsDigests + ?Sized>(
        mut self,
        entry: usize,
        by: &[&S],
        change: impl FnOnce(&mut Metadata),
    ) -> Self {
        let recorded = &mut self.history.entries[entry];
        let mut metadata = Metadata::parse(recorded.metadata.as_bytes()).expect("sound metadata");
        change(&mut metadata);
        recorded.metadata = String::from_utf8(metadata.write()).expect("our documents are text");
        recorded.metadata_signatures = signed_by(&recorded.metadata, by);
        self
    }

    /// Tampers with one entry of the history.
    pub fn with(mut self, entry: usize, change: impl FnOnce(&mut HistoryEntry)) -> Self {
        change(&mut self.history.entries[entry]);
        self
    }
}

fn origin_of(project: &RepoPath, retrieved_at: Timestamp) -> SignersOrigin {
    let segments: Vec<&str> = project.segments().collect();
    let (host, names) = (segments[1], segments[3..].join("/"));
    let (kind, url, retrieval_url) = match host {
        "github.com" => (
            SourceKind::Github,
            format!("https://{host}/{names}/blob/main/svc.signers.json"),
            format!("https://raw.githubusercontent.com/{names}/refs/heads/main/svc.signers.json"),
        ),
        "gitlab.com" => (
            SourceKind::Gitlab,
            format!("https://{host}/{names}/-/blob/main/svc.signers.json"),
            format!("https://{host}/{names}/-/raw/main/svc.signers.json?ref_type=heads"),
        ),
        _ => {
            let url = format!("https://{host}/{names}/svc.signers.json");
            (SourceKind::FileServer, url.clone(), url)
        }
    };
    SignersOrigin { kind, url, retrieval_url, retrieved_at }
}

/// Signers of which two of Alice, Bob and Carol sign releases; Alice and Bob are admins, Dave is master.
pub fn founders() -> Signers {
    signers("2026-01-01T00:00:00Z")
        .artifact(2, [&alice(), &bob(), &carol()])
        .admin(2, [&alice(), &bob()])
        .master(1, [&dave()])
}

/// Signers of which two of Carol, key 5 and key 6 sign releases; Alice and Carol are admins, Dave is master.
pub fn successors() -> Signers {
    signers("2026-01-02T00:00:00Z")
        .artifact(2, [&carol(), &key(5), &key(6)])
        .admin(2, [&alice(), &carol()])
        .master(1, [&dave()])
}

pub fn founded(project: &str) -> Past {
    Past::of(project).then(&founders(), &[&alice(), &bob(), &carol(), &dave()])
}

pub fn rotated(project: &str) -> Past {
    founded(project).then(&successors(), &[&alice(), &bob(), &carol(), &key(5), &key(6)])
}

pub fn file(name: &str, source: &str, content: &str) -> PublishedFile {
    PublishedFile {
        file_name: AssetName::parse(name).expect("the test's own name"),
        size: Some(content.len() as u64),
        source: source.to_owned(),
        digests: Digests {
            sha256: Some(Sha256::of(content.as_bytes())),
            sha512: Some(Sha512::of(content.as_bytes())),
        },
    }
}

/// The index of a GitHub release with one file.
pub fn release_index(tag: &str) -> ReleaseIndex {
    let source = format!("https://github.com/acme/app/releases/download/{tag}/app.tar.gz");
    ReleaseIndex {
        project_id: path(PROJECT),
        release_url: Some(format!("https://github.com/acme/app/releases/tag/{tag}")),
        mirrored_on: noon(),
        published_on: Some(at("2026-01-30T08:00:00Z")),
        published_files: vec![file("app.tar.gz", &source, tag)],
    }
}

/// The release whose index is `release_index("v1")`.
pub fn first_release() -> Release {
    let ReleaseIndex { release_url, published_on, published_files, .. } = release_index("v1");
    let dir = path(INDEX).parent().expect("a directory");
    Release { dir, release_url, published_on, published_files }
}

/// A project with these signers on a server, whose release v1 Alice and Bob have signed.
pub fn complete_world(team: &Signers, everyone: &[&SecretKey]) -> World {
    let mut world = World::with(team, everyone);
    world.add_release(&first_release(), &alice()).expect("a release");
    world.sign_all(INDEX, &[&alice(), &bob()]);
    world
}

/// An index made from checksums files.
pub fn checksums_index(project: &str, published_files: Vec<PublishedFile>) -> ReleaseIndex {
    ReleaseIndex {
        project_id: path(project),
        release_url: None,
        mirrored_on: noon(),
        published_on: None,
        published_files,
    }
}

pub fn index_text(index: &ReleaseIndex) -> String {
    String::from_utf8(index.write()).expect("our documents are text")
}

pub fn index_path(tag: &str) -> String {
    format!("{PROJECT}/releases/tag/{tag}/svc.index.json")
}

/// The index as these people signed it, under the file in force.
pub fn evidence<S: SignsDigests + ?Sized>(
    past: &Past,
    index_at: &str,
    index: &ReleaseIndex,
    by: &[&S],
) -> Evidence {
    evidence_of_text(past, index_at, index_text(index), by)
}

pub fn evidence_of_text<S: SignsDigests + ?Sized>(
    past: &Past,
    index_at: &str,
    index: String,
    by: &[&S],
) -> Evidence {
    Evidence {
        path: path(index_at),
        signatures: signed_by(&index, by),
        index,
        governed_by: past.last_digest(),
        history: past.history.clone(),
        revocation: None,
        rebuilds: RebuildsFile::default(),
    }
}

/// Evidence for release v1 of the founders, all as it should be.
pub fn good() -> Evidence {
    evidence(&founded(PROJECT), INDEX, &release_index("v1"), &[&alice(), &bob()])
}

/// Three builders.
pub fn builders() -> [SecretKey; 3] {
    [key(21), key(22), key(23)]
}

/// The founders with these builders, of whom two must get the same archives before anyone uses a release.
pub fn founders_with_builders() -> Signers {
    founders().builders(2, builders().each_ref()).rebuilt(&["*.tar.gz"]).reproduced_first()
}

/// Evidence for release v1 of a project with such signers, as builders state it.
pub fn rebuilt(team: &Signers, stated: impl IntoIterator<Item = (PublicKey, StoredRebuild)>) -> Evidence {
    let people = [alice(), bob(), carol(), dave()];
    let everyone: Vec<SecretKey> = people.into_iter().chain(builders()).collect();
    let past = Past::of(PROJECT).then(team, &everyone.iter().collect::<Vec<_>>());
    let evidence = evidence(&past, INDEX, &release_index("v1"), &[&alice(), &bob()]);
    Evidence { rebuilds: RebuildsFile { entries: stated.into_iter().collect() }, ..evidence }
}

/// A statement as it is kept.
pub fn said<S: SignsDigests + ?Sized>(document: &Rebuild, by: &S) -> (PublicKey, StoredRebuild) {
    let text = String::from_utf8(document.write()).expect("our documents are text");
    let signature = by.sign(&Sha512::of(text.as_bytes()));
    (by.public_key(), StoredRebuild { text, document: document.clone(), signature, collected_at: noon() })
}

/// Evidence for release v1 of the founders, revoked by Alice.
pub fn revoked() -> Evidence {
    let evidence = good();
    let revocation = revocation_of(&evidence, &[&alice()]);
    Evidence { revocation: Some(revocation), ..evidence }
}

pub fn last_signers(evidence: &Evidence) -> Sha512 {
    let last = evidence.history.entries.last().expect("an entry");
    Sha512::of(last.signers_config.as_bytes())
}

/// A revocation that names the index, under the file in force.
pub fn revocation_of<S: SignsDigests + ?Sized>(evidence: &Evidence, by: &[&S]) -> RevocationEvidence {
    let subject = Sha512::of(evidence.index.as_bytes());
    revocation_with(evidence, revocation_document(Some(subject)), by)
}

pub fn revocation_document(subject_digest: Option<Sha512>) -> Revocation {
    Revocation { reason: "a bad build".to_owned(), timestamp: noon(), subject_digest, initiator: None }
}

pub fn revocation_with<S: SignsDigests + ?Sized>(
    evidence: &Evidence,
    document: Revocation,
    by: &[&S],
) -> RevocationEvidence {
    let document = revocation_text(&document);
    RevocationEvidence {
        signatures: signed_by(&document, by),
        document,
        governed_by: last_signers(evidence),
        request: None,
    }
}

/// A revocation that names no file, with the request in which `by` named one.
pub fn revocation_by_request(evidence: &Evidence, by: &SecretKey, named: &RepoPath) -> RevocationEvidence {
    let shown = revocation_with(evidence, revocation_document(None), &[by]);
    let body = signed_statement(StatementKind::Revocation, named, shown.document.as_bytes(), by);
    let payload = serde_json::to_string(&body).expect("JSON");
    RevocationEvidence { request: Some(signed_request(by, noon(), &payload)), ..shown }
}
