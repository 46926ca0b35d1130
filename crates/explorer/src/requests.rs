//! Leads from an action to the request that it stands for, and to what the rules of `core` decide. Signatures are real,
//! and made once for each key and content.

pub mod statements;

use std::{collections::BTreeMap, collections::HashMap, sync::Arc, time::Duration};

use countersign_api::requests::ProposeBody;
use countersign_core::documents::index::{
    AssetName, Digests, PublishedFile, ReleaseIndex, render_sha256sums,
};
use countersign_core::documents::statement::{Revocation, SignedStatement, StatementKind};
use countersign_core::documents::{signatures::FormatTexts, signers::SignersOrigin, signers::SourceKind};
use countersign_core::rules::decide::assets::{AssetsRefusal, Release, WrittenIndex, register_assets};
use countersign_core::rules::decide::proposal::{DropRefusal, drop_pending};
use countersign_core::rules::decide::register::{RegisterRefusal, register};
use countersign_core::rules::decide::sign::{Prepared, SignRefusal, SignaturesBody, sign_prepared};
use countersign_core::rules::decide::statement::{StatementRefusal, revoke};
use countersign_core::rules::decide::{proposal::Proposal, update::UpdateRefusal, update::update};
use countersign_core::rules::snapshot::{Change, ReadError};
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::{
    key::Signature, other_format::OtherFormat, other_format::ReleaseSums, path::RepoPath, time::Timestamp,
};
use countersign_testing::{RevokeRequest, at, path, sign_format, signed_request};

use crate::action::{Action, Document, Offered};
use crate::contents::{ContentId, Contents, State};
use crate::{view::Reads, view::View, world::ProjectPlan, world::World};

/// How long a registration blocks others.
pub const EXPIRY: Duration = Duration::from_secs(14 * 24 * 60 * 60);
const MAX_COLLECTING: usize = 10_000;

/// What became of a request.
#[derive(Debug)]
pub enum Decision {
    Changed(Change),
    Clock(u8),
    /// The request is accepted, and changes nothing.
    Nothing,
    Refused(String),
    /// The rules say that the repository is broken.
    Corrupt(ReadError),
}

#[derive(Debug)]
pub struct Requests<'w> {
    world: &'w World,
    signatures: HashMap<(u8, ContentId), Signature>,
    prepared: HashMap<(RepoPath, ContentId, Option<ContentId>, u8, Offered), Prepared>,
    proposals: HashMap<(u8, u8, u8, u8), Proposal>,
    indexes: HashMap<(u8, u8, u8, u8), WrittenIndex>,
    revocations: HashMap<(Action, ContentId, u8), RevokeRequest>,
    paths: Vec<ProjectPaths>,
}

/// The place and the time of a request, and what is read for it.
#[derive(Debug)]
struct Asked<'a> {
    contents: &'a mut Contents,
    state: &'a State,
    reads: &'a Reads,
}

#[derive(Debug)]
struct ProjectPaths {
    pending: RepoPath,
    pending_metadata: RepoPath,
    indexes: Vec<RepoPath>,
}

/// The number of a signers file that is later than all of a plan.
pub const RESCUE: u8 = u8::MAX;

impl<'w> Requests<'w> {
    pub fn new(world: &'w World) -> Self {
        let paths = |plan: &ProjectPlan| ProjectPaths {
            pending: plan.pending_path(),
            pending_metadata: path(&format!("{}.metadata.json", plan.pending_path())),
            indexes: (0..).take(plan.releases.len()).map(|release| plan.index_path(release)).collect(),
        };
        Self {
            world,
            signatures: HashMap::new(),
            prepared: HashMap::new(),
            proposals: HashMap::new(),
            indexes: HashMap::new(),
            revocations: HashMap::new(),
            paths: world.projects.iter().map(paths).collect(),
        }
    }

