//! Every file that must be stored, and its exact content (the table of stored files; D4, D5, D9, D12).

use std::collections::BTreeMap;

use countersign_core::{documents::signatures::FormatTexts, values::digest::Sha512};

use crate::model::cast::{
    JsonNode, Person, active_signers, canonical, index_in, object, pending_signers, text,
};
use crate::model::rulebook::propose::time;
use crate::model::rulebook::state::{
    Activated, ModelAgreement, ModelIndex, ModelIndexState, ModelObjection, ModelProposal, RevocationOf,
    Signatures, Spec,
};

pub(crate) type ModelFiles = BTreeMap<String, String>;

impl Spec {
    pub(crate) fn files(&self) -> ModelFiles {
        let mut files = ModelFiles::new();
        for (id, project) in &self.projects {
            if let Some(pending) = &project.pending {
                put_proposal(&mut files, &pending_signers(id), pending, ".pending");
                put_waiting(&mut files, &pending_signers(id), pending);
            }
            for (signers, proposal) in &project.superseded {
                let digest = Sha512::of(signers.as_bytes()).to_string();
                let path = format!("{id}/svc.signers.superseded/{}/svc.signers.json", &digest[..16]);
                put_proposal(&mut files, &path, proposal, ".pending");
            }
            for (signers, veto) in &project.vetoed {
                let digest = Sha512::of(signers.as_bytes()).to_string();
                let path = format!("{id}/svc.signers.vetoed/{}/svc.veto.json", &digest[..64]);
                files.insert(format!("{path}.signatures.json"), collected(&veto.signatures).document());
                files.insert(path, veto.document.clone());
            }
            if let Some(last) = project.history.last() {
                put_proposal(&mut files, &active_signers(id), &last.proposal, "");
                for (number, activated) in (1..).zip(&project.history) {
                    let path = format!("{id}/svc.signers.history/{number:06}.json");
                    files.insert(path, entry(activated).document());
                }
            }
        }
        for (dir, index) in &self.indexes {
            put_index(&mut files, &index_in(dir), index);
        }
        for (index, request) in &self.withdrawn {
            files.insert(format!("{index}.withdrawn.json"), request.clone());
        }
        for (index, said) in &self.earlier_objections {
            files.insert(format!("{index}.earlier-objections.json"), earlier_objections(said).document());
        }
        files
    }
}

impl Spec {
    /// Every file that the server serves: the stored files, and the assembled history of each project (D42).
    pub(crate) fn served(&self) -> ModelFiles {
        let mut files = self.files();
        for (id, project) in self.projects.iter().filter(|(_, project)| !project.history.is_empty()) {
            let document = history(&project.history).document();
            files.insert(format!("{id}/svc.signers.history.json"), document);
        }
        files
    }
}

fn put_proposal(files: &mut ModelFiles, path: &str, proposal: &ModelProposal, suffix: &str) {
    let ModelProposal { signatures, metadata_signatures, .. } = proposal;
    files.insert(path.to_owned(), proposal.config.text.clone());
    files.insert(format!("{path}.metadata.json"), proposal.metadata.clone());
    files.insert(format!("{path}.registration.json"), proposal.registration.clone());
    files.insert(format!("{path}.signatures.json{suffix}"), collected(signatures).document());
    let metadata_signatures = collected(metadata_signatures).document();
    files.insert(format!("{path}.metadata.json.signatures.json{suffix}"), metadata_signatures);
}

/// Puts what lies beside a pending signers file only.
fn put_waiting(files: &mut ModelFiles, path: &str, proposal: &ModelProposal) {
    if let Some(ModelAgreement { agreed_at, due_at }) = proposal.agreement {
        let agreement = object([("agreed_at", text(time(agreed_at))), ("due_at", text(time(due_at)))]);
        files.insert(format!("{path}.agreed.json"), agreement.document());
    }
    if let Some(veto) = &proposal.veto {
        files.insert(format!("{path}.veto.json.pending"), veto.document.clone());
        let signatures = collected(&veto.signatures).document();
        files.insert(format!("{path}.veto.json.signatures.json.pending"), signatures);
    }
}

