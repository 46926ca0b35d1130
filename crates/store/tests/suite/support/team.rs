//! People who register projects, sign and revoke, through the decisions of core, in a real store. A minute passes with
//! each thing that they do.

use std::sync::atomic::{AtomicI64, Ordering};

use countersign_core::documents::statement::{Rebuild, Revocation, StatementKind};
use countersign_core::rules::decide::assets::{Release, register_assets};
use countersign_core::rules::decide::{
    proposal::Proposal, proposal::drop_pending, rebuild::rebuild, register::register, sign::sign,
    statement::revoke, update::update,
};
use countersign_core::rules::snapshot::{Change, Snapshot as _};
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::{key::SecretKey, path::RepoPath, time::Timestamp};
use countersign_store::{Head, Store, catalogue::Catalogue, catalogue::FileDigest};
use countersign_testing::rebuild_of;
use countersign_testing::{FOURTEEN_DAYS, Signers, origin, published, signed_request, signed_statement};

use super::{Fixture, path, requests::submission};

pub(crate) struct Team {
    pub(crate) fixture: Fixture,
    pub(crate) store: Store,
    pub(crate) catalogue: Catalogue,
    now: AtomicI64,
}

pub(crate) const START: i64 = 1_800_000_000;

pub(crate) fn time(minutes: i64) -> Timestamp {
    Timestamp::from_unix_seconds(START + 60 * minutes).unwrap()
}

pub(crate) fn sha256(content: &str) -> FileDigest {
    FileDigest::Sha256(Sha256::of(content.as_bytes()))
}

pub(crate) fn sha512(content: &str) -> FileDigest {
    FileDigest::Sha512(Sha512::of(content.as_bytes()))
}

impl Team {
    pub(crate) fn new() -> Self {
        let fixture = Fixture::new();
        let store = fixture.start();
        Self { catalogue: store.catalogue(), store, fixture, now: AtomicI64::new(0) }
    }

    /// Minutes since the start.
    pub(crate) fn minute(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }

    fn pass(&self) -> Timestamp {
        time(self.now.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Stops the store, and opens it again.
    pub(crate) fn restart(self) -> Self {
        let Self { fixture, store, now, .. } = self;
        drop(store);
        let store = fixture.start();
        Self { catalogue: store.catalogue(), store, fixture, now }
    }

    pub(crate) async fn decide<T: Send + 'static, R: Send + std::fmt::Debug + 'static>(
        &self,
        decide: impl Fn(&Head) -> Result<(Change, T), R> + Send + 'static,
    ) -> T {
        self.store.transact(move |head, _| decide(head)).await.unwrap().unwrap()
    }

    fn proposal(&self, project: &str, signers: &Signers, by: &SecretKey, now: Timestamp) -> Proposal {
        Proposal {
            project: path(project),
            signers_bytes: signers.text().into_bytes().into(),
            origin: origin(now),
            submitter: by.public_key(),
            request: signed_request(by, now, "{}"),
        }
    }

    pub(crate) async fn register(&self, project: &str, signers: &Signers, by: &SecretKey) {
        let now = self.pass();
        let proposal = self.proposal(project, signers, by, now);
        self.decide(move |head| register(head, &proposal, FOURTEEN_DAYS, now)).await;
    }

    pub(crate) async fn propose(&self, project: &str, signers: &Signers, by: &SecretKey) {
        let now = self.pass();
        let proposal = self.proposal(project, signers, by, now);
        self.decide(move |head| update(head, &proposal, now)).await;
    }

    pub(crate) async fn drop_pending(&self, project: &str) {
        let project = path(project);
        self.decide(move |head| drop_pending(head, &project)).await;
    }

    /// Registers a project that all of its signers agree to.
    pub(crate) async fn activate(&self, project: &str, signers: &Signers, everyone: &[&SecretKey]) {
        self.register(project, signers, everyone[0]).await;
        self.sign_signers(project, everyone).await;
    }

    pub(crate) async fn sign_signers(&self, project: &str, signers: &[&SecretKey]) {
        self.sign(&format!("{project}/svc.signers.pending/svc.signers.json"), signers).await;
    }

    pub(crate) async fn sign(&self, file: &str, signers: &[&SecretKey]) {
        for signer in signers {
            let now = self.pass();
            let submission = submission(&self.store.head(), signer, path(file));
            self.decide(move |head| sign(head, &submission, now)).await;
        }
    }

    /// Registers or corrects a release with files of these contents; gives the path of its index.
    pub(crate) async fn add(&self, project: &str, tag: &str, contents: &[&str], by: &SecretKey) -> String {
        let files = contents.iter().enumerate();
        let release = Release {
            dir: path(&format!("{project}/releases/tag/{tag}")),
            release_url: Some(format!("https://example.org/releases/tag/{tag}")),
            published_on: None,
            published_files: files.map(|(i, content)| published(&format!("file{i}"), content)).collect(),
        };
        let index = release.write_index(&path(project), self.pass()).unwrap();
        let by = by.public_key();
        let added = self.decide(move |head| register_assets(head, &index, &by, 10_000)).await;
        added.index.to_string()
    }

    pub(crate) async fn add_signed(
        &self,
        project: &str,
        tag: &str,
        contents: &[&str],
        signers: &[&SecretKey],
    ) -> String {
        let index = self.add(project, tag, contents, signers[0]).await;
        self.sign(&index, signers).await;
        index
    }

    /// A document that revokes this index, as our client writes it.
    pub(crate) fn revocation(&self, index: &str, reason: &str) -> String {
        let subject_digest = Some(Sha512::of(&self.store.head().read(&path(index)).unwrap().unwrap()));
        let timestamp = time(self.minute());
        let document = Revocation { reason: reason.to_owned(), timestamp, subject_digest, initiator: None };
        String::from_utf8(document.write()).unwrap()
    }

    /// States that files of these contents come from the source.
    pub(crate) async fn rebuild(&self, index: &str, contents: &[&str], by: &SecretKey) {
        let bytes = self.store.head().read(&path(index)).unwrap().unwrap();
        let now = self.pass();
        let stated = rebuild_of(&path(index), std::str::from_utf8(&bytes).unwrap());
        let mut document = Rebuild { timestamp: now, ..stated };
        for (file, content) in document.files.iter_mut().zip(contents) {
            file.digests = published("file", content).digests;
        }
        let statement = signed_statement(StatementKind::Rebuild, &path(index), &document.write(), by);
        self.decide(move |head| rebuild(head, &statement, now)).await;
    }

    /// Gives whether it is revoked now.
    pub(crate) async fn revoke(&self, index: &str, document: &str, by: &SecretKey) -> bool {
        let now = self.pass();
        let statement = signed_statement(StatementKind::Revocation, &path(index), document.as_bytes(), by);
        let request = signed_request(by, now, "{}");
        self.decide(move |head| revoke(head, &statement, &request, now)).await.in_force
    }
}

pub(crate) fn texts<'a>(paths: impl IntoIterator<Item = &'a RepoPath>) -> Vec<String> {
    paths.into_iter().map(ToString::to_string).collect()
}