    /// Notes in `reads` what the request and the decision depend on.
    pub fn decide(
        &mut self,
        contents: &mut Contents,
        state: &State,
        action: Action,
        reads: &Reads,
    ) -> Decision {
        let now = self.world.clocks[usize::from(state.clock)];
        match action {
            Action::Register { project, file, by } => {
                let proposal = self.proposal(project, file, by, state.clock);
                match register(&View { contents, state, reads }, proposal, EXPIRY, now) {
                    Ok((change, _)) => changed(change),
                    Err(RegisterRefusal::Stored(error)) => Decision::Corrupt(error),
                    Err(refusal) => Decision::Refused(refusal.to_string()),
                }
            }
            Action::Update { project, file, by } => {
                let proposal = self.proposal(project, file, by, state.clock);
                match update(&View { contents, state, reads }, proposal, now) {
                    Ok((change, _)) => changed(change),
                    Err(UpdateRefusal::Stored(error)) => Decision::Corrupt(error),
                    Err(refusal) => Decision::Refused(refusal.to_string()),
                }
            }
            Action::SignProposal { project, by, offered } => {
                let paths = &self.paths[usize::from(project)];
                let files = [paths.pending.clone(), paths.pending_metadata.clone()];
                self.sign(Asked { contents, state, reads }, by, offered, files.to_vec())
            }
            Action::SignIndex { project, release, by, offered } => {
                let index = self.paths[usize::from(project)].indexes[usize::from(release)].clone();
                self.sign(Asked { contents, state, reads }, by, offered, vec![index])
            }
            Action::Assets { project, release, content, by } => {
                let key = self.world.people[usize::from(by)].public;
                let index = self.index(project, release, content, state.clock);
                match register_assets(&View { contents, state, reads }, index, &key, MAX_COLLECTING) {
                    Ok((change, _)) => changed(change),
                    Err(AssetsRefusal::Stored(error)) => Decision::Corrupt(error),
                    Err(refusal) => Decision::Refused(refusal.to_string()),
                }
            }
            Action::Revoke { .. } => self.revoke(Asked { contents, state, reads }, action, now),
            Action::Withdraw { .. } => self.withdraw(Asked { contents, state, reads }, action, now),
            Action::Object { .. } => self.object(Asked { contents, state, reads }, action, now),
            Action::Rebuild { .. } => self.rebuild(Asked { contents, state, reads }, action, now),
            Action::Veto { .. } => self.veto(Asked { contents, state, reads }, action, now),
            Action::Activate { project } => self.activate(Asked { contents, state, reads }, project, now),
            Action::Drop { project } => {
                let id = &self.world.projects[usize::from(project)].id;
                match drop_pending(&View { contents, state, reads }, id) {
                    Ok((change, ())) => changed(change),
                    Err(DropRefusal::Stored(error)) => Decision::Corrupt(error),
                    Err(refusal) => Decision::Refused(refusal.to_string()),
                }
            }
            Action::SetClock { to } if to == state.clock => Decision::Nothing,
            Action::SetClock { to } if to < state.clock => {
                Decision::Refused("time does not go back".to_owned())
            }
            Action::SetClock { to } => Decision::Clock(to),
        }
    }

    fn sign(&mut self, asked: Asked<'_>, by: u8, offered: Offered, files: Vec<RepoPath>) -> Decision {
        let Asked { contents, state, reads } = asked;
        let now = self.world.clocks[usize::from(state.clock)];
        let ids: Vec<ContentId> = files.iter().map(|file| content_at(contents, state, file, reads)).collect();
        let known = (files[0].clone(), ids[0], ids.get(1).copied(), by, offered);
        if !self.prepared.contains_key(&known) {
            let mut signatures = BTreeMap::new();
            for (file, id) in files.iter().zip(&ids) {
                signatures.insert(file.clone(), self.offer(contents, by, offered, *id));
            }
            let public_key = self.world.people[usize::from(by)].public;
            let other_formats = self.formats(contents, &files[0], ids[0], by, offered);
            let submission =
                SignaturesBody { file_path: files[0].clone(), public_key, signatures, other_formats };
            // A wrong signature is not known to verify, so each decision looks at it again.
            self.prepared.insert(known.clone(), submission.prepare(&View { contents, state, reads }));
        }
        match sign_prepared(&View { contents, state, reads }, &self.prepared[&known], now) {
            Ok((change, _)) => changed(change),
            Err(SignRefusal::Stored(error)) => Decision::Corrupt(error),
            Err(refusal) => Decision::Refused(refusal.to_string()),
        }
    }

    /// The signatures in other formats under this person's name.
    fn formats(
        &self,
        contents: &Contents,
        file: &RepoPath,
        id: ContentId,
        by: u8,
        offered: Offered,
    ) -> FormatTexts {
        let by = match offered {
            Offered::InFormats => by,
            Offered::WrongFormats => another(by),
            Offered::Right | Offered::OfAnother | Offered::OnOther => return FormatTexts::new(),
        };
        let secret = &self.world.people[usize::from(by)].secret;
        let index = ReleaseIndex::parse(contents.bytes(id));
        let sums = index.ok().and_then(|index| Some((index.mirrored_on, render_sha256sums(&index).ok()?)));
        let (mirrored_on, text) = sums.unwrap_or_else(|| (at("2026-02-01T12:00:00Z"), String::new()));
        let sums = ReleaseSums { index: file, mirrored_on, text: &text };
        let text = |format| (format, sign_format(format, secret, &sums));
        OtherFormat::ALL.into_iter().map(text).collect()
    }

    /// The signature that stands under this person's name.
    fn offer(&mut self, contents: &mut Contents, by: u8, offered: Offered, id: ContentId) -> Signature {
        match offered {
            Offered::Right | Offered::InFormats | Offered::WrongFormats => self.signature(contents, by, id),
            Offered::OfAnother => self.signature(contents, another(by), id),
            Offered::OnOther => {
                let other = contents.intern(&Arc::from([b"other: ", &contents.bytes(id)[..]].concat()));
                self.signature(contents, by, other)
            }
        }
    }

    fn signature(&mut self, contents: &Contents, by: u8, id: ContentId) -> Signature {
        let secret = &self.world.people[usize::from(by)].secret;
        let sign = || secret.sign(&Sha512::of(contents.bytes(id)));
        *self.signatures.entry((by, id)).or_insert_with(sign)
    }

