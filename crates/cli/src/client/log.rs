//! The log and the journal of a server: key, checkpoints, tiles, commits.

use std::{fmt::Display, time::Duration};

use countersign_api::error_code::ErrorCode;
use countersign_core::log::note::Note;
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{bounds::NOTE_BYTES, json::ParseError, wire, wire::routes};
use countersign_store::ObjectId;
use countersign_store::journal::{JournalEntry, read::JournalError, read::JournalReader};
use reqwest::{Response, StatusCode};

use crate::{client::ServerClient, words::error::CliError};

const KEY_BYTES: usize = 1_024;

impl ServerClient {
    /// The key of the log, by the server's word. `None` if it keeps no log.
    pub(crate) async fn log_key(&self) -> Result<Option<VerifierKey>, CliError> {
        let parse = |text: &str| {
            let line = text.strip_suffix('\n').unwrap_or(text);
            VerifierKey::parse_kind(line, KeyKind::Log).map_err(|error| error.to_string())
        };
        self.log_text(routes::LOG_KEY, KEY_BYTES, &"its log's key", parse).await
    }

    /// The checkpoint at a route, unverified: the newest one, or the newest one with enough cosignatures for the
    /// server's own policy. `None` if the server has none.
    pub(crate) async fn checkpoint(&self, route: &str) -> Result<Option<Note>, CliError> {
        let parse = |text: &str| Note::parse(text.as_bytes()).map_err(|error| error.to_string());
        self.log_text(route, NOTE_BYTES, &"a checkpoint", parse).await
    }

    /// A tile by the segments of its name. `None` if the log does not have it.
    pub(crate) async fn log_tile(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, CliError> {
        let answer = self.find(self.at(routes::LOG_TILE, name.split('/')), max_bytes).await?;
        Ok(answer.map(|answer| answer.bytes))
    }

    async fn log_text<T>(
        &self,
        route: &str,
        max_bytes: usize,
        what: &impl Display,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, CliError> {
        let Some(answer) = self.find(self.route(route, None), max_bytes).await? else { return Ok(None) };
        let text = std::str::from_utf8(&answer.bytes).map_err(|_| "it is not UTF-8".to_owned());
        let parsed = text.and_then(parse);
        parsed.map(Some).map_err(|reason| self.unusable(what, &answer, ParseError::new("", reason)))
    }
}

// The journal of a server.

/// A server that sends nothing for so long has gone.
const SILENCE: Duration = Duration::from_secs(60);
/// How often the journal can break off without a single new commit.
const MAX_BREAKS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// The commits of a journal, one after the other. A stream that breaks off is continued.
pub(crate) struct Commits<'a> {
    pub(crate) client: &'a ServerClient,
    /// The last one that was given.
    newest: Option<ObjectId>,
    stream: Option<OpenJournal>,
    breaks: u32,
}

/// A journal whose head has arrived.
struct OpenJournal {
    response: Response,
    reader: JournalReader,
    /// The commit that it ends with.
    end: ObjectId,
}

/// Why there is no next commit.
pub(crate) enum NoCommit {
    /// The server does not have the commit that the journal is to continue.
    Rewritten,
    Unreadable(JournalError),
    /// The stream broke off too often, the last time for this reason.
    Broken(String),
    Unasked(CliError),
}

impl<'a> Commits<'a> {
    /// The commits after this one, or all of them.
    pub(crate) fn after(client: &'a ServerClient, newest: Option<ObjectId>) -> Self {
        Self { client, newest, stream: None, breaks: 0 }
    }

    /// The next commit. `None` if the server had no later one when it opened the journal.
    pub(crate) async fn next(&mut self) -> Result<Option<JournalEntry>, NoCommit> {
        loop {
            let OpenJournal { response, reader, end } = match &mut self.stream {
                Some(open) => open,
                None => {
                    let open = self.client.journal(self.newest).await.map_err(NoCommit::Unasked)?;
                    self.stream.insert(open.ok_or(NoCommit::Rewritten)?)
                }
            };
            if self.newest == Some(*end) {
                return Ok(None);
            }
            if let Some(entry) = reader.next().map_err(NoCommit::Unreadable)? {
                (self.newest, self.breaks) = (Some(entry.id), 0);
                return Ok(Some(entry));
            }
            let broken = match tokio::time::timeout(SILENCE, response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    reader.push(&bytes);
                    continue;
                }
                Ok(Ok(None)) => {
                    let ended = std::mem::take(reader).finish().err().map(|error| error.to_string());
                    ended.unwrap_or_else(|| format!("it ends before the commit {end}"))
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "the server sends nothing more".to_owned(),
            };
            self.pause(broken).await?;
        }
    }

    /// Closes the stream, to open it again in a while. An error if that was done too often.
    pub(crate) async fn pause(&mut self, broken: String) -> Result<(), NoCommit> {
        self.stream = None;
        self.breaks += 1;
        if self.breaks > MAX_BREAKS {
            return Err(NoCommit::Broken(broken));
        }
        tokio::time::sleep(PAUSE * self.breaks).await;
        Ok(())
    }
}

impl ServerClient {
    /// What was committed after `after`, or from the first commit on. `None` if the server does not have that commit.
    async fn journal(&self, after: Option<ObjectId>) -> Result<Option<OpenJournal>, CliError> {
        let mut url = self.route(routes::JOURNAL, None);
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("after", &after.to_string());
        }
        let answer = match self.open_stream(|| self.http.get(url.clone())).await? {
            Ok(response) => return self.begin_journal(response).map(Some),
            Err(answer) => answer,
        };
        let Some(told) = answer.told() else { return Err(self.refused(&answer)) };
        let code = told.known_code();
        if code == Some(ErrorCode::UnknownCommit) && after.is_some() {
            return Ok(None);
        }
        // A server before D230 has no codes.
        let is_old = told.code.is_none() && answer.status == StatusCode::NOT_FOUND;
        if is_old || code == Some(ErrorCode::NoSuchRoute) {
            return Err(CliError::other(
                format!("the server {} has no journal: it is older than this program", self.address()),
                "check a clone of its repository instead: `countersign fsck CLONE`",
            )
            .with_request_id(answer.request_id.as_deref()));
        }
        Err(self.refused(&answer))
    }

    fn begin_journal(&self, response: Response) -> Result<OpenJournal, CliError> {
        let end = response.headers().get(wire::HEADER_COMMIT);
        let end = end.filter(|id| id.len() == 40).and_then(|id| ObjectId::from_hex(id.as_bytes()).ok());
        let end = end.ok_or_else(|| {
            let reason = format!("it does not say with {} where it ends", wire::HEADER_COMMIT);
            self.unusable_content(&"its journal", ParseError::new("", reason))
        })?;
        Ok(OpenJournal { response, reader: JournalReader::default(), end })
    }
}
