//! The stream of events, as its client sees it: it breaks, is opened again, and goes on where it was.

use std::{collections::VecDeque, time::Duration};

use countersign_api::event::{EventBlock, EventBody, EventStreamReader, is_commit_id};
use countersign_core::values::json::ParseError;
use reqwest::Response;

use crate::client::{ListenQuery, ServerClient};
use crate::words::{error::CliError, error::ErrorKind};

/// The server gives a sign of life every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// If so many events came after one, it is no longer news. A client that asks about each would fall behind.
const MOST_AFTER: usize = 16;

/// What becomes of the time in which there was no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gaps {
    /// The server is asked for what was missed.
    Filled,
    /// The listener looks at the state instead.
    Left,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    Event(EventBody),
    /// The connection is back after a time without one.
    Again,
}

#[derive(Debug)]
pub(crate) struct EventFeed<'a> {
    client: &'a ServerClient,
    query: ListenQuery,
    gaps: Gaps,
    stream: Option<(Response, EventStreamReader)>,
    told: VecDeque<EventBody>,
}

impl<'a> EventFeed<'a> {
    /// Returns once the server listens to us. From then on nothing is missed.
    pub(crate) async fn open(
        client: &'a ServerClient,
        query: ListenQuery,
        gaps: Gaps,
    ) -> Result<Self, CliError> {
        let stream = Some((client.listen(&query).await?, EventStreamReader::default()));
        Ok(Self { client, query, gaps, stream, told: VecDeque::new() })
    }

    /// Ends only with an error that trying again does not help against.
    pub(crate) async fn next(&mut self) -> Result<Next, CliError> {
        loop {
            if let Some(announced) = self.told.pop_front() {
                return Ok(Next::Event(announced));
            }
            let Some((response, reader)) = &mut self.stream else {
                self.open_again().await?;
                return Ok(Next::Again);
            };
            match tokio::time::timeout(SILENCE, response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    let blocks = reader.push(&bytes);
                    let blocks = blocks
                        .map_err(|_| self.client.unusable_event(ParseError::new("", "it is too long")))?;
                    blocks.into_iter().try_for_each(|block| self.take(block))?;
                }
                Ok(Ok(None) | Err(_)) | Err(_) => {
                    self.client.output.note("The connection to the server was lost; trying again.");
                    self.stream = None;
                }
            }
        }
    }

    /// Whether an event that was just taken is the newest one of its file, and few others came after it.
    pub(crate) fn is_newest(&self, event: &EventBody) -> bool {
        self.told.len() < MOST_AFTER && self.told.iter().all(|later| later.path != event.path)
    }

    fn take(&mut self, block: EventBlock) -> Result<(), CliError> {
        if let Some(data) = block.data {
            let announced = EventBody::parse(data.as_bytes());
            self.told.extend(announced.map_err(|error| self.client.unusable_event(error))?);
        }
        if let Some(id) = block.id
            && self.gaps == Gaps::Filled
        {
            // It goes back to the server: what no header can hold would keep us from ever connecting again.
            if !id.is_empty() && !is_commit_id(&id) {
                return Err(self.client.unusable_event(ParseError::new("id", "must be the id of a commit")));
            }
            self.query.after = Some(id).filter(|id| !id.is_empty());
        }
        Ok(())
    }

    async fn open_again(&mut self) -> Result<(), CliError> {
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            match self.client.listen(&self.query).await {
                Ok(response) => {
                    self.stream = Some((response, EventStreamReader::default()));
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Unreachable => pause = MAX_PAUSE.min(2 * pause),
                Err(error) => return Err(error),
            }
        }
    }
}
