//! `POST /v1/signatures` (spec §4.3; D15–D17).

use std::collections::BTreeMap;

use countersign_core::documents::signatures::FormatTexts;
use serde_json::json;

use crate::model::cast::{PEOPLE, Person, format_text, signature};
use crate::model::rulebook::propose::time;
use crate::model::rulebook::signers::{accepted, is_complete, is_met, people_of};
use crate::model::rulebook::state::{
    Activated, ExpectedAnswer, ModelAgreement, ModelIndexState, Signatures, Spec, ok, refuse, refuse_saying,
    signed_by,
};

/// A submission with normalised paths.
#[derive(Debug, Clone)]
pub(crate) struct Submitted {
    pub(crate) path: String,
    pub(crate) signer: Person,
    /// Signatures by path, in padded base64.
    pub(crate) signatures: BTreeMap<String, String>,
    /// Signatures for other programs.
    pub(crate) formats: FormatTexts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignedPath {
    /// The proposal of this project.
    Proposal(String),
    /// The index in this directory.
    Index(String),
    Nothing,
}

impl SignedPath {
    /// Finds what is meant from the path alone.
    pub(crate) fn at(path: &str) -> Self {
        if let Some(dir) = path.strip_suffix("/svc.index.json") {
            return Self::Index(dir.to_owned());
        }
        match path.strip_suffix("/svc.signers.pending/svc.signers.json") {
            Some(project) => Self::Proposal(project.to_owned()),
            None => Self::Nothing,
        }
    }
}

impl Spec {
    pub(crate) fn submit(&mut self, submitted: &Submitted) -> ExpectedAnswer {
        let Submitted { path, signatures, .. } = submitted;
        let signing = SignedPath::at(path);
        let metadata = format!("{path}.metadata.json");
        let needs_metadata = matches!(signing, SignedPath::Proposal(_));
        let is_expected = |given: &String| given == path || (needs_metadata && *given == metadata);
        if !signatures.contains_key(path) || (needs_metadata && !signatures.contains_key(&metadata)) {
            return refuse(400);
        }
        if !signatures.keys().all(is_expected) || (needs_metadata && !submitted.formats.is_empty()) {
            return refuse(400);
        }
        match signing {
            SignedPath::Proposal(project) => self.sign_proposal(&project, submitted),
            SignedPath::Index(dir) => self.sign_index(&dir, submitted),
            SignedPath::Nothing if self.served().contains_key(path) => refuse(400),
            SignedPath::Nothing => refuse_saying(400, format!("File not found: {path}")),
        }
    }

    /// Who can sign what collects signatures at a path, and has not.
    pub(crate) fn awaited(&self, path: &str) -> Vec<Person> {
        let people = (0..PEOPLE).filter(|person| match self.pending(*person) {
            ExpectedAnswer::Json { body, .. } => {
                body["file_paths"].as_array().is_some_and(|paths| paths.contains(&json!(path)))
            }
            ExpectedAnswer::Bytes(_) | ExpectedAnswer::Error { .. } => false,
        });
        people.collect()
    }

    fn sign_index(&mut self, dir: &str, submitted: &Submitted) -> ExpectedAnswer {
        let (now, Submitted { path, signer, signatures, formats }) = (self.seconds(), submitted);
        let Some(index) = self.indexes.get_mut(dir) else {
            return refuse_saying(400, format!("File not found: {path}"));
        };
        if index.state != ModelIndexState::Collecting {
            return refuse(409);
        }
        let groups = index.governed_by.artifact();
        if !people_of(groups).contains(signer) {
            return refuse(403);
        }
        if index.signatures.contains_key(signer) {
            return refuse(409);
        }
        if signatures[path] != signature(*signer, index.text.as_bytes()) {
            return refuse(400);
        }
        // What a key signs is the same each time.
        let sums = index.sums();
        let are_right = formats.iter().all(|(format, text)| {
            let right = |sums: &String| format_text(*signer, *format, path, index.mirrored_on, sums);
            sums.as_ref().is_some_and(|sums| *text == right(sums))
        });
        if !are_right {
            return refuse(400);
        }
        if !formats.is_empty() {
            index.formats.insert(*signer, formats.clone());
        }
        index.signatures.insert(*signer, (signatures[path].clone(), now));
        let is_complete = is_met(groups, &signed_by(&index.signatures));
        if is_complete {
            index.state = ModelIndexState::Complete;
        }
        ok(json!({ "is_complete": is_complete }))
    }

    fn sign_proposal(&mut self, id: &str, submitted: &Submitted) -> ExpectedAnswer {
        let (now, Submitted { path, signer, signatures, .. }) = (self.seconds(), submitted);
        let not_found = refuse_saying(400, format!("File not found: {path}"));
        let Some(project) = self.projects.get_mut(id) else { return not_found };
        let Some(pending) = &mut project.pending else { return not_found };
        let current = project.active.as_ref();
        if !accepted(current, &pending.config).contains(signer) {
            return refuse(403);
        }
        if pending.signatures.contains_key(signer) {
            return refuse(409);
        }
        let metadata = &signatures[&format!("{path}.metadata.json")];
        let is_right = signatures[path] == signature(*signer, pending.config.text.as_bytes())
            && *metadata == signature(*signer, pending.metadata.as_bytes());
        if !is_right {
            return refuse(400);
        }
        pending.signatures.insert(*signer, (signatures[path].clone(), now));
        pending.metadata_signatures.insert(*signer, (metadata.clone(), now));
        let signed = signed_by(&pending.signatures);
        let is_complete = is_complete(current, &pending.config, &signed);
        match current.and_then(|current| current.wait(&signed)).filter(|_| is_complete) {
            Some(wait) => {
                let agreement = ModelAgreement { agreed_at: now, due_at: now + wait };
                let due_at = pending.agreement.get_or_insert(agreement).due_at;
                return ok(json!({ "is_complete": true, "waits_until": time(due_at) }));
            }
            None if is_complete => self.activate(id, None),
            None => {}
        }
        ok(json!({ "is_complete": is_complete }))
    }

    /// What has waited long enough takes effect (D132). Gives how many did.
    pub(crate) fn settle(&mut self) -> usize {
        let now = self.seconds();
        let due = self.projects.iter().filter_map(|(id, project)| {
            let ModelAgreement { agreed_at, due_at } = project.pending.as_ref()?.agreement?;
            (due_at <= now).then(|| (id.clone(), agreed_at))
        });
        let due: Vec<_> = due.collect();
        due.iter().for_each(|(id, agreed_at)| self.activate(id, Some(*agreed_at)));
        due.len()
    }

    /// The pending signers file takes effect (D15), and collecting files follow it (D16).
    fn activate(&mut self, id: &str, agreed_at: Option<i64>) {
        let now = self.seconds();
        let project = self.projects.get_mut(id).expect("it was there");
        let proposal = project.pending.take().expect("it is pending");
        let config = proposal.config.clone();
        project.active = Some(config.clone());
        project.superseded.clear();
        project.vetoed.clear();
        project.history.push(Activated { proposal, at: now, agreed_at });
        for (dir, index) in &mut self.indexes {
            let is_below = dir == id || dir.starts_with(&format!("{id}/"));
            if is_below && index.state == ModelIndexState::Collecting {
                index.governed_by = config.clone();
                index.signatures = Signatures::new();
                index.formats.clear();
            }
        }
    }
}
