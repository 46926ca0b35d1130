//! What a mirror and a witness ask their origin, and its address: the journal, and all else.

use std::{fmt, str::FromStr, time::Duration};

use bytes::Bytes;
use countersign_api::{answers::ErrorBody, error_code::ErrorCode};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::wire::routes::{JOURNAL, LOG_KEY};
use countersign_core::values::{bounds::NOTE_BYTES, shown::shown_text, wire};
use countersign_forge::{https::SetupError, url::parse_bare_url};
use countersign_store::ObjectId;
use countersign_store::journal::{JournalEntry, read::JournalError, read::JournalReader};
use reqwest::{Client, Response, StatusCode, header::CONTENT_TYPE};
use tokio::time::timeout;

use crate::follow::outgoing::{
    BriefAnswer, ExchangeFailure, OutgoingClient, direct_client, read_retry_after,
};

/// The most bytes of an error's text.
const ERROR_BYTES: usize = 64 << 10;
/// The longest wait that an origin can ask for.
const MAX_ASKED_WAIT: Duration = Duration::from_secs(600);
/// A mirror that is up to date asks to be told within this time, and expects some bytes within as much again.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The accepted lag is divided by this to get how long a mirror waits for news, and for bytes.
const WAIT_SHARE: u32 = 10;

/// The commit that the origin has after one that it was asked about.
#[derive(Debug)]
pub(crate) enum CommitAfter {
    /// The origin does not know the commit that it was asked about.
    Unknown,
    /// That commit is the origin's newest one.
    Nothing,
    Next(ObjectId),
}

/// The origin, as this mirror asks it for its journal.
#[derive(Debug, Clone)]
pub(crate) struct JournalClient {
    http: Client,
    pub(crate) address: OriginAddress,
    /// How long it can take to be told of a new commit, at most.
    pub(crate) wait: Duration,
    stall: Duration,
}

/// Commits after one that the origin knows.
#[derive(Debug)]
pub(crate) struct JournalAnswer {
    response: Response,
    stall: Duration,
    /// The origin's newest commit when it began to answer.
    pub(crate) newest: Option<ObjectId>,
}

pub(crate) fn unreadable_journal(error: JournalError) -> ExchangeFailure {
    ExchangeFailure::caused("the origin's journal cannot be read", &error)
}

impl JournalClient {
    pub(crate) fn new(address: OriginAddress, max_lag: Duration) -> Result<Self, SetupError> {
        let wait = (max_lag / WAIT_SHARE).clamp(Duration::from_secs(1), MAX_WAIT);
        Ok(Self { http: direct_client()?, address, wait, stall: wait + wait })
    }

    /// What came after this commit; `None` if the origin does not know it. The origin waits for new ones if there are
    /// none.
    pub(crate) async fn wait_after(
        &self,
        commit: Option<ObjectId>,
    ) -> Result<Option<JournalAnswer>, ExchangeFailure> {
        self.ask(commit, self.wait.as_secs()).await
    }

    /// Asks for the first commit after this one.
    pub(crate) async fn next_after(&self, commit: Option<ObjectId>) -> Result<CommitAfter, ExchangeFailure> {
        let Some(mut answer) = self.ask(commit, 0).await? else { return Ok(CommitAfter::Unknown) };
        let mut reader = JournalReader::default();
        loop {
            if let Some(JournalEntry { id, .. }) = reader.next().map_err(unreadable_journal)? {
                return Ok(CommitAfter::Next(id));
            }
            match answer.chunk().await? {
                Some(bytes) => reader.push(&bytes),
                None => return reader.finish().map(|()| CommitAfter::Nothing).map_err(unreadable_journal),
            }
        }
    }

    async fn ask(
        &self,
        commit: Option<ObjectId>,
        wait_seconds: u64,
    ) -> Result<Option<JournalAnswer>, ExchangeFailure> {
        let asked = self.http.get(self.address.journal_after(commit, wait_seconds)).send();
        let response = within(self.stall, asked).await?;
        let status = response.status();
        if status != StatusCode::OK {
            return self.explain(response, commit).await;
        }
        let kind = response.headers().get(CONTENT_TYPE).map(|kind| String::from_utf8_lossy(kind.as_bytes()));
        match kind.as_deref() {
            Some(wire::JOURNAL_TYPE) => {
                let newest = response.headers().get(wire::HEADER_COMMIT);
                let newest = newest.and_then(|id| ObjectId::from_hex(id.as_bytes()).ok());
                let newest = newest.filter(|id| !id.is_null());
                Ok(Some(JournalAnswer { response, stall: self.stall, newest }))
            }
            kind => {
                let kind = shown_text(kind.unwrap_or("without a type"));
                Err(ExchangeFailure::new(format!(
                    "the origin answered with something other than a journal ({kind}): is it a Countersign server?"
                )))
            }
        }
    }

