//! What others can verify without the server: the evidence of a release, and the staple of the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_core::documents::history::{History, HistoryEntry};
use countersign_core::documents::said::RebuildsFile;
use countersign_core::documents::{layout, layout::Signable};
use countersign_core::documents::{signatures::SignatureSet, signed_request::SignedRequest};
use countersign_core::log::checkpoint::{Checkpoint, InclusionProof};
use countersign_core::log::record::{Leaf, LoggedState, digest_changes};
use countersign_core::log::{status::Statuses, tree::Tree};
use countersign_core::proof::freshness::{LogTrust, LoggedSigners, StapleSubject};
use countersign_core::proof::verify::{Evidence, RevocationEvidence, VerifiedArtifact, VerifyError, verify};
use countersign_core::proof::{bundle::Staple, freshness, state::State as ShownState, state::StateSubject};
use countersign_core::rules::snapshot::{Change, ReadError, Snapshot};
use countersign_core::rules::{reproduction::Reproduction, stored};
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::{
    other_format::OtherFormat, other_format::ReleaseSums, path::RepoPath, time::Timestamp,
};
use countersign_testing::{key, log_key, sign_format};
use serde_json::Value;

use crate::contents::{ContentId, Contents, State};
use crate::invariants::documents::{Key, Keys, Reader, read_key};
use crate::invariants::{Broken, Checked, Held, Invariant, steps::StepCheck};
use crate::roles::{
    BEGUN, BEGUN_SET, COLLECTING, COMPLETE, COPY, EARLIER, FILE, FORMATS, INDEX, OBJECTIONS, REBUILDS,
    REGISTRANT, REQUEST, REVOCATION, REVOCATION_COPY, REVOCATION_SET, REVOKED,
};
use crate::view::{Facts, ProjectFacts, ReleaseSlots, View};
use crate::{action::Action, action::Offered, world::World};

const EVIDENCE: u8 = 100;

#[derive(Debug, Clone, Copy)]
pub struct ProofCheck<'a> {
    pub world: &'a World,
    pub contents: &'a Contents,
    pub checked: &'a Checked,
}

