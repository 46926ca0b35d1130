//! The journal of a server, one commit after the other. A stream that breaks off is continued.

use std::time::Duration;

use countersign_store::ObjectId;
use countersign_store::journal::{entry::JournalEntry, read::JournalReader};
use reqwest::Response;

use crate::{client::ServerClient, error::CliError};

/// A server that sends nothing for so long has gone.
const SILENCE: Duration = Duration::from_secs(60);
/// How often the journal can break off without a single new commit.
const MAX_BREAKS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Commits<'a> {
    client: &'a ServerClient,
    /// The last one that was given.
    newest: Option<ObjectId>,
    stream: Option<(Response, JournalReader)>,
    breaks: u32,
}

impl<'a> Commits<'a> {
    /// Those after this commit, or all.
    pub(super) fn after(client: &'a ServerClient, newest: Option<ObjectId>) -> Self {
        Self { client, newest, stream: None, breaks: 0 }
    }

    pub(super) async fn next(&mut self) -> Result<JournalEntry, CliError> {
        loop {
            let (response, reader) = match &mut self.stream {
                Some(open) => open,
                None => {
                    let stream = self.client.journal(self.newest).await?;
                    let stream = stream.ok_or_else(|| {
                        untrue_journal(self.client, "its journal does not have the last commit")
                    })?;
                    self.stream.insert((stream.response, JournalReader::default()))
                }
            };
            let entry = reader.next();
            let entry =
                entry.map_err(|error| untrue_journal(self.client, "its journal is none").because(error))?;
            if let Some(entry) = entry {
                (self.newest, self.breaks) = (Some(entry.id), 0);
                return Ok(entry);
            }
            match tokio::time::timeout(SILENCE, response.chunk()).await {
                Ok(Ok(Some(bytes))) => reader.push(&bytes),
                Ok(Ok(None) | Err(_)) | Err(_) => self.pause().await?,
            }
        }
    }

    async fn pause(&mut self) -> Result<(), CliError> {
        self.stream = None;
        self.breaks += 1;
        if self.breaks > MAX_BREAKS {
            return Err(CliError::unreachable(
                format!("the journal of {} breaks off", self.client.address()),
                "run it again: it continues where it stopped",
            ));
        }
        tokio::time::sleep(PAUSE * self.breaks).await;
        Ok(())
    }
}

pub(super) fn untrue_journal(client: &ServerClient, why: &str) -> CliError {
    CliError::unverified(
        format!("the server {} shows other commits than its log: {why}", client.address()),
        "it lies or is broken: compare with a mirror or another client, and tell its operator",
    )
}
