//! A repository, a clock, and one verb for each decision. A refusal leaves the repository as it was.

use std::{collections::BTreeMap, convert::Infallible, time::Duration};

use countersign_core::documents::index::{
    AssetName, Digests, PublishedFile, ReleaseIndex, render_sha256sums,
};
use countersign_core::documents::signed_request::{SignedRequest, WithdrawBody, Withdrawal};
use countersign_core::documents::signers::{SignersOrigin, SourceKind};
use countersign_core::documents::statement::{
    Objection, Rebuild, RebuiltFile, Revocation, SignedStatement, StatementKind, Veto,
};
use countersign_core::rules::decide::activate::{ActivateRefusal, activate_due};
use countersign_core::rules::decide::assets::{AssetsRefusal, Release, check_assets, register_assets};
use countersign_core::rules::decide::proposal::{DropRefusal, drop_pending};
use countersign_core::rules::decide::rebuild::rebuild;
use countersign_core::rules::decide::register::{RegisterRefusal, register};
use countersign_core::rules::decide::sign::{SignRefusal, SignaturesBody, Signed, sign, sign_prepared};
use countersign_core::rules::decide::statement::{Stated, StatementRefusal, object, revoke, veto};
use countersign_core::rules::decide::update::{UpdateRefusal, update};
use countersign_core::rules::decide::{
    proposal::Proposal, proposal::Proposed, withdraw::WithdrawRefusal, withdraw::withdraw,
};
use countersign_core::rules::{auth::sign_request, snapshot::Change, stored::files_to_sign};
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::key::{SecretKey, Signature};
use countersign_core::values::other_format::{FormatMessage, OpenpgpFile, OtherFormat, ReleaseSums};
use countersign_core::values::{json, path::RepoPath, time::Timestamp};

use crate::{literals::at, literals::path, literals::shifted_seconds, people::Signers, repo::Repo};

/// The commit that builders say they built.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
pub const PROJECT: &str = "https/github.com/443/acme/app";
pub const PENDING: &str = "https/github.com/443/acme/app/svc.signers.pending/svc.signers.json";
pub const PENDING_METADATA: &str =
    "https/github.com/443/acme/app/svc.signers.pending/svc.signers.json.metadata.json";
pub const ACTIVE: &str = "https/github.com/443/acme/app/svc.signers/svc.signers.json";
pub const HISTORY: &str = "https/github.com/443/acme/app/svc.signers.history.json";
pub const INDEX: &str = "https/github.com/443/acme/app/releases/tag/v1/svc.index.json";
pub const NONCE: &str = "8c2b5d4e-6f70-4a81-92a3-b4c5d6e7f809";

pub const FOURTEEN_DAYS: Duration = Duration::from_secs(14 * 24 * 60 * 60);
pub const MAX_COLLECTING: usize = 10_000;

/// A revocation, and the request that hands it in.
#[derive(Debug, Clone)]
pub struct RevokeRequest {
    pub statement: SignedStatement,
    pub request: SignedRequest,
}

#[derive(Debug, Clone)]
pub struct World {
    pub repo: Repo,
    pub now: Timestamp,
    /// The change of the last decision that was taken.
    pub last: Change,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    pub fn new() -> Self {
        Self { repo: Repo::default(), now: at("2026-02-01T12:00:00Z"), last: Change::default() }
    }

    /// A world whose project has these signers, who have all signed.
    pub fn with(signers: &Signers, everyone: &[&SecretKey]) -> Self {
        let mut world = Self::new();
        world.register(signers, everyone[0]).expect("a registration");
        world.sign_all(PENDING, everyone);
        assert!(world.repo.has(ACTIVE), "not everyone has signed");
        world
    }

    pub fn pass(&mut self, seconds: i128) {
        self.now = shifted_seconds(self.now, seconds);
    }

    fn commit<T>(&mut self, (change, outcome): (Change, T)) -> T {
        self.repo.apply(&change);
        self.last = change;
        outcome
    }

