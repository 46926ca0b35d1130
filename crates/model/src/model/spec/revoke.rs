//! `POST /v1/revoke` (spec §4.9; D20).

use std::collections::BTreeSet;

use countersign_core::values::digest::Sha512;
use serde_json::json;

use super::{
    signers::{Config, is_met, people_of},
    state::{
        ExpectedAnswer, ModelIndexState, RevocationOf, Signatures, Spec, refuse, refuse_saying, signed_by,
    },
};
use crate::model::{
    paths::index_in,
    people::{Person, signature},
};

#[derive(Debug, Clone)]
pub(crate) struct Revoking {
    pub(crate) path: String,
    pub(crate) revoker: Person,
    pub(crate) caller: Person,
    pub(crate) document: String,
    pub(crate) signature: String,
    pub(crate) is_document_valid: bool,
    /// The subject in the document, in hexadecimal with its prefix.
    pub(crate) subject: Option<String>,
    pub(crate) initiator: Option<Person>,
    /// The signed request, as the server would keep it.
    pub(crate) request: String,
}

impl Spec {
    /// Who can revoke the index at a path, and has not signed a pending revocation of it.
    pub(crate) fn revokers(&self, path: &str) -> Vec<Person> {
        let Some(dir) = path.strip_suffix("/svc.index.json") else { return Vec::new() };
        let Some((_, current)) = self.governing(dir) else { return Vec::new() };
        let pending = self.indexes.get(dir).and_then(|index| index.revocation.as_ref());
        let signed = pending.map(|pending| signed_by(&pending.signatures)).unwrap_or_default();
        authorised(current).difference(&signed).copied().collect()
    }

    /// The indexes whose begun revocation a person can join or, once it has enough signatures, carry out.
    pub(crate) fn begun_revocations(&self, person: Person) -> impl Iterator<Item = String> {
        let is_asked = move |dir: &str, begun: &RevocationOf| {
            let Some((_, current)) = self.governing(dir) else { return false };
            let signed = signed_by(&begun.signatures);
            authorised(current).contains(&person)
                && (!signed.contains(&person) || is_enough(current, &signed))
        };
        let complete = self.indexes.iter().filter(|(_, index)| index.state == ModelIndexState::Complete);
        let begun = complete.filter_map(|(dir, index)| Some((dir, index.revocation.as_ref()?)));
        begun.filter(move |(dir, begun)| is_asked(dir, begun)).map(|(dir, _)| index_in(dir))
    }

    pub(crate) fn revoke(&mut self, revoking: &Revoking) -> ExpectedAnswer {
        let Revoking { path, revoker, document, .. } = revoking;
        let now = self.seconds();
        if !self.served().contains_key(path) {
            return refuse(404);
        }
        let Some(dir) = path.strip_suffix("/svc.index.json") else { return refuse(400) };
        let (_, current) = self.governing(dir).expect("an index is governed");
        let current = current.clone();
        let index = self.indexes.get_mut(dir).expect("the file is there");
        match index.state {
            ModelIndexState::Collecting => {
                return refuse_saying(409, format!("File has not been fully signed: {path}"));
            }
            ModelIndexState::Revoked => return refuse(400),
            ModelIndexState::Complete => {}
        }
        // A pending document stays only if it has signatures that count. A submission of the same document joins it in
        // any case.
        let counts =
            |pending: &RevocationOf| !signed_by(&pending.signatures).is_disjoint(&authorised(&current));
        let pending =
            index.revocation.as_ref().filter(|pending| pending.document == *document || counts(pending));
        let is_conflict = pending.is_some_and(|pending| {
            // A rotation can make the collected signatures enough. Then a signer can submit again, since each
            // submission counts anew.
            let is_again = pending.signatures.contains_key(revoker)
                && !is_enough(&current, &signed_by(&pending.signatures));
            pending.document != *document || is_again
        });
        let is_first = pending.is_none();
        let is_not_initiator = is_first && revoking.initiator.is_some_and(|initiator| initiator != *revoker);
        match (is_wrong(revoking, &index.text, &current) || is_not_initiator, is_conflict) {
            (true, false) => return refuse(400),
            // The specification does not decide which of the two comes first.
            (true, true) => return ExpectedAnswer::Error { statuses: vec![400, 409], says: None },
            (false, true) => return refuse(409),
            (false, false) => {}
        }
        let mut revocation = pending.cloned().unwrap_or_else(|| RevocationOf {
            document: document.clone(),
            signatures: Signatures::new(),
            request: None,
            allowed_by: None,
        });
        if revoking.subject.is_none() {
            revocation.request = Some(revoking.request.clone());
        }
        revocation.signatures.entry(*revoker).or_insert((revoking.signature.clone(), now));
        let is_revoked = is_enough(&current, &signed_by(&revocation.signatures));
        if is_revoked {
            revocation.allowed_by = Some(current);
            index.state = ModelIndexState::Revoked;
            index.formats.clear();
        }
        index.revocation = Some(revocation);
        let (status, message) = match is_revoked {
            true => (200, "File revoked successfully"),
            false => (202, "Revocation recorded. More signatures are required."),
        };
        let body = json!({ "success": true, "message": message, "revoked": is_revoked });
        ExpectedAnswer::Json { status, body }
    }
}

/// Whether a revocation is wrong. `text` is that of the index.
fn is_wrong(revoking: &Revoking, text: &str, current: &Config) -> bool {
    let Revoking { revoker, document, .. } = revoking;
    let right_subject = Sha512::of(text.as_bytes()).to_prefixed();
    let is_other_file = revoking.subject.as_ref().is_some_and(|subject| *subject != right_subject);
    let is_signed = revoking.signature == signature(*revoker, document.as_bytes());
    let is_authorised = authorised(current).contains(revoker);
    let lacks_subject = revoking.subject.is_none()
        && (revoking.caller != *revoker || !is_enough(current, &BTreeSet::from([*revoker])));
    !revoking.is_document_valid || is_other_file || !is_signed || !is_authorised || lacks_subject
}

fn authorised(current: &Config) -> BTreeSet<Person> {
    people_of(current.explicit_revocation().unwrap_or(current.admin()))
}

fn is_enough(current: &Config, signed: &BTreeSet<Person>) -> bool {
    match current.explicit_revocation() {
        Some(groups) => is_met(groups, signed),
        None => !authorised(current).is_disjoint(signed),
    }
}