    fn proposal(&mut self, project: u8, file: u8, by: u8, clock: u8) -> &Proposal {
        let world = self.world;
        self.proposals.entry((project, file, by, clock)).or_insert_with(|| {
            let (plan, person) = (&world.projects[usize::from(project)], &world.people[usize::from(by)]);
            let (name, now) = (plan.name(), world.clocks[usize::from(clock)]);
            let url = format!("https://github.com/{name}/blob/main/svc.signers.json");
            let body = ProposeBody { signers_file_url: url.clone(), public_key: person.public };
            let retrieval_url =
                format!("https://raw.githubusercontent.com/{name}/refs/heads/main/svc.signers.json");
            let bytes = plan.files.get(usize::from(file)).map_or(&plan.rescue, |file| &file.bytes);
            Proposal {
                project: plan.id.clone(),
                signers_bytes: Arc::clone(bytes),
                origin: SignersOrigin { kind: SourceKind::Github, url, retrieval_url, retrieved_at: now },
                submitter: person.public,
                request: signed_request(&person.secret, now, &json_text(&body)),
            }
        })
    }

    fn index(&mut self, project: u8, release: u8, content: u8, clock: u8) -> &WrittenIndex {
        let world = self.world;
        self.indexes.entry((project, release, content, clock)).or_insert_with(|| {
            let plan = &world.projects[usize::from(project)];
            let (tag, content) =
                (plan.releases[usize::from(release)], plan.contents[usize::from(content)].as_bytes());
            let published = |name: &str| PublishedFile {
                file_name: AssetName::parse(name).expect("a name"),
                size: Some(content.len() as u64),
                source: format!("https://github.com/{}/releases/download/{tag}/{name}", plan.name()),
                digests: digests_of(content),
            };
            let release = Release {
                dir: plan.release_dir(release),
                release_url: Some(format!("https://github.com/{}/releases/tag/{tag}", plan.name())),
                published_on: Some(at("2026-01-30T08:00:00Z")),
                published_files: plan.published.iter().map(|name| published(name)).collect(),
            };
            release.write_index(&plan.id, world.clocks[usize::from(clock)]).expect("a small index")
        })
    }

    fn revoke(&mut self, asked: Asked<'_>, action: Action, now: Timestamp) -> Decision {
        let Asked { contents, state, reads } = asked;
        let Action::Revoke { project, release, document, by, offered } = action else {
            unreachable!("asked for revocations alone")
        };
        let file = self.paths[usize::from(project)].indexes[usize::from(release)].clone();
        let index = content_at(contents, state, &file, reads);
        let known = (action, index, state.clock);
        if !self.revocations.contains_key(&known) {
            let text: Arc<[u8]> = self.document(contents, document, index).write().into();
            let id = contents.intern(&text);
            let signature = self.offer(contents, by, offered, id);
            let person = &self.world.people[usize::from(by)];
            let statement = SignedStatement {
                kind: StatementKind::Revocation,
                file_path: file,
                text: String::from_utf8(text.to_vec()).expect("our documents are text"),
                signature,
                public_key: person.public,
            };
            let request = signed_request(&person.secret, now, &json_text(&statement));
            self.revocations.insert(known, RevokeRequest { statement, request });
        }
        let RevokeRequest { statement, request } = &self.revocations[&known];
        match revoke(&View { contents, state, reads }, statement, request, now) {
            Ok((change, _)) => changed(change),
            Err(StatementRefusal::Stored(error)) => Decision::Corrupt(error),
            Err(refusal) => Decision::Refused(refusal.to_string()),
        }
    }

    fn document(&self, contents: &Contents, document: Document, index: ContentId) -> Revocation {
        let subject = Sha512::of(contents.bytes(index));
        let (reason, subject_digest, initiator) = match document {
            Document::First => ("a bad build", Some(subject), None),
            Document::Second => ("a stolen key", Some(subject), None),
            Document::Initiated => ("begun by one", Some(subject), Some(self.world.people[0].public)),
            Document::Unnamed => ("no file is named", None, None),
            Document::OfOther => ("another file", Some(Sha512::of(b"another file")), None),
        };
        let timestamp = self.world.clocks[0];
        Revocation { reason: reason.to_owned(), timestamp, subject_digest, initiator }
    }
}

fn digests_of(content: &[u8]) -> Digests {
    Digests { sha256: Some(Sha256::of(content)), sha512: Some(Sha512::of(content)) }
}

/// A person who is someone else.
fn another(by: u8) -> u8 {
    if by == 0 { 1 } else { 0 }
}

fn changed(change: Change) -> Decision {
    if change.is_empty() { Decision::Nothing } else { Decision::Changed(change) }
}

/// The content at a path, or nothing at all.
fn content_at(contents: &mut Contents, state: &State, file: &RepoPath, reads: &Reads) -> ContentId {
    reads.note_content(contents.part_of(file));
    let found = contents.find_path(file).and_then(|path| contents.find(state, path));
    found.unwrap_or_else(|| contents.intern(&Arc::from([])))
}

fn json_text(body: &impl serde::Serialize) -> String {
    serde_json::to_string(body).expect("a body is JSON")
}
