//! `POST /v1/withdraw` and `POST /v1/object` (D120–D125).

use countersign_core::values::digest::Sha512;
use serde_json::{Value, json};

use super::{
    signers::people_of,
    state::{ExpectedAnswer, ModelIndexState, ModelObjection, ModelObjections, Spec, ok, refuse},
};
use crate::model::{
    paths::index_in,
    people::{Person, canonical, public, signature},
    request::{MINUTE, SECOND},
};

#[derive(Debug, Clone)]
pub(crate) struct Withdrawing {
    pub(crate) path: String,
    pub(crate) caller: Person,
    /// The subject, in hexadecimal with its prefix.
    pub(crate) subject: Option<String>,
    pub(crate) is_valid: bool,
    /// The signed request, as the server would keep it.
    pub(crate) request: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Objecting {
    pub(crate) path: String,
    pub(crate) objector: Person,
    pub(crate) document: String,
    pub(crate) is_document_valid: bool,
    pub(crate) signature: String,
    /// What the document says.
    pub(crate) text: Option<String>,
    pub(crate) subject: String,
    /// Nanoseconds since 1970.
    pub(crate) timestamp: i128,
}

impl Spec {
    pub(crate) fn withdraw(&mut self, withdrawing: &Withdrawing) -> ExpectedAnswer {
        let Withdrawing { path, caller, subject, is_valid, request } = withdrawing;
        if !is_valid {
            return refuse(400);
        }
        let dir = match self.find_index(path) {
            Ok(dir) => dir,
            Err(404) if self.withdrawn.contains_key(path) => return refuse(409),
            Err(status) => return refuse(status),
        };
        let index = &self.indexes[&dir];
        if index.state != ModelIndexState::Collecting {
            return refuse(409);
        }
        let (_, current) = self.governing(&dir).expect("an index is governed");
        let is_admin = people_of(current.admin()).contains(caller);
        let is_registrant = index.registrant == *caller && current.can_register().contains(caller);
        // A registrar does not undo what people said (D223).
        let is_touched =
            !index.signatures.is_empty() || index.objections.values().any(|said| said.text.is_some());
        let is_held = current.registrar == Some(*caller) && is_touched;
        let is_other =
            subject.as_ref().is_some_and(|seen| *seen != Sha512::of(index.text.as_bytes()).to_prefixed());
        if let Some(refused) = refuse_for(&[(!is_admin && !is_registrant || is_held, 403), (is_other, 409)]) {
            return refused;
        }
        let withdrawn = self.indexes.remove(&dir).expect("the file is there");
        self.retire_objections(&dir, &withdrawn.objections);
        self.withdrawn.insert(path.clone(), request.clone());
        ok(json!({ "success": true, "message": "Release withdrawn. Its path is free again." }))
    }

    pub(crate) fn object(&mut self, objecting: &Objecting) -> ExpectedAnswer {
        let now = self.seconds();
        let Objecting { path, objector, document, text, timestamp, .. } = objecting;
        let dir = match self.find_index(path) {
            Ok(dir) => dir,
            Err(status) => return refuse(status),
        };
        let index = &self.indexes[&dir];
        if index.state == ModelIndexState::Revoked {
            return refuse(409);
        }
        if !objecting.is_document_valid {
            return refuse(400);
        }
        let (_, current) = self.governing(&dir).expect("an index is governed");
        let earlier = index.objections.get(objector);
        let takes_back = text.is_none() && earlier.is_some();
        let stands = earlier.is_some_and(|earlier| earlier.text.is_some());
        let refused = refuse_for(&[
            (objecting.signature != signature(*objector, document.as_bytes()), 400),
            (objecting.subject != Sha512::of(index.text.as_bytes()).to_prefixed(), 409),
            (*timestamp > i128::from(now) * SECOND + 10 * MINUTE, 400),
            (!takes_back && !current.everyone().contains(objector), 403),
            (earlier.is_some_and(|earlier| *timestamp <= earlier.timestamp), 409),
            (text.is_none() && !stands, 409),
        ]);
        if let Some(refused) = refused {
            return refused;
        }
        let said = ModelObjection {
            document: document.clone(),
            signature: objecting.signature.clone(),
            text: text.clone(),
            timestamp: *timestamp,
            at: now,
        };
        let index = self.indexes.get_mut(&dir).expect("the file is there");
        index.objections.insert(*objector, said);
        let message = if text.is_some() { "Objection recorded" } else { "Objection taken back" };
        ok(json!({ "success": true, "message": message }))
    }

    /// The content goes, and what stands against it is kept. No run comes near the bound of the list.
    pub(super) fn retire_objections(&mut self, dir: &str, objections: &ModelObjections) {
        let mut standing: Vec<_> = objections.iter().filter(|(_, said)| said.text.is_some()).collect();
        if standing.is_empty() {
            return;
        }
        standing.sort_by_key(|(person, said)| (said.timestamp, public(**person)));
        let standing = standing.into_iter().map(|(person, said)| (*person, said.clone()));
        self.earlier_objections.entry(index_in(dir)).or_default().extend(standing);
    }

    /// The directory of the index at a path, or the status of an answer about something else.
    fn find_index(&self, path: &str) -> Result<String, u16> {
        match path.strip_suffix("/svc.index.json") {
            Some(dir) if self.indexes.contains_key(dir) => Ok(dir.to_owned()),
            None if self.served().contains_key(path) => Err(400),
            Some(_) | None => Err(404),
        }
    }

    /// What stands against the releases that wait for a person: the path, who says it, and what.
    pub(crate) fn standing_objections(&self, dirs: &[String]) -> Vec<Value> {
        let mut standing = Vec::new();
        for dir in dirs {
            for (person, said) in &self.indexes[dir].objections {
                if let Some(text) = &said.text {
                    standing.push(json!([index_in(dir), canonical(*person), text]));
                }
            }
        }
        standing.sort_by_key(Value::to_string);
        standing
    }
}

/// The decisions do not say which of several faults comes first.
fn refuse_for(faults: &[(bool, u16)]) -> Option<ExpectedAnswer> {
    let statuses: Vec<u16> =
        faults.iter().filter(|(is_fault, _)| *is_fault).map(|(_, status)| *status).collect();
    (!statuses.is_empty()).then_some(ExpectedAnswer::Error { statuses, says: None })
}
