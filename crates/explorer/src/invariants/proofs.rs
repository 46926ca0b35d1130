//! What others can verify without the server: the evidence of a release, and the staple of the log.

use std::sync::Arc;

use countersign_core::{
    documents::{
        history::{History, HistoryEntry},
        signatures::SignatureSet,
        signed_request::SignedRequest,
    },
    log::{
        checkpoint::Checkpoint,
        leaf::{Leaf, digest_changes},
        proofs::InclusionProof,
        record::LoggedState,
        status::Statuses,
        tree::Tree,
    },
    proof::{
        freshness::{self, LogTrust, LoggedSigners, StapleSubject},
        staple::Staple,
        verify::{Evidence, RevocationEvidence, VerifyError, verify},
    },
    rules::snapshot::Change,
    values::{
        digest::{Sha256, Sha512},
        path::RepoPath,
        time::Timestamp,
    },
};
use countersign_testing::{key, log_key};

use super::{Checked, Held, Invariant};
use crate::{
    contents::{ContentId, Contents, State},
    facts::{Facts, ProjectFacts, ReleaseSlots},
    roles::{
        BEGUN, BEGUN_SET, COLLECTING, COMPLETE, COPY, EARLIER, FILE, FORMATS, INDEX, OBJECTIONS, REGISTRANT,
        REQUEST, REVOCATION, REVOCATION_COPY, REVOCATION_SET, REVOKED,
    },
    world::World,
};

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
        match (verify(&evidence), release[COMPLETE].is_some(), release[REVOKED].is_some()) {
            (Ok(_), true, false) | (Err(VerifyError::Revoked(_)), false, true) => {}
            (Err(VerifyError::TooFew { .. }), false, false) => {}
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
            let artifact = evidence.and_then(|evidence| verify(&evidence).ok());
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
