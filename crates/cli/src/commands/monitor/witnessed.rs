//! Whether enough witnesses have seen the log that the monitor is shown (D119). Without them a server could show this computer
//! a log of its own, in which nothing happens.

use std::collections::BTreeMap;

use countersign_core::values::{json::ParseError, path::RepoPath, time::Timestamp};
use countersign_core::{documents::transparency::Transparency, log::checkpoint::SignedCheckpoint};
use countersign_core::{proof::log_pin::LogPin, values::verifier_key::VerifierKey};
use serde_json::{Value, json};

use crate::client::{ServerClient, now};
use crate::{error::CliError, log_memory::LogSighting};

/// The log as it was shown, and what projects demand of it.
pub(super) struct ShownLog<'a> {
    pub(super) client: &'a ServerClient,
    pub(super) key: &'a VerifierKey,
    pub(super) pin: &'a LogPin,
    pub(super) demands: &'a BTreeMap<RepoPath, Transparency>,
}

/// A project whose witnesses have not cosigned the log for too long.
pub(super) struct Unwitnessed {
    pub(super) project: RepoPath,
    /// The last time; `None` if too few have cosigned at all.
    since: Option<Timestamp>,
}

impl ShownLog<'_> {
    pub(super) async fn find_unwitnessed(&self) -> Result<Vec<Unwitnessed>, CliError> {
        let mut demands = self.demands.iter().filter(|(_, demand)| demand.log() == self.key).peekable();
        if demands.peek().is_none() {
            return Ok(Vec::new());
        }
        let note = self.client.cosigned_checkpoint().await?;
        let (mut unwitnessed, now) = (Vec::new(), now()?);
        for (project, demand) in demands {
            let Some(max_age) = demand.max_age() else { continue };
            let policy = demand.policy();
            let witnesses = policy.witness_keys();
            let mut since = None;
            if let Some(note) = &note {
                let (key, witnesses) = (self.key, &witnesses[..]);
                let sighting = LogSighting { key, note, witnesses, is_timed: true, consistency: None };
                sighting.check_against(self.pin, Some(self.client)).await?;
                let signed = SignedCheckpoint::open(note, std::slice::from_ref(self.key), witnesses);
                let signed = signed.map_err(|error| {
                    let error = ParseError::new("", error.to_string());
                    self.client.unusable_content(&"its cosigned checkpoint", error)
                })?;
                let times = signed.cosignatures().map(|of| (of.witness.key(), of.time));
                let time = policy.as_of(times).and_then(|time| i64::try_from(time).ok());
                since = time.and_then(|time| Timestamp::from_unix_seconds(time).ok());
            }
            let is_fresh = since.is_some_and(|since| now.ahead_of(since).is_none_or(|age| age <= max_age));
            if !is_fresh {
                unwitnessed.push(Unwitnessed { project: project.clone(), since });
            }
        }
        Ok(unwitnessed)
    }
}

impl Unwitnessed {
    pub(super) fn text(&self) -> String {
        let since = match self.since {
            Some(since) => format!("not since {since}, which is longer ago than its signers file allows"),
            None => "too few have cosigned it".to_owned(),
        };
        format!(
            "the witnesses of {} do not confirm this log: {since}. They are down, or this computer is shown another log than \
             they are",
            self.project
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "kind": "unwitnessed",
            "project_id": self.project.as_str(),
            "since": self.since.map(|since| since.to_string()),
        })
    }
}