impl ProofCheck<'_> {
    /// Checks that offline verification accepts exactly what the state calls complete and not revoked.
    pub fn check_offline(&self, project: &ProjectFacts, n: usize, release: usize) -> Held {
        let slots = &project.releases[release];
        if slots[INDEX].is_none() {
            return Ok(());
        }
        self.check_texts(slots)?;
        // A revocation that was begun is no part of the evidence, and objections are none.
        let others = [BEGUN, BEGUN_SET, REGISTRANT, OBJECTIONS, FORMATS, EARLIER];
        let shown = slots.iter().enumerate().filter(|(slot, _)| !others.contains(slot));
        let history = project.history.iter().map(|(_, entry)| Some(*entry));
        let on: Vec<_> = shown.map(|(_, content)| *content).chain(history).collect();
        let path = self.world.projects[n].index_path(u8::try_from(release).expect("few releases"));
        self.checked.once(EVIDENCE, &on, || self.check_evidence(project, slots, &path))
    }

    fn each_release(
        &self,
        facts: &Facts,
        mut check: impl FnMut(&ProjectFacts, &ReleaseSlots, &RepoPath) -> Held,
    ) -> Held {
        for (plan, project) in self.world.projects.iter().zip(&facts.projects) {
            for (n, release) in (0..).zip(&project.releases) {
                if release[INDEX].is_some() {
                    check(project, release, &plan.index_path(n))?;
                }
            }
        }
        Ok(())
    }

    fn check_evidence(&self, project: &ProjectFacts, release: &ReleaseSlots, path: &RepoPath) -> Held {
        let rule = Invariant::OfflineAgrees;
        let Some(evidence) = self.evidence(project, release, path) else {
            return rule.broken("there is no evidence that can be read");
        };
        self.check_statements(release, path)?;
        let verified = verify(&evidence);
        self.check_reproduction(&evidence, release, &verified)?;
        match (verified, release[COMPLETE].is_some(), release[REVOKED].is_some()) {
            (Ok(_) | Err(VerifyError::NotReproduced(_)), true, false) => {}
            (Err(VerifyError::Revoked(_)), false, true) | (Err(VerifyError::TooFew { .. }), false, false) => {
            }
            (Ok(_), ..) => return rule.broken("what is not complete, or is revoked, verifies offline"),
            (Err(error), ..) => return rule.broken(format!("it does not verify offline: {error}")),
        }
        // Without the revocation, which a server could hide, and with another index, which it could show.
        let other = Evidence { index: evidence.index.replacen("\"size\": 3", "\"size\": 4", 1), ..evidence };
        rule.hold(verify(&other).is_err(), "another index verifies under the same signatures")
    }

    fn text(&self, id: ContentId) -> Option<String> {
        String::from_utf8(self.contents.bytes(id).to_vec()).ok()
    }

    fn evidence(&self, project: &ProjectFacts, release: &ReleaseSlots, path: &RepoPath) -> Option<Evidence> {
        let set = |id: Option<ContentId>| SignatureSet::parse(self.contents.bytes(id?)).ok();
        let digest = |id: Option<ContentId>| Some(Sha512::of(self.contents.bytes(id?)));
        let entries =
            project.history.iter().map(|(_, entry)| HistoryEntry::parse(self.contents.bytes(*entry)).ok());
        let revocation = match release[REVOCATION] {
            None => None,
            Some(document) => Some(RevocationEvidence {
                document: self.text(document)?,
                signatures: set(release[REVOCATION_SET])?,
                governed_by: digest(release[REVOCATION_COPY])?,
                request: match release[REQUEST] {
                    Some(request) => Some(SignedRequest::parse(self.contents.bytes(request)).ok()?),
                    None => None,
                },
            }),
        };
        Some(Evidence {
            path: path.clone(),
            index: self.text(release[INDEX]?)?,
            signatures: set(release[COMPLETE].or(release[REVOKED]).or(release[COLLECTING]))?,
            governed_by: digest(release[COPY])?,
            history: History { entries: entries.collect::<Option<_>>()? },
            revocation,
            rebuilds: match release[REBUILDS] {
                Some(rebuilds) => RebuildsFile::parse(self.contents.bytes(rebuilds)).ok()?,
                None => RebuildsFile::default(),
            },
        })
    }

    /// The status map says what the state says.
    pub fn check_statuses(&self, statuses: &Statuses, facts: &Facts) -> Held {
        let rule = Invariant::StapleAgrees;
        for (plan, project) in self.world.projects.iter().zip(&facts.projects) {
            let record = statuses.project(&plan.id);
            let signers = project.active[FILE].map(|id| Sha512::of(self.contents.bytes(id)));
            rule.hold(record.map(|it| it.signers) == signers, "the log names other signers")?;
            let Some(record) = record else { continue };
            rule.hold(
                record.history as usize == project.history.len(),
                "the log counts other signers files",
            )?;
            let done = |release: &&ReleaseSlots| release[COMPLETE].or(release[REVOKED]).is_some();
            let completed = project.releases.iter().filter(done).count();
            rule.hold(record.completed as usize == completed, "the log counts other releases")?;
        }
        self.each_release(facts, |_, release, path| {
            let expected = match (release[COMPLETE], release[REVOKED], release[REVOCATION]) {
                (Some(_), None, _) => Some(LoggedState::Complete),
                (None, Some(_), Some(document)) => {
                    Some(LoggedState::Revoked(Sha512::of(self.contents.bytes(document))))
                }
                _ => None,
            };
            let logged = statuses.release(path).map(|release| release.state);
            rule.hold(logged == expected, "the log has another state of a release")
        })
    }

    /// A staple made from this map proves the same offline.
    pub fn check_staples(&self, statuses: &Statuses, facts: &Facts, change: &Change, now: Timestamp) -> Held {
        let rule = Invariant::StapleAgrees;
        let done = |release: &ReleaseSlots| release[COMPLETE].or(release[REVOKED]).is_some();
        self.each_release(facts, |project, release, path| {
            let Some(index) = release[INDEX].filter(|_| done(release)) else { return Ok(()) };
            let digest = Sha512::of(self.contents.bytes(index));
            let Some(statuses) = statuses.prove_release(path, digest) else {
                return rule.broken("the map proves nothing of a complete release");
            };
            let staple = staple_of(statuses, change);
            let staple = Staple::parse(&staple.write());
            let evidence =
                self.evidence(project, release, path).map(|it| Evidence { revocation: None, ..it });
            let artifact = evidence.and_then(|evidence| find_artifact(verify(&evidence)));
            let (Ok(staple), Some(artifact)) = (staple, artifact) else {
                return rule.broken("the staple cannot be read, or its release does not verify");
            };
            match freshness::verify(&staple, &StapleSubject::of(&artifact), LogTrust::Key(&log_key()), now) {
                Ok(fresh) => {
                    let is_revoked = matches!(fresh.state, LoggedState::Revoked(_));
                    rule.hold(is_revoked == release[REVOKED].is_some(), "the staple has another state")?;
                    rule.hold(fresh.signers == LoggedSigners::Newest, "the staple names other signers")
                }
                Err(error) => rule.broken(format!("the staple does not verify: {error}")),
            }
        })
    }
}