    pub fn proposal(&self, signers: &Signers, submitter: &SecretKey) -> Proposal {
        Proposal {
            project: path(PROJECT),
            signers_bytes: signers.text().into_bytes().into(),
            origin: origin(self.now),
            submitter: submitter.public_key(),
            request: signed_request(submitter, self.now, r#"{"signers_file_url": "..."}"#),
        }
    }

    pub fn register(&mut self, signers: &Signers, by: &SecretKey) -> Result<Proposed, RegisterRefusal> {
        self.register_proposal(&self.proposal(signers, by))
    }

    pub fn register_proposal(&mut self, proposal: &Proposal) -> Result<Proposed, RegisterRefusal> {
        register(&self.repo, proposal, FOURTEEN_DAYS, self.now).map(|done| self.commit(done))
    }

    pub fn update(&mut self, signers: &Signers, by: &SecretKey) -> Result<Proposed, UpdateRefusal> {
        let proposal = self.proposal(signers, by);
        update(&self.repo, &proposal, self.now).map(|done| self.commit(done))
    }

    /// Proposes new signers and collects these signatures, the last of which makes them active.
    pub fn rotate(&mut self, signers: &Signers, by: &[&SecretKey]) {
        self.update(signers, by[0]).expect("an update");
        self.sign_all(PENDING, by);
        assert_eq!(self.repo.text(ACTIVE), signers.text(), "the update is not active");
    }

    /// What the server does by itself when a rotation has waited long enough.
    pub fn activate_due(&mut self) -> Result<(), ActivateRefusal> {
        activate_due(&self.repo, &path(PROJECT), self.now).map(|done| self.commit(done))
    }

    /// A veto of the pending signers file, as our client writes it.
    pub fn veto_document(&self, reason: &str) -> Veto {
        Veto {
            veto: reason.to_owned(),
            project_id: path(PROJECT),
            signers_file_digest: Sha512::of(&self.repo.bytes(PENDING)),
            previous: Sha512::of(&self.repo.bytes(ACTIVE)),
            timestamp: self.now,
        }
    }

    /// What `by` posts to veto the pending signers file with this document.
    pub fn veto_request(&self, document: &Veto, by: &SecretKey) -> SignedStatement {
        signed_statement(StatementKind::Veto, &path(PENDING), &document.write(), by)
    }

    pub fn veto(&mut self, statement: &SignedStatement) -> Result<Stated, StatementRefusal> {
        veto(&self.repo, statement, self.now).map(|done| self.commit(done))
    }

    pub fn drop_pending(&mut self) -> Result<(), DropRefusal> {
        drop_pending(&self.repo, &path(PROJECT)).map(|done| self.commit(done))
    }

    /// What `key` submits for `file`: right signatures on all that has to be signed.
    pub fn submission(&self, file: &str, key: &SecretKey) -> SignaturesBody {
        let file = path(file);
        let files = files_to_sign(&self.repo, &file).expect("a sound repository").unwrap_or_default();
        let sign = |(path, bytes): (RepoPath, std::sync::Arc<[u8]>)| (path, key.sign(&Sha512::of(&bytes)));
        let mut signatures: BTreeMap<RepoPath, Signature> = files.into_iter().map(sign).collect();
        // A file that does not exist gets a signature on nothing, so that only its absence is wrong.
        signatures.entry(file.clone()).or_insert_with(|| key.sign(&Sha512::of(b"")));
        SignaturesBody {
            file_path: file,
            public_key: key.public_key(),
            signatures,
            other_formats: Default::default(),
        }
    }

    /// Makes a submission that signs the index, with right signatures in other formats.
    pub fn submission_with(&self, key: &SecretKey, formats: &[OtherFormat]) -> SignaturesBody {
        let mut submission = self.submission(INDEX, key);
        let index = ReleaseIndex::parse(&self.repo.bytes(INDEX)).expect("an index");
        let sums = render_sha256sums(&index).unwrap_or_default();
        let sums = ReleaseSums { index: &path(INDEX), mirrored_on: index.mirrored_on, text: &sums };
        let texts = formats.iter().map(|format| (*format, sign_format(*format, key, &sums)));
        submission.other_formats = texts.collect();
        submission
    }

    pub fn sign(&mut self, file: &str, key: &SecretKey) -> Result<Signed, SignRefusal> {
        self.submit(&self.submission(file, key))
    }

    pub fn submit(&mut self, submission: &SignaturesBody) -> Result<Signed, SignRefusal> {
        let decided = sign(&self.repo, submission, self.now);
        // Whether the signatures were verified before must not make a difference.
        let prepared = submission.clone().prepare(&self.repo);
        assert_eq!(sign_prepared(&self.repo, &prepared, self.now), decided);
        decided.map(|done| self.commit(done))
    }

    pub fn sign_all(&mut self, file: &str, keys: &[&SecretKey]) {
        for key in keys {
            self.sign(file, key).expect("a signature");
        }
    }

    pub fn add_release(&mut self, release: &Release, by: &SecretKey) -> Result<RepoPath, AssetsRefusal> {
        let project = check_assets(&self.repo, &release.dir, &by.public_key())?.project;
        let index = release.write_index(&project, self.now).expect("a small index");
        let done = register_assets(&self.repo, &index, &by.public_key(), MAX_COLLECTING);
        done.map(|done| self.commit(done).index)
    }

    /// Adds the release v1 and has these people sign it.
    pub fn release_signed_by(&mut self, keys: &[&SecretKey]) {
        self.add_release(&release("v1", "one"), keys[0]).expect("a release");
        self.sign_all(INDEX, keys);
    }

    /// A document that revokes the index, as our client writes it.
    pub fn revocation_document(&self, reason: &str) -> String {
        let subject_digest = Some(Sha512::of(&self.repo.bytes(INDEX)));
        revocation_text(&Revocation {
            reason: reason.to_owned(),
            timestamp: self.now,
            subject_digest,
            initiator: None,
        })
    }

    /// What `by` posts to revoke the index with this document.
    pub fn revoke_request(&self, document: &str, by: &SecretKey) -> RevokeRequest {
        let statement = signed_statement(StatementKind::Revocation, &path(INDEX), document.as_bytes(), by);
        RevokeRequest { statement, request: signed_request(by, self.now, "{}") }
    }

    /// Revokes the index by the one signature that is enough.
    pub fn revoke_index(&mut self, by: &SecretKey) {
        let request = self.revoke_request(&self.revocation_document("a bad build"), by);
        assert!(self.revoke(&request).expect("a revocation").in_force);
    }

    pub fn revoke(&mut self, posted: &RevokeRequest) -> Result<Stated, StatementRefusal> {
        revoke(&self.repo, &posted.statement, &posted.request, self.now).map(|done| self.commit(done))
    }
}

/// Withdrawals and objections.
impl World {
    pub fn withdrawal(&self, file: &str, reason: &str, by: &SecretKey) -> Withdrawal {
        let subject_digest = self.repo.has(file).then(|| Sha512::of(&self.repo.bytes(file)));
        let body = WithdrawBody { file_path: path(file), reason: reason.to_owned(), subject_digest };
        let payload = String::from_utf8(json::write(&body)).expect("our documents are text");
        Withdrawal { request: signed_request(by, self.now, &payload), body }
    }

