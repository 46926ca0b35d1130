//! `register_repo` and `update_signers` (spec §4.1, §4.2; D13–D15, D35), and `assets` from checksums files (§4.10).

use std::collections::BTreeSet;

use countersign_core::values::{digest::Sha512, time::Timestamp};
use serde_json::json;

use crate::model::cast::{JsonNode, Person, base64, canonical, object, text};
use crate::model::request::{DAY, MINUTE, SECOND};
use crate::model::rulebook::signers::{Config, is_complete, people_of, required};
use crate::model::rulebook::state::{
    ExpectedAnswer, ModelAgreement, ModelIndex, ModelIndexState, ModelProposal, Project, Published,
    Signatures, Spec, ok, refuse, refuse_saying, signed_by,
};

#[derive(Debug, Clone)]
pub(crate) struct Proposing {
    pub(crate) project: String,
    /// The URL of the signers file.
    pub(crate) url: String,
    /// The configuration; `None` if upstream has no valid one.
    pub(crate) config: Option<Config>,
    pub(crate) caller: Person,
    pub(crate) public_key: Person,
    /// The signed request as the server keeps it (D14).
    pub(crate) registration: String,
}

impl Spec {
    pub(crate) fn register(&mut self, proposing: &Proposing) -> ExpectedAnswer {
        let Proposing { project, caller, .. } = proposing;
        if proposing.public_key != *caller {
            return refuse(400);
        }
        if let Some(other) = self.find_overlapping(project) {
            return refuse_saying(409, other);
        }
        let known = self.projects.get(project);
        if known.is_some_and(|known| known.active.is_some()) {
            return refuse_saying(409, project.as_str());
        }
        if let Some(pending) = known.and_then(|known| known.pending.as_ref())
            && self.now - pending.retrieved_at < 14 * DAY
        {
            return refuse_saying(409, project.as_str());
        }
        let Some(config) = proposing.config.as_ref().filter(|config| config.is_valid()) else {
            return refuse(500);
        };
        if !config.signers().contains(caller) || self.is_too_far_ahead(config) {
            return refuse(400);
        }
        let proposal = self.make_proposal(proposing, config, None);
        self.projects.insert(project.clone(), Project { pending: Some(proposal), ..Project::default() });
        let message = "Project registered successfully. Collect signatures to activate.";
        answer(project, message, &config.everyone())
    }

    pub(crate) fn update(&mut self, proposing: &Proposing) -> ExpectedAnswer {
        let Proposing { project: id, caller, .. } = proposing;
        if proposing.public_key != *caller {
            return refuse(400);
        }
        let Some(project) = self.projects.get(id) else {
            return refuse_saying(400, "egister the repo first");
        };
        let Some(active) = project.active.clone() else { return refuse(400) };
        if !active.signers().contains(caller) {
            return refuse(400);
        }
        let message = "Signers update proposed successfully. Collect signatures to activate.";
        let config = proposing.config.as_ref();
        if let (Some(pending), Some(config)) = (&project.pending, config)
            && pending.config.text == config.text
        {
            let signed = signed_by(&pending.signatures);
            return answer(id, message, &required(Some(&active), &pending.config, &signed));
        }
        let Some(config) = config.filter(|config| config.is_valid()) else { return refuse(500) };
        let may_replace = project
            .pending
            .as_ref()
            .is_none_or(|pending| may_replace(&active, pending, caller, self.seconds()));
        if config.timestamp <= active.timestamp || self.is_too_far_ahead(config) {
            // The specification does not decide which of the two comes first.
            let statuses = if may_replace { vec![400] } else { vec![400, 409] };
            return ExpectedAnswer::Error { statuses, says: None };
        }
        if !may_replace {
            return refuse(409);
        }
        if project.vetoed.contains_key(&config.text) {
            return refuse(409);
        }
        let (fresh, now) = (self.make_proposal(proposing, config, Some(&active)), self.seconds());
        let project = self.projects.get_mut(id).expect("it was there");
        let mut proposal = project.superseded.remove(&config.text).unwrap_or(fresh);
        let signed = signed_by(&proposal.signatures);
        let wait = active.wait(&signed).filter(|_| is_complete(Some(&active), config, &signed));
        proposal.agreement = wait.map(|wait| ModelAgreement { agreed_at: now, due_at: now + wait });
        let required = required(Some(&active), &proposal.config, &signed);
        if let Some(mut replaced) = project.pending.replace(proposal) {
            (replaced.agreement, replaced.veto) = (None, None);
            project.superseded.insert(replaced.config.text.clone(), replaced);
        }
        answer(id, message, &required)
    }

    /// Finds another project with the same letters in another case, or inside this one, or around it (D35).
    fn find_overlapping(&self, id: &str) -> Option<&str> {
        let own = format!("{}/", id.to_ascii_lowercase());
        let overlaps = |other: &&String| {
            let text = format!("{}/", other.to_ascii_lowercase());
            other.as_str() != id && (own.starts_with(&text) || text.starts_with(&own))
        };
        self.projects.keys().find(overlaps).map(String::as_str)
    }

    fn is_too_far_ahead(&self, config: &Config) -> bool {
        i128::from(config.timestamp) * SECOND > self.now + 10 * MINUTE
    }