/// A staple of a log with one leaf, which has the state of all before it.
fn staple_of(statuses: countersign_core::log::status::StatusProof, change: &Change) -> Staple {
    let record = countersign_core::log::record::Record::Release(statuses.release.clone());
    let state = statuses.release_path.root(&record.key(), record.text().as_bytes());
    let object = Sha256::of(b"commit");
    let leaf = Leaf {
        commit: object.to_string()[..40].to_owned(),
        object,
        changes: digest_changes(change),
        state: state.expect("a path of our own"),
    };
    let mut tree = Tree::default();
    tree.push(leaf.hash());
    let root = tree.root(1).expect("one leaf");
    let log = log_key();
    let checkpoint = Checkpoint { origin: log.name().to_owned(), size: 1, root };
    let note = checkpoint.sign(&log, &key(100)).note();
    Staple { leaf, proof: InclusionProof { index: 0, hashes: Vec::new(), note }, statuses }
}

/// Reads an index of a state, for the status map.
pub fn read_index<'a>(
    contents: &'a Contents,
    state: &'a State,
) -> impl Fn(&RepoPath) -> Option<Arc<[u8]>> + use<'a> {
    |path| Some(Arc::clone(contents.bytes(contents.find(state, contents.find_path(path)?)?)))
}

// Signatures in other formats, beside those on the index.

type Texts = BTreeMap<Key, Value>;

/// Reads the texts by key; `None` if the file cannot be read.
fn read_texts(reader: &Reader, contents: &Contents, file: Option<ContentId>) -> Option<Texts> {
    let Some(file) = file else { return Some(Texts::new()) };
    let file = reader.value(contents, file)?;
    let entries = file.get("other_formats")?.as_object()?.iter();
    entries.map(|(name, texts)| Some((read_key(name)?, texts.clone()))).collect()
}

/// Checks at every state that only those who signed the index have signed in other formats.
pub fn check_state(reader: &Reader, contents: &Contents, release: &ReleaseSlots, signed: &Keys) -> Held {
    let texts = read_texts(reader, contents, release[FORMATS]);
    let is_signed = texts.is_some_and(|texts| texts.keys().all(|key| signed.contains(key)));
    Invariant::FormatsFollow.hold(is_signed, "other formats of a key that has not signed the index")
}

impl StepCheck<'_> {
    /// A signature brings its own texts. They go when what they sign, or its signatures, go. Nothing else touches them.
    pub(super) fn check_formats(&self, old: &ProjectFacts, new: &ProjectFacts) -> Held {
        let rule = Invariant::FormatsFollow;
        let is_rotation = old.active != new.active;
        for (n, (was, is)) in (0..).zip(old.releases.iter().zip(&new.releases)) {
            let expected = match self.action {
                Action::SignIndex { release, by, offered: Offered::InFormats, .. } if release == n => {
                    let Some(mut texts) = read_texts(self.reader, self.contents, was[FORMATS]) else {
                        return rule.broken("other formats cannot be read");
                    };
                    texts.insert(self.key(), self.texts(release, by, was[INDEX]));
                    let found = read_texts(self.reader, self.contents, is[FORMATS]);
                    rule.hold(found == Some(texts), "other formats are not those that were handed in")?;
                    continue;
                }
                Action::Assets { release, .. } | Action::Withdraw { release, .. } if release == n => None,
                _ if is_rotation && was[COLLECTING].is_some() => None,
                _ if is[REVOKED].is_some() => None,
                _ => was[FORMATS],
            };
            rule.hold(is[FORMATS] == expected, "other formats outlived what they sign, or were changed")?;
        }
        Ok(())
    }

    /// What this person makes of the index, in each format.
    fn texts(&self, release: u8, by: u8, index: Option<ContentId>) -> Value {
        let index = index.and_then(|id| self.reader.value(self.contents, id));
        let files = index.as_ref().and_then(|index| index.get("published_files")?.as_array());
        let line = |file: &Value| {
            let (digest, name) = (file["digests"]["sha256"].as_str(), file["file_name"].as_str());
            format!("{}  {}\n", digest.unwrap_or_default(), name.unwrap_or_default())
        };
        let sums: String = files.into_iter().flatten().map(line).collect();
        let plan = &self.world.projects[usize::from(self.action.project().unwrap_or_default())];
        let (path, secret) = (plan.index_path(release), &self.world.people[usize::from(by)].secret);
        let mirrored_on =
            index.as_ref().and_then(|index| Timestamp::parse(index["mirrored_on"].as_str()?).ok());
        let Some(mirrored_on) = mirrored_on else { return Value::Null };
        let sums = ReleaseSums { index: &path, mirrored_on, text: &sums };
        let text = |(name, format)| (String::from(name), Value::from(sign_format(format, secret, &sums)));
        let formats = [
            ("minisign", OtherFormat::Minisign),
            ("openpgp", OtherFormat::Openpgp),
            ("ssh", OtherFormat::Ssh),
        ];
        Value::Object(formats.into_iter().map(text).collect())
    }
}