fn put_index(files: &mut ModelFiles, path: &str, index: &ModelIndex) {
    files.insert(path.to_owned(), index.text.clone());
    files.insert(format!("{path}.signers.json"), index.governed_by.text.clone());
    let suffix = match index.state {
        ModelIndexState::Collecting => ".pending",
        ModelIndexState::Complete => "",
        ModelIndexState::Revoked => ".revoked",
    };
    files.insert(format!("{path}.signatures.json{suffix}"), collected(&index.signatures).document());
    if index.state == ModelIndexState::Collecting {
        let document = object([("registrant", text(canonical(index.registrant)))]);
        files.insert(format!("{path}.registrant.json"), document.document());
    }
    if !index.objections.is_empty() {
        let words = index.objections.iter().map(|(by, it)| (by, said(&it.document, &it.signature, it.at)));
        files.insert(format!("{path}.objections.json"), by_person("objections", words).document());
    }
    if !index.rebuilds.is_empty() {
        let words = index.rebuilds.iter().map(|(by, it)| (by, said(&it.document, &it.signature, it.at)));
        files.insert(format!("{path}.rebuilds.json"), by_person("rebuilds", words).document());
    }
    if !index.formats.is_empty() {
        let texts = |texts: &FormatTexts| {
            JsonNode::Object(texts.iter().map(|(format, t)| (format.to_string(), text(t))).collect())
        };
        let mut entries: Vec<_> =
            index.formats.iter().map(|(person, signed)| (canonical(*person), texts(signed))).collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let document =
            object([("version", JsonNode::Number(1)), ("other_formats", JsonNode::Object(entries))]);
        files.insert(format!("{path}.formats.json"), document.document());
    }
    let Some(RevocationOf { document, signatures, request, allowed_by }) = &index.revocation else { return };
    let suffix = if allowed_by.is_some() { "" } else { ".pending" };
    let base = format!("{path}.revocation.json");
    files.insert(format!("{base}{suffix}"), document.clone());
    files.insert(format!("{base}.signatures.json{suffix}"), collected(signatures).document());
    if let Some(allowed_by) = allowed_by {
        files.insert(format!("{base}.signers.json"), allowed_by.text.clone());
    }
    if let Some(request) = request {
        files.insert(format!("{base}.request.json"), request.clone());
    }
}

/// A signatures file (D9), sorted by its keys as text.
fn collected(signatures: &Signatures) -> JsonNode {
    let entries = signatures.iter().map(|(person, (signature, at))| {
        let entry = object([("signature", text(signature)), ("collected_at", text(time(*at)))]);
        (canonical(*person), entry)
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    object([("entries", JsonNode::Object(entries))])
}

/// What a person said in a document.
fn said(document: &str, signature: &str, at: i64) -> JsonNode {
    object([("document", text(document)), ("signature", text(signature)), ("collected_at", text(time(at)))])
}

/// The newest word of each person (D125, D260), sorted by their keys as text.
fn by_person<'a>(name: &'static str, words: impl Iterator<Item = (&'a Person, JsonNode)>) -> JsonNode {
    let mut entries: Vec<_> = words.map(|(person, said)| (canonical(*person), said)).collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    object([("version", JsonNode::Number(1)), (name, JsonNode::Object(entries))])
}

/// What stood against contents that went (D224), in the order in which they went.
fn earlier_objections(said: &[(Person, ModelObjection)]) -> JsonNode {
    let entry = |(person, said): &(Person, ModelObjection)| {
        object([
            ("public_key", text(canonical(*person))),
            ("document", text(&said.document)),
            ("signature", text(&said.signature)),
            ("collected_at", text(time(said.at))),
        ])
    };
    let entries = said.iter().map(entry).collect();
    object([("version", JsonNode::Number(1)), ("earlier_objections", JsonNode::List(entries))])
}

fn entry(Activated { proposal, at, agreed_at }: &Activated) -> JsonNode {
    let waited = agreed_at.map(|agreed_at| ("agreed_at", text(time(agreed_at))));
    let fields = [
        ("signers_config", text(&proposal.config.text)),
        ("signatures", collected(&proposal.signatures)),
        ("metadata", text(&proposal.metadata)),
        ("metadata_signatures", collected(&proposal.metadata_signatures)),
        ("timestamp", text(time(*at))),
    ];
    let fields = fields.into_iter().chain(waited);
    JsonNode::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The history as the server serves it: its entries in one document (D42).
pub(super) fn history(entries: &[Activated]) -> JsonNode {
    object([("entries", JsonNode::List(entries.iter().map(entry).collect()))])
}
