//! `POST /v1/veto` (D135, D136).

use countersign_core::values::digest::Sha512;
use serde_json::json;

use super::{
    sign::SignedPath,
    signers::{is_met, people_of},
    state::{ExpectedAnswer, ModelVeto, Project, Spec, refuse, signed_by},
};
use crate::model::people::{Person, signature};

#[derive(Debug, Clone)]
pub(crate) struct Vetoing {
    pub(crate) path: String,
    pub(crate) master: Person,
    pub(crate) document: String,
    pub(crate) signature: String,
    pub(crate) is_document_valid: bool,
    /// The names in the document: project, digest of the proposed file, digest of the file in force.
    pub(crate) names: [String; 3],
}

impl Spec {
    /// Projects with a pending update and masters who could veto it.
    pub(crate) fn vetoable(&self) -> Vec<String> {
        let has_masters =
            |project: &Project| project.active.as_ref().is_some_and(|active| !active.master().is_empty());
        let open = self.projects.iter().filter(|(_, p)| p.pending.is_some() && has_masters(p));
        open.map(|(id, _)| id.clone()).collect()
    }

    /// What a right veto of a project's pending file names.
    pub(crate) fn veto_names(&self, id: &str) -> [String; 3] {
        let digest = |text: Option<&String>| Sha512::of(text.map_or("", |t| t).as_bytes()).to_prefixed();
        let project = self.projects.get(id);
        let pending = project.and_then(|project| project.pending.as_ref());
        let active = project.and_then(|project| project.active.as_ref());
        [id.to_owned(), digest(pending.map(|p| &p.config.text)), digest(active.map(|active| &active.text))]
    }

    pub(crate) fn veto(&mut self, vetoing: &Vetoing) -> ExpectedAnswer {
        let Vetoing { path, master, document, .. } = vetoing;
        let now = self.seconds();
        let SignedPath::Proposal(id) = SignedPath::at(path) else { return refuse(400) };
        let names = self.veto_names(&id);
        let Some(project) = self.projects.get_mut(&id) else { return refuse(404) };
        let Some(pending) = &mut project.pending else { return refuse(404) };
        let Some(active) = &project.active else { return refuse(409) };
        let is_signed = vetoing.signature == signature(*master, document.as_bytes());
        let is_master = people_of(active.master()).contains(master);
        let is_begun = pending
            .veto
            .as_ref()
            .is_some_and(|veto| veto.document != *document || veto.signatures.contains_key(master));
        let is_other = vetoing.is_document_valid && vetoing.names != names;
        // The specification does not decide which of them comes first.
        let faults =
            [(!vetoing.is_document_valid || !is_signed, 400), (!is_master, 403), (is_other || is_begun, 409)];
        let statuses: Vec<u16> = faults.into_iter().filter(|(is, _)| *is).map(|(_, status)| status).collect();
        if !statuses.is_empty() {
            return ExpectedAnswer::Error { statuses, says: None };
        }
        let mut veto = pending
            .veto
            .take()
            .unwrap_or_else(|| ModelVeto { document: document.clone(), signatures: Default::default() });
        veto.signatures.insert(*master, (vetoing.signature.clone(), now));
        let is_vetoed = is_met(active.master(), &signed_by(&veto.signatures));
        if is_vetoed {
            let text = pending.config.text.clone();
            project.pending = None;
            project.vetoed.insert(text, veto);
        } else {
            pending.veto = Some(veto);
        }
        let (status, message) = match is_vetoed {
            true => (200, "The pending signers are vetoed and gone."),
            false => (202, "Veto recorded. More signatures are required."),
        };
        let body = json!({ "success": true, "message": message, "vetoed": is_vetoed });
        ExpectedAnswer::Json { status, body }
    }
}
