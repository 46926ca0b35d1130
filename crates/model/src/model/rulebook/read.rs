//! Reads: status, pending signatures, files, signers and chains (spec §4.4–§4.8; D18, D19, D21).

use std::collections::BTreeMap;

use countersign_core::values::key::encode_base64;
use serde_json::{Value, json};

use crate::model::cast::Person;
use crate::model::rulebook::signers::{accepted, people_of};
use crate::model::rulebook::state::{
    ExpectedAnswer, ModelIndexState, Project, Spec, ok, refuse, refuse_saying,
};
use crate::model::rulebook::{files::history, propose::time, sign::SignedPath};

impl Spec {
    pub(crate) fn status(&self, path: &str, caller: Person) -> ExpectedAnswer {
        let mut waits_until = None;
        let (is_complete, is_revoked, is_listed) = match SignedPath::at(path) {
            SignedPath::Index(dir) => {
                let Some(index) = self.indexes.get(&dir) else { return refuse(404) };
                let (_, governing) = self.governing(&dir).expect("an index is governed");
                let is_listed = governing.everyone().contains(&caller);
                (index.state == ModelIndexState::Complete, index.state == ModelIndexState::Revoked, is_listed)
            }
            SignedPath::Proposal(project) => {
                let Some(project) = self.projects.get(&project) else { return refuse(404) };
                let Some(pending) = &project.pending else { return refuse(404) };
                let in_active =
                    project.active.as_ref().is_some_and(|active| active.everyone().contains(&caller));
                if let Some(agreement) = pending.agreement {
                    waits_until = Some(time(agreement.due_at));
                }
                let is_listed = in_active || pending.config.everyone().contains(&caller);
                (pending.agreement.is_some(), false, is_listed)
            }
            SignedPath::Nothing => return refuse(404),
        };
        if !is_listed {
            return refuse(403);
        }
        let mut body = json!({ "file_path": path, "is_complete": is_complete });
        if let Some(until) = waits_until {
            body["waits_until"] = json!(until);
        }
        if is_revoked {
            body["revoked"] = Value::Bool(true);
        }
        ok(body)
    }

    pub(crate) fn pending(&self, caller: Person) -> ExpectedAnswer {
        let mut paths: Vec<String> = Vec::new();
        let mut dirs: Vec<String> = Vec::new();
        for (id, Project { active, pending, .. }) in &self.projects {
            let Some(pending) = pending else { continue };
            let may_sign = accepted(active.as_ref(), &pending.config).contains(&caller);
            if may_sign && !pending.signatures.contains_key(&caller) {
                paths.push(crate::model::cast::pending_signers(id));
            }
        }
        for (dir, index) in &self.indexes {
            let may_sign = people_of(index.governed_by.artifact()).contains(&caller);
            let is_open =
                index.state == ModelIndexState::Collecting && !index.signatures.contains_key(&caller);
            if may_sign && is_open {
                paths.push(crate::model::cast::index_in(dir));
                dirs.push(dir.clone());
            }
        }
        paths.sort();
        let mut body = json!({ "file_paths": paths });
        let begun: Vec<String> = self.begun_revocations(caller).collect();
        if !begun.is_empty() {
            body["revocations"] = json!(begun);
        }
        let asked: Vec<String> = self.unbuilt(caller).collect();
        if !asked.is_empty() {
            body["rebuilds"] = json!(asked);
        }
        let objections = self.standing_objections(&dirs);
        if !objections.is_empty() {
            body["objections"] = json!(objections);
        }
        ok(body)
    }

    pub(crate) fn file(&self, path: &str) -> ExpectedAnswer {
        let files = self.served();
        if let Some(content) = files.get(path) {
            return ExpectedAnswer::Bytes(content.clone().into_bytes());
        }
        let is_dir = files.keys().any(|file| file.starts_with(&format!("{path}/")));
        refuse(if is_dir { 400 } else { 404 })
    }

    pub(crate) fn files_to_sign(&self, path: &str) -> ExpectedAnswer {
        let files = self.files();
        let not_found = || refuse_saying(404, format!("File not found: {path}"));
        let Some(content) = files.get(path) else { return not_found() };
        let mut to_sign = BTreeMap::from([(path.to_owned(), encode_base64(content.as_bytes()))]);
        let metadata = format!("{path}.metadata.json");
        // A superseded signers file no longer collects signatures (D17). It is a file like any other.
        let is_signers = ["/svc.signers.pending/svc.signers.json", "/svc.signers/svc.signers.json"];
        if is_signers.iter().any(|end| path.ends_with(end))
            && let Some(content) = files.get(&metadata)
        {
            to_sign.insert(metadata, encode_base64(content.as_bytes()));
        }
        ok(json!({ "files": to_sign }))
    }

    pub(crate) fn signers(&self, path: &str) -> ExpectedAnswer {
        match self.governing(path) {
            Some((_, config)) => ExpectedAnswer::Bytes(config.text.clone().into_bytes()),
            None => {
                let message = format!(
                    "No signers file found for: {path}. Error: No signers file found in parent directories"
                );
                refuse_saying(404, message)
            }
        }
    }

    pub(crate) fn chain(&self, path: &str) -> ExpectedAnswer {
        let invalid = refuse_saying(400, "Invalid artifact path:");
        if let Some(id) = path.strip_suffix("/svc.signers/svc.signers.json") {
            return match self.projects.get(id).filter(|project| project.active.is_some()) {
                Some(project) => ok(json!({ "history": history(&project.history).to_value() })),
                None => invalid,
            };
        }
        let Some(dir) = path.strip_suffix("/svc.index.json") else { return invalid };
        let Some(index) = self.indexes.get(dir) else { return invalid };
        if index.state == ModelIndexState::Collecting {
            return invalid;
        }
        let (id, _) = self.governing(dir).expect("an index is governed");
        let entries = &self.projects[id].history;
        let last = entries.iter().position(|entry| entry.proposal.config.text == index.governed_by.text);
        let last = last.expect("the governing copy was active once");
        ok(json!({ "history": history(&entries[..=last]).to_value() }))
    }
}
