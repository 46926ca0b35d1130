//! The log of a server: its key, checkpoints, tiles, and what it proves of a release.

use std::fmt::Display;

use countersign_core::{
    log::note::Note,
    proof::staple::Staple,
    values::{
        bounds::{NOTE_BYTES, STAPLE_BYTES},
        json::ParseError,
        path::RepoPath,
        shown::shown_text,
        verifier_key::{KeyKind, VerifierKey},
        wire::routes,
    },
};
use reqwest::StatusCode;

use super::ServerClient;
use crate::error::CliError;

const KEY_BYTES: usize = 1_024;

/// What a server shows of a release's state.
#[derive(Debug)]
pub(crate) enum ShownProof {
    Staple(Box<Staple>),
    /// None, and why, safe to show: there is no log, or it does not work.
    Absent(String),
    /// The same, but the next checkpoint can have it.
    NotYet(String),
}

impl ServerClient {
    pub(crate) async fn proof(&self, index: &RepoPath) -> Result<ShownProof, CliError> {
        let answer = self.look_up(self.route(routes::PROOF, Some(index)), STAPLE_BYTES).await?;
        let is_absence = matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE);
        match answer.error_text() {
            Some(said) if is_absence => {
                let is_soon = answer.status == StatusCode::NOT_FOUND && answer.retry_after.is_some();
                let said = shown_text(&said);
                Ok(if is_soon { ShownProof::NotYet(said) } else { ShownProof::Absent(said) })
            }
            _ if answer.status.is_success() => {
                let staple = Staple::parse(&answer.bytes);
                let staple = staple.map_err(|error| self.unusable(&"a proof", &answer, error))?;
                Ok(ShownProof::Staple(Box::new(staple)))
            }
            _ => Err(self.refused(&answer)),
        }
    }

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