    fn make_proposal(
        &self,
        proposing: &Proposing,
        config: &Config,
        previous: Option<&Config>,
    ) -> ModelProposal {
        let digest = |text: &str| Sha512::of(text.as_bytes()).to_prefixed();
        let metadata = object([
            ("version", JsonNode::Number(1)),
            (
                "origin",
                object([
                    ("kind", text("file_server")),
                    ("url", text(&proposing.url)),
                    ("retrieval_url", text(&proposing.url)),
                    ("retrieved_at", text(time(self.seconds()))),
                ]),
            ),
            ("project_id", text(&proposing.project)),
            ("signers_file_digest", text(digest(&config.text))),
            ("previous", previous.map_or(JsonNode::Null, |previous| text(digest(&previous.text)))),
        ]);
        ModelProposal {
            config: config.clone(),
            metadata: metadata.document(),
            registration: proposing.registration.clone(),
            proposer: proposing.caller,
            retrieved_at: i128::from(self.seconds()) * SECOND,
            signatures: Signatures::new(),
            metadata_signatures: Signatures::new(),
            agreement: None,
            veto: None,
        }
    }

    /// Registers checksums files of a directory; `None` if upstream has no valid ones.
    pub(crate) fn register_assets(
        &mut self,
        dir: &str,
        published: Option<Vec<Published>>,
        caller: Person,
    ) -> ExpectedAnswer {
        let Some((project, governing)) = self.governing(dir) else { return refuse(400) };
        if !governing.can_register().contains(&caller) {
            return refuse(403);
        }
        let is_registrar = governing.registrar == Some(caller);
        let (project, governed_by) = (project.to_owned(), governing.clone());
        // A complete index stays as it is, whatever upstream has (D36).
        let known = self.indexes.get(dir);
        if known.is_some_and(|known| known.state != ModelIndexState::Collecting) {
            return refuse(409);
        }
        let Some(published) = published else { return refuse(500) };
        if known.is_some_and(|known| known.published == published) {
            return refuse(409);
        }
        if known.is_some() && is_registrar {
            return refuse(403);
        }
        let index = ModelIndex {
            text: index_text(&project, &published, self.seconds()),
            mirrored_on: self.seconds(),
            published,
            registrant: caller,
            objections: Default::default(),
            rebuilds: Default::default(),
            governed_by,
            signatures: Signatures::new(),
            formats: Default::default(),
            state: ModelIndexState::Collecting,
            revocation: None,
        };
        let replaced = self.indexes.insert(dir.to_owned(), index);
        if let Some(replaced) = &replaced {
            self.retire_objections(dir, &replaced.objections);
        }
        self.withdrawn.remove(&format!("{dir}/svc.index.json"));
        let mut body = json!({
            "success": true,
            "message": "Assets registered successfully",
            "index_file_path": format!("{dir}/svc.index.json"),
        });
        if let Some(replaced) = replaced {
            let keys = replaced.signatures.keys().map(|person| canonical(*person));
            body["replaced"] = json!({ "signatures": keys.collect::<Vec<_>>() });
        }
        ok(body)
    }
}

/// Admins and masters replace a proposal. Where rotations wait, only masters replace what one of them has a part in,
/// while it waits or is new (D170).
fn may_replace(active: &Config, pending: &ModelProposal, caller: &Person, now: i64) -> bool {
    let masters = people_of(active.master());
    let proposed_at = i64::try_from(pending.retrieved_at.div_euclid(SECOND)).expect("seconds fit");
    let signed = pending.signatures.iter().map(|(person, (_, at))| (person, *at));
    let words = signed.chain([(&pending.proposer, proposed_at)]);
    let newest = words.filter(|(person, _)| masters.contains(*person)).map(|(_, at)| at).max();
    let is_theirs = active
        .delay
        .zip(newest)
        .is_some_and(|(hours, newest)| pending.agreement.is_some() || now < newest + hours * 3_600);
    masters.contains(caller) || (active.leaders().contains(caller) && !is_theirs)
}

fn answer(project: &str, message: &str, required: &BTreeSet<Person>) -> ExpectedAnswer {
    ok(json!({
        "success": true,
        "project_id": project,
        "message": message,
        "required_signers": required.iter().map(|person| base64(*person)).collect::<Vec<_>>(),
        "signature_submission_url": "/v1/signatures",
    }))
}

fn index_text(project: &str, published: &[Published], now: i64) -> String {
    let file = |file: &Published| {
        let digests = file.digests.iter().map(|(name, hex)| ((*name).to_owned(), text(hex)));
        object([
            ("file_name", text(&file.name)),
            ("size", JsonNode::Null),
            ("source", text(&file.source)),
            ("digests", JsonNode::Object(digests.collect())),
        ])
    };
    let index = object([
        ("version", JsonNode::Number(1)),
        ("project_id", text(project)),
        ("release_url", JsonNode::Null),
        ("mirrored_on", text(time(now))),
        ("published_on", JsonNode::Null),
        ("published_files", JsonNode::List(published.iter().map(file).collect())),
    ]);
    index.document()
}

/// The form of times in files (D4).
pub(crate) fn time(seconds: i64) -> String {
    Timestamp::from_unix_seconds(seconds).expect("a time").to_string()
}
