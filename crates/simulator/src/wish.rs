//! The wishes of people. A wish says which project is to go on; the state says how. So almost every wish is a change
//! that the real rules give.

use std::{sync::Arc, time::Duration};

use countersign_api::requests::ProposeBody;
use countersign_core::documents::signers::{SignersOrigin, SourceKind};
use countersign_core::documents::statement::{Revocation, StatementKind};
use countersign_core::documents::{index::PublishedFile, layout, signed_request::SignedRequest};
use countersign_core::rules::auth::{check_carried, sign_request};
use countersign_core::rules::decide::assets::{Release, register_assets};
use countersign_core::rules::decide::sign::{SignaturesBody, sign};
use countersign_core::rules::decide::{
    proposal::Proposal, register::register, statement::revoke, update::update,
};
use countersign_core::rules::{snapshot::Change, snapshot::Snapshot, stored::files_to_sign};
use countersign_core::values::{digest::Sha512, key::SecretKey, path::RepoPath, time::Timestamp};
use countersign_store::Head;
use countersign_testing::{key, path, published, signed_statement, signers};

const EXPIRY: Duration = Duration::from_secs(14 * 24 * 60 * 60);
const MAX_COLLECTING: usize = 10_000;
const MAX_RELEASES: usize = 64;

#[derive(Debug, Clone)]
pub struct ChangeWish {
    pub project: usize,
    /// Decides where the state leaves a choice.
    pub whim: usize,
    pub request: RequestMark,
    /// The seconds by which the clock is set as soon as this was decided, before it is committed.
    pub jump: i64,
}

/// A mark that makes a request unlike all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestMark {
    pub number: u64,
    pub signed_at: Timestamp,
}

impl RequestMark {
    pub fn nonce(&self) -> [u8; 16] {
        let mut nonce = [0; 16];
        nonce[8..].copy_from_slice(&self.number.to_be_bytes());
        // What makes it a random UUID.
        (nonce[6], nonce[8]) = (0x40, 0x80);
        nonce
    }

    fn text(&self) -> String {
        let hex: String = self.nonce().iter().map(|byte| format!("{byte:02x}")).collect();
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }
}

type Decided = Result<Change, String>;

impl ChangeWish {
    /// The next change of this project.
    pub fn decide(&self, head: &Head, now: Timestamp) -> Decided {
        check_carried(self.request.signed_at, now).map_err(text)?;
        let project = self.id();
        let pending = layout::pending_signers(&project);
        if head.contains(&pending) {
            return self.sign(head, &pending, now);
        }
        if !head.contains(&layout::active_signers(&project)) {
            return register(head, &self.proposal(now), EXPIRY, now).map(first).map_err(text);
        }
        if self.whim.is_multiple_of(8) {
            return update(head, &self.proposal(now), now).map(first).map_err(text);
        }
        for number in 0..MAX_RELEASES {
            let dir = path(&format!("{project}/releases/tag/v{number}"));
            let index = layout::index_in(&dir);
            if !head.contains(&index) {
                let release = self.release(dir);
                let index = release.write_index(&project, now).map_err(text)?;
                return register_assets(head, &index, &people()[0].public_key(), MAX_COLLECTING)
                    .map(first)
                    .map_err(text);
            }
            if head.contains(&layout::pending_signatures_of(&index)) {
                return self.sign(head, &index, now);
            }
            if self.whim.is_multiple_of(5) && !head.contains(&layout::revocation_of(&index)) {
                return self.revoke(head, index, now);
            }
        }
        Err("there are releases enough".to_owned())
    }

    fn id(&self) -> RepoPath {
        path(&format!("https/github.com/443/acme/app{}", self.project))
    }

    fn proposal(&self, now: Timestamp) -> Proposal {
        let [one, other] = people();
        let name = format!("acme/app{}", self.project);
        let url = format!("https://github.com/{name}/blob/main/svc.signers.json");
        let retrieval_url =
            format!("https://raw.githubusercontent.com/{name}/refs/heads/main/svc.signers.json");
        let body = ProposeBody { signers_file_url: url.clone(), public_key: one.public_key() };
        let file = signers(&now.to_header()).artifact(2, [&one, &other]).revocation(1, [&one]);
        Proposal {
            project: self.id(),
            signers_bytes: file.text().into_bytes().into(),
            origin: SignersOrigin { kind: SourceKind::Github, url, retrieval_url, retrieved_at: now },
            submitter: one.public_key(),
            request: self.signed(&one, &body),
        }
    }

    /// Signs as the first who has not signed.
    fn sign(&self, head: &Head, file: &RepoPath, now: Timestamp) -> Decided {
        let files = files_to_sign(head, file).map_err(text)?.unwrap_or_default();
        let mut refused = String::new();
        for person in people() {
            let sign_one =
                |(path, bytes): (&RepoPath, &Arc<[u8]>)| (path.clone(), person.sign(&Sha512::of(bytes)));
            let submission = SignaturesBody {
                file_path: file.clone(),
                public_key: person.public_key(),
                signatures: files.iter().map(sign_one).collect(),
                other_formats: Default::default(),
            };
            match sign(head, &submission, now) {
                Ok(decided) => return Ok(first(decided)),
                Err(refusal) => refused = refusal.to_string(),
            }
        }
        Err(refused)
    }

    fn release(&self, dir: RepoPath) -> Release {
        let tag = dir.file_name().to_owned();
        let source =
            format!("https://github.com/acme/app{}/releases/download/{tag}/app.tar.gz", self.project);
        // Who tries again after a crash brings the same bytes.
        let file = PublishedFile { source, ..published("app.tar.gz", dir.as_str()) };
        let release_url = Some(format!("https://github.com/acme/app{}/releases/tag/{tag}", self.project));
        Release { dir, release_url, published_on: None, published_files: vec![file] }
    }

    fn revoke(&self, head: &Head, file: RepoPath, now: Timestamp) -> Decided {
        let [person, _] = people();
        let index = head.read(&file).map_err(text)?.unwrap_or_default();
        let document = Revocation {
            reason: "a bad build".to_owned(),
            timestamp: self.request.signed_at,
            subject_digest: Some(Sha512::of(&index)),
            initiator: None,
        };
        let statement = signed_statement(StatementKind::Revocation, &file, &document.write(), &person);
        let request = self.signed(&person, &statement);
        revoke(head, &statement, &request, now).map(first).map_err(text)
    }

    fn signed(&self, by: &SecretKey, body: &impl serde::Serialize) -> SignedRequest {
        let payload = serde_json::to_string(body).expect("a body is JSON");
        let (nonce, time) = (self.request.text(), self.request.signed_at);
        SignedRequest {
            timestamp: time.to_header(),
            signature: sign_request(by, time, &nonce, payload.as_bytes()),
            nonce,
            payload,
            public_key: by.public_key(),
        }
    }
}

fn people() -> [SecretKey; 2] {
    [key(1), key(2)]
}

fn first<T>((change, _): (Change, T)) -> Change {
    change
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