/// What a server shows of a release or a project is what is stored (D232), and a reader loses nothing of it. Gathers
/// the state of each, reads it as a client does, and compares every file with the stored one.
pub fn check_shown(view: &View<'_>) -> Held {
    let paths: Vec<&RepoPath> = view.all_paths().collect();
    let mut subjects: BTreeSet<&RepoPath> = BTreeSet::new();
    for path in &paths {
        let is_index = layout::signable(path) == Some(Signable::Index);
        if is_index || layout::project_with_signers_at(path).is_some() && layout::signable(path).is_some() {
            subjects.insert(path);
        }
    }
    for path in subjects {
        let Some(subject) = StateSubject::find(view, path) else {
            return broken_state(path, "it is stored, and no subject of a state");
        };
        let state =
            ShownState::gather(view, subject).or_else(|error| broken_state(path, &error.to_string()))?;
        check_described(view, path, state.evidence.as_ref())?;
        let shown = state.to_files().or_else(|error| broken_state(path, &error.to_string()))?;
        let belongs = |file: &RepoPath| match layout::signable(path) {
            Some(Signable::Index) => file.as_str().starts_with(path.as_str()),
            Some(Signable::PendingSigners { .. }) | None => file.parent() == path.parent(),
        };
        for file in paths.iter().filter(|file| belongs(file)) {
            if shown.read(file).ok().flatten() != view.read(file).ok().flatten() {
                return broken_state(file, "it is shown otherwise than it is stored");
            }
        }
    }
    Ok(())
}

/// Pages and lists say how far a release is reproduced as a client finds it (D261).
fn check_described(view: &View<'_>, path: &RepoPath, evidence: Option<&Evidence>) -> Held {
    let names_builders = |evidence: &&Evidence| {
        evidence.history.entries.iter().any(|entry| entry.signers_config.contains("\"rebuilds\""))
    };
    let Some(evidence) = evidence.filter(names_builders) else { return Ok(()) };
    let described = || {
        let found = Reproduction::read(view, path, &stored::signers_copy(view, path)?)?;
        let in_force = stored::require_signers_in_force(view, path)?;
        Ok(found.map(|found| found.asked_under(&in_force.file)))
    };
    let described = described().or_else(|error: ReadError| broken_state(path, &error.to_string()))?;
    let verified = find_artifact(verify(evidence)).and_then(|artifact| artifact.reproduction);
    let what = "pages say something else of its rebuilds than clients find";
    Invariant::ReproductionAgrees.hold(described == verified, what)
}

fn broken_state<T>(path: &RepoPath, what: &str) -> Result<T, Broken> {
    Invariant::StatesAreSound.broken(format!("{path}: {what}"))
}

/// The release that a verification found, whatever it says of it.
pub fn find_artifact(verified: Result<VerifiedArtifact, VerifyError>) -> Option<VerifiedArtifact> {
    match verified {
        Ok(artifact) => Some(artifact),
        Err(VerifyError::NotReproduced(artifact)) => Some(*artifact),
        Err(VerifyError::Revoked(revoked)) => Some(revoked.artifact),
        Err(_) => None,
    }
}