    /// Explains a refusal. Only a Countersign server can say that it does not know a commit.
    async fn explain(
        &self,
        response: Response,
        commit: Option<ObjectId>,
    ) -> Result<Option<JournalAnswer>, ExchangeFailure> {
        let status = response.status();
        let asked_wait = read_retry_after(response.headers(), MAX_ASKED_WAIT);
        let mut answer = JournalAnswer { response, stall: self.stall, newest: None };
        let mut body = Vec::new();
        while let Ok(Some(bytes)) = answer.chunk().await {
            body.extend_from_slice(&bytes);
            if body.len() > ERROR_BYTES {
                break;
            }
        }
        let told = ErrorBody::parse(&body);
        match (commit, told.as_ref().and_then(ErrorBody::known_code)) {
            (Some(_), Some(ErrorCode::UnknownCommit)) => Ok(None),
            _ => {
                let message = told.map(|told| told.error);
                let message = message.unwrap_or_else(|| "no text of a Countersign server".to_owned());
                let reason = format!("the origin answered with {status}: {}", shown_text(&message));
                let status = Some(status.as_u16());
                Err(ExchangeFailure { reason, status, asked_wait })
            }
        }
    }
}

impl JournalAnswer {
    /// The next bytes; `None` at the end. Can be dropped before it is done, and nothing is lost.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, ExchangeFailure> {
        within(self.stall, self.response.chunk()).await
    }
}

async fn within<T>(
    stall: Duration,
    asked: impl Future<Output = Result<T, reqwest::Error>>,
) -> Result<T, ExchangeFailure> {
    let silent = || format!("the origin sent nothing for {} seconds", stall.as_secs());
    let answered = timeout(stall, asked).await.map_err(|_| ExchangeFailure::new(silent()))?;
    answered.map_err(|error| ExchangeFailure::caused("the origin cannot be reached", &error))
}

// The questions of a mirror and a witness to their origin, besides its journal.

#[derive(Debug)]
pub(crate) struct OriginClient {
    origin: OriginAddress,
    client: OutgoingClient,
}

impl OriginClient {
    pub(crate) fn new(origin: OriginAddress) -> Result<Self, SetupError> {
        Ok(Self { origin, client: OutgoingClient::new(NOTE_BYTES)? })
    }

    /// What the origin serves at this route.
    pub(crate) async fn get(&self, route: &str) -> Result<Vec<u8>, ExchangeFailure> {
        check_status(self.client.get(&format!("{}{route}", self.origin)).await?)
    }

    pub(crate) async fn post(&self, route: &str, body: String) -> Result<(), ExchangeFailure> {
        check_status(self.client.post(&format!("{}{route}", self.origin), body).await?).map(drop)
    }

    /// The key of its log, by its own word.
    pub(crate) async fn log_key(&self) -> Result<VerifierKey, ExchangeFailure> {
        parse_log_key(&String::from_utf8_lossy(&self.get(LOG_KEY).await?))
    }
}

pub(crate) fn parse_log_key(text: &str) -> Result<VerifierKey, ExchangeFailure> {
    VerifierKey::parse_kind(text.trim(), KeyKind::Log)
        .map_err(|error| ExchangeFailure::caused("the origin shows no key of a log", &error))
}

fn check_status(answer: BriefAnswer) -> Result<Vec<u8>, ExchangeFailure> {
    if answer.status == 200 { Ok(answer.body) } else { Err(answer.refused("the origin")) }
}

// The address of the server that a mirror follows.

/// The address of an origin, without a slash at its end. It stands on pages and in commands that people paste, so it
/// contains nothing with a special meaning for a shell or a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginAddress(String);

impl FromStr for OriginAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shown = shown_text(text);
        let refuse = || {
            format!(
                "`{shown}` is not the address of a signing server: write it as https://HOST or http://HOST:PORT"
            )
        };
        let url = parse_bare_url(text.trim()).ok_or_else(refuse)?;
        let text = url.as_str().trim_end_matches('/');
        let is_plain =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | ':' | '.' | '-' | '_' | '~' | '[' | ']');
        if !text.chars().all(is_plain) {
            return Err(refuse());
        }
        Ok(Self(text.to_owned()))
    }
}

impl OriginAddress {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address at which the origin serves the commits after this one, or all of them.
    pub(crate) fn journal_after(&self, commit: Option<ObjectId>, wait_seconds: u64) -> String {
        let after = commit.map(|commit| format!("after={commit}&")).unwrap_or_default();
        format!("{}{JOURNAL}?{after}wait={wait_seconds}", self.0)
    }
}

impl fmt::Display for OriginAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// The settings of a mirror: which server it follows, and how far behind it is still ready.

#[derive(Debug, Clone)]
pub struct MirrorSettings {
    pub origin: OriginAddress,
    /// How long a mirror can be out of date before it is not ready.
    pub max_lag: Duration,
}
