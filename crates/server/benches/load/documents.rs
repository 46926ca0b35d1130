//! Stored documents as the server would have written them. Projects come from core's decisions, applied to a map.
//! Releases are written directly, every signature included.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use countersign_core::documents::index::{AssetName, Digests, PublishedFile, ReleaseIndex};
use countersign_core::documents::signatures::{Collected, SignatureSet};
use countersign_core::documents::signers::{SignersOrigin, SourceKind};
use countersign_core::documents::{layout, signed_request::SignedRequest};
use countersign_core::rules::auth::sign_request;
use countersign_core::rules::decide::{proposal::Proposal, register, sign};
use countersign_core::rules::snapshot::{Change, ReadError, Snapshot};
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::{key::SecretKey, path::RepoPath, time::Timestamp};

use crate::{Failure, plan::index_in, plan::key_of, plan::project_of};

const SIGNERS: usize = 3;
const THRESHOLD: usize = 2;
/// A time that is equal in every run, so that the content of a kept repository is known without reading it.
const WRITTEN_AT: i64 = 1_750_000_000;
const ASSETS: [&str; 4] = ["app-arm64.tar.gz", "app-x86_64.tar.gz", "app.deb", "app.zip"];

/// An owner's project, and the keys of its signers. Two of three must sign.
pub(crate) struct Owner {
    name: String,
    project: RepoPath,
    keys: [SecretKey; SIGNERS],
    signers_file: Arc<[u8]>,
    now: Timestamp,
}

pub(crate) struct Collecting {
    pub(crate) owner: String,
    pub(crate) path: RepoPath,
    pub(crate) digest: Sha512,
}

impl Owner {
    pub(crate) fn new(name: String) -> Result<Self, Failure> {
        let now = Timestamp::from_unix_seconds(WRITTEN_AT)?;
        let keys: [SecretKey; SIGNERS] = std::array::from_fn(|signer| key_of(&name, signer));
        let listed: Vec<String> = keys
            .iter()
            .map(|key| format!(r#"{{"kind":"key","data":{{"pubkey":"{}"}}}}"#, key.public_key()))
            .collect();
        let listed = listed.join(",");
        let signers_file = format!(
            r#"{{"version":1,"timestamp":"{now}","artifact_signers":[{{"threshold":{THRESHOLD},"signers":[{listed}]}}]}}"#
        );
        let signers_file = signers_file.into_bytes().into();
        Ok(Self { project: project_of(&name)?, name, keys, signers_file, now })
    }

    /// Everything in the tree after a registration that all signers have signed.
    pub(crate) fn write_project(&self, change: &mut Change) -> Result<(), Failure> {
        let mut files = Scratch::default();
        let (registered, _) =
            register::register(&files, &self.proposal(), Duration::from_secs(1_000_000), self.now)?;
        files.apply(registered);
        let file = layout::pending_signers(&self.project);
        let mut is_complete = false;
        for key in &self.keys {
            let mut signatures = BTreeMap::new();
            for path in [file.clone(), layout::metadata_of(&file)] {
                let content = files.read(&path)?.ok_or("a proposal without its files")?;
                signatures.insert(path, key.sign(&Sha512::of(&content)));
            }
            let submission = sign::SignaturesBody {
                file_path: file.clone(),
                public_key: key.public_key(),
                signatures,
                other_formats: Default::default(),
            };
            let (signed, outcome) = sign::sign(&files, &submission, self.now)?;
            files.apply(signed);
            is_complete = outcome.is_complete;
        }
        if !is_complete {
            return Err("the project did not become active".into());
        }
        change.files.extend(files.0.into_iter().map(|(path, content)| (path, Some(content))));
        Ok(())
    }

    pub(crate) fn write_complete(&self, change: &mut Change, version: &str) -> Result<(), Failure> {
        let (path, content) = self.index(version)?;
        let digest = Sha512::of(&content);
        let mut set = SignatureSet::default();
        for key in &self.keys[..THRESHOLD] {
            let signature = key.sign(&digest);
            set.add(key.public_key(), Collected { signature, collected_at: self.now });
        }
        change.write(layout::signers_copy_of(&path), Arc::clone(&self.signers_file));
        change.write(layout::signatures_of(&path), set.write());
        change.write(path, content);
        Ok(())
    }

    pub(crate) fn write_collecting(&self, change: &mut Change, version: &str) -> Result<Collecting, Failure> {
        let (path, content) = self.index(version)?;
        let digest = Sha512::of(&content);
        change.write(layout::signers_copy_of(&path), Arc::clone(&self.signers_file));
        change.write(layout::pending_signatures_of(&path), SignatureSet::default().write());
        change.write(path.clone(), content);
        Ok(Collecting { owner: self.name.clone(), path, digest })
    }

    fn proposal(&self) -> Proposal {
        let url = format!("https://dl.example.org/{}/app/svc.signers.json", self.name);
        let (nonce, submitter) = ("00000000-0000-4000-8000-000000000000".to_owned(), &self.keys[0]);
        Proposal {
            project: self.project.clone(),
            signers_bytes: Arc::clone(&self.signers_file),
            origin: SignersOrigin {
                kind: SourceKind::FileServer,
                url: url.clone(),
                retrieval_url: url,
                retrieved_at: self.now,
            },
            submitter: submitter.public_key(),
            request: SignedRequest {
                timestamp: self.now.to_header(),
                payload: String::new(),
                public_key: submitter.public_key(),
                signature: sign_request(submitter, self.now, &nonce, b""),
                nonce,
            },
        }
    }

    fn index(&self, version: &str) -> Result<(RepoPath, Vec<u8>), Failure> {
        let published_files = ASSETS.iter().map(|asset| {
            let source = format!("https://dl.example.org/{}/app/{version}/{asset}", self.name);
            let digests = Digests { sha256: Some(Sha256::of(source.as_bytes())), sha512: None };
            Ok(PublishedFile { file_name: AssetName::parse(asset)?, size: Some(1 << 20), source, digests })
        });
        let index = ReleaseIndex {
            project_id: self.project.clone(),
            release_url: None,
            mirrored_on: self.now,
            published_on: None,
            published_files: published_files.collect::<Result<_, Failure>>()?,
        };
        Ok((index_in(&self.project, version)?, index.write()))
    }
}

/// A repository with one project in it.
#[derive(Default)]
struct Scratch(BTreeMap<RepoPath, Arc<[u8]>>);

impl Scratch {
    fn apply(&mut self, change: Change) {
        for (path, content) in change.files {
            match content {
                Some(content) => self.0.insert(path, content),
                None => self.0.remove(&path),
            };
        }
    }
}

impl Snapshot for Scratch {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        Ok(self.0.get(path).cloned())
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.0.contains_key(path)
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        let dir = format!("{dir}/");
        Ok(self.0.keys().filter(|path| path.as_str().starts_with(&dir)).cloned().collect())
    }

    fn projects_overlapping(&self, _: &RepoPath) -> Vec<RepoPath> {
        Vec::new()
    }

    fn pending_registrations(&self, _: &RepoPath) -> Vec<Timestamp> {
        Vec::new()
    }

    fn collecting_indexes(&self, _: &RepoPath) -> Vec<RepoPath> {
        Vec::new()
    }
}
