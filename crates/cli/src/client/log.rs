//! The log and the journal of a server: key, checkpoints, tiles, commits.

use std::fmt::Display;

use countersign_api::error_code::ErrorCode;
use countersign_core::log::note::Note;
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{bounds::NOTE_BYTES, json::ParseError, wire, wire::routes};
use countersign_store::ObjectId;
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

    /// The newest checkpoint, unverified. `None` if the server keeps no log.
    pub(crate) async fn checkpoint(&self) -> Result<Option<Note>, CliError> {
        self.note_at(routes::LOG_CHECKPOINT).await
    }

    /// The newest checkpoint with enough cosignatures for the server's own policy, unverified. `None` if the server
    /// has none yet.
    pub(crate) async fn cosigned_checkpoint(&self) -> Result<Option<Note>, CliError> {
        self.note_at(routes::LOG_COSIGNED).await
    }

    async fn note_at(&self, route: &str) -> Result<Option<Note>, CliError> {
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

/// A journal whose head has arrived.
#[derive(Debug)]
pub(crate) struct JournalStream {
    pub(crate) response: Response,
    /// The commit that it ends with.
    pub(crate) newest: ObjectId,
}

impl ServerClient {
    /// What was committed after `after`, or from the first commit on. `None` if the server does not have that commit.
    pub(crate) async fn journal(&self, after: Option<ObjectId>) -> Result<Option<JournalStream>, CliError> {
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

    fn begin_journal(&self, response: Response) -> Result<JournalStream, CliError> {
        let newest = response.headers().get(wire::HEADER_COMMIT);
        let newest = newest.filter(|id| id.len() == 40).and_then(|id| ObjectId::from_hex(id.as_bytes()).ok());
        match newest {
            Some(newest) => Ok(JournalStream { response, newest }),
            None => {
                let reason = format!("it does not say with {} where it ends", wire::HEADER_COMMIT);
                Err(self.unusable_content(&"its journal", ParseError::new("", reason)))
            }
        }
    }
}