    pub fn withdraw(&mut self, by: &SecretKey) -> Result<(), WithdrawRefusal> {
        self.withdraw_as(&self.withdrawal(INDEX, "the wrong tag", by))
    }

    pub fn withdraw_as(&mut self, withdrawal: &Withdrawal) -> Result<(), WithdrawRefusal> {
        withdraw(&self.repo, withdrawal).map(|done| self.commit(done))
    }

    /// `None` takes an objection back.
    pub fn objection(&self, text: Option<&str>, by: &SecretKey) -> SignedStatement {
        let subject_digest = Sha512::of(&self.repo.bytes(INDEX));
        let document = Objection { text: text.map(str::to_owned), subject_digest, timestamp: self.now };
        self.objection_of(&document, by)
    }

    pub fn objection_of(&self, document: &Objection, by: &SecretKey) -> SignedStatement {
        signed_statement(StatementKind::Objection, &path(INDEX), &document.write(), by)
    }

    pub fn object(&mut self, text: Option<&str>, by: &SecretKey) -> Result<Stated, StatementRefusal> {
        self.object_as(&self.objection(text, by))
    }

    pub fn object_as(&mut self, statement: &SignedStatement) -> Result<Stated, StatementRefusal> {
        object(&self.repo, statement, self.now).map(|done| self.commit(done))
    }
}

/// What builders state.
impl World {
    /// What a builder states now who got all files of the release as they are.
    pub fn rebuild(&self) -> Rebuild {
        let index = String::from_utf8(self.repo.bytes(INDEX).to_vec()).expect("our documents are text");
        Rebuild { timestamp: self.now, ..rebuild_of(&path(INDEX), &index) }
    }

