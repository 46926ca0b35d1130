//! The log of a server: its key, checkpoints and tiles.

use std::fmt::Display;

use countersign_core::log::note::Note;
use countersign_core::values::bounds::NOTE_BYTES;
use countersign_core::values::json::ParseError;
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::wire::routes;

use super::ServerClient;
use crate::error::CliError;

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