    pub fn state(&mut self, document: &Rebuild, by: &SecretKey) -> Result<Stated, StatementRefusal> {
        self.state_as(&signed_statement(StatementKind::Rebuild, &path(INDEX), &document.write(), by))
    }

    pub fn state_as(&mut self, statement: &SignedStatement) -> Result<Stated, StatementRefusal> {
        rebuild(&self.repo, statement, self.now).map(|done| self.commit(done))
    }
}

pub fn origin(retrieved_at: Timestamp) -> SignersOrigin {
    SignersOrigin {
        kind: SourceKind::Github,
        url: "https://github.com/acme/app/blob/main/svc.signers.json".to_owned(),
        retrieval_url: "https://raw.githubusercontent.com/acme/app/refs/heads/main/svc.signers.json"
            .to_owned(),
        retrieved_at,
    }
}

/// A statement about `file`, which `by` signs.
pub fn signed_statement(
    kind: StatementKind,
    file: &RepoPath,
    text: &[u8],
    by: &SecretKey,
) -> SignedStatement {
    SignedStatement {
        kind,
        file_path: file.clone(),
        text: String::from_utf8(text.to_vec()).expect("our documents are text"),
        signature: by.sign(&Sha512::of(text)),
        public_key: by.public_key(),
    }
}

pub fn signed_request(key: &SecretKey, time: Timestamp, payload: &str) -> SignedRequest {
    SignedRequest {
        timestamp: time.to_header(),
        nonce: NONCE.to_owned(),
        payload: payload.to_owned(),
        public_key: key.public_key(),
        signature: sign_request(key, time, NONCE, payload.as_bytes()),
    }
}

/// A release of one file with this content.
pub fn release(tag: &str, content: &str) -> Release {
    Release {
        dir: path(&format!("{PROJECT}/releases/tag/{tag}")),
        release_url: Some(format!("https://github.com/acme/app/releases/tag/{tag}")),
        published_on: Some(at("2026-01-30T08:00:00Z")),
        published_files: vec![published("app.tar.gz", content)],
    }
}

/// What a builder states who got all files of this index as they are.
pub fn rebuild_of(release: &RepoPath, index: &str) -> Rebuild {
    let files = ReleaseIndex::parse(index.as_bytes()).expect("an index").published_files;
    let files =
        files.into_iter().map(|PublishedFile { file_name, digests, .. }| RebuiltFile { file_name, digests });
    Rebuild {
        rebuild_of: release.clone(),
        subject_digest: Sha512::of(index.as_bytes()),
        source_commit: COMMIT.to_owned(),
        files: files.collect(),
        timestamp: at("2026-02-01T12:00:00Z"),
    }
}

/// A right signature in another format.
pub fn sign_format(format: OtherFormat, key: &SecretKey, sums: &ReleaseSums<'_>) -> String {
    sign_files(format, key, sums, &[])
}

/// A right signature in another format, and of these contents by themselves.
pub fn sign_files(
    format: OtherFormat,
    key: &SecretKey,
    sums: &ReleaseSums<'_>,
    contents: &[&[u8]],
) -> String {
    let read = contents.iter().map(|content| {
        let mut file = OpenpgpFile::default();
        file.update(content);
        file
    });
    let files: Vec<OpenpgpFile> = read.collect();
    let sign = |message: &FormatMessage| Ok::<_, Infallible>(message.sign_with(key));
    let Ok(text) = format.sign(&key.public_key(), sums, &files, sign);
    text
}

/// A right signature in another format, over this text of a release that was indexed at noon.
pub fn format_text(format: OtherFormat, key: &SecretKey, index: &str, sums: &str) -> String {
    sign_format(
        format,
        key,
        &ReleaseSums { index: &path(index), mirrored_on: at("2026-02-01T12:00:00Z"), text: sums },
    )
}

pub fn published(name: &str, content: &str) -> PublishedFile {
    let bytes = content.as_bytes();
    PublishedFile {
        file_name: AssetName::parse(name).expect("the test's own name"),
        size: Some(content.len() as u64),
        source: format!("https://github.com/acme/app/releases/download/{name}"),
        digests: Digests { sha256: Some(Sha256::of(bytes)), sha512: Some(Sha512::of(bytes)) },
    }
}

pub fn revocation_text(document: &Revocation) -> String {
    String::from_utf8(document.write()).expect("our documents are text")
}
