//! The signing server, as its client sees it: asked for things, bounded in time and size, and not believed.

use std::{
    fmt::Display,
    time::{Duration, SystemTime},
};

use countersign_api::{
    answers::{ChainResponse, ErrorResponse, PingResponse},
    catalogue::{KeyPendingResponse, ProjectsResponse},
    event::{EventFilter, HEADER_LAST_EVENT_ID},
};
use countersign_core::{
    documents::{
        history::History,
        layout::{self, Signable},
        signers::SignersFile,
    },
    rules::auth::request_digest,
    values::{
        bounds::{ANSWER_BYTES, FILE_BYTES},
        json::ParseError,
        key::PublicKey,
        path::RepoPath,
        shown::shown_text,
        time::Timestamp,
        wire,
    },
};
use reqwest::{
    Method, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue, LOCATION},
};
use serde::Serialize;
use url::Url;

use crate::{
    error::{CliError, ErrorKind},
    keys::SigningKey,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// While the server fetches a signers file from a forge.
const FETCH_TIMEOUT: Duration = Duration::from_secs(150);
/// While the server downloads all assets of a release.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);

const TOO_OLD: &str =
    "what happened since then can no longer be told: look at the state, and watch without --since";

/// Which events to listen to.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListenQuery {
    pub(crate) filter: EventFilter,
    /// The newest commit that is known; without one, it is what happens from now on.
    pub(crate) after: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct ServerClient {
    base: Url,
    http: reqwest::Client,
}

impl ServerClient {
    pub(crate) fn new(server: &str) -> Result<Self, CliError> {
        let shown = shown_text(server);
        let malformed = || {
            CliError::usage(
                format!("`{shown}` is not the address of a signing server"),
                "write it as https://HOST or http://HOST:PORT, with --server or COUNTERSIGN_SERVER",
            )
        };
        let mut base = Url::parse(server).map_err(|_| malformed())?;
        let is_plain = base.query().is_none()
            && base.fragment().is_none()
            && base.username().is_empty()
            && base.password().is_none();
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() || !is_plain {
            return Err(malformed());
        }
        base.path_segments_mut().map_err(|()| malformed())?.pop_if_empty();
        // A redirect would be a stranger's choice of whom to ask.
        let http = countersign_forge::https::https_client(|builder| {
            builder
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(reqwest::redirect::Policy::none())
                .referer(false)
        });
        let http = http.map_err(CliError::no_https)?;
        Ok(Self { base, http })
    }

    pub(crate) fn address(&self) -> String {
        shown_text(self.base.as_str().trim_end_matches('/'))
    }

    /// A stored file; `None` where the server says that there is none.
    pub(crate) async fn file(&self, path: &RepoPath, max_bytes: usize) -> Result<Option<Vec<u8>>, CliError> {
        let response = self.send(self.http.get(self.route("files", Some(path))), ANSWER_TIMEOUT).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        self.read(response, max_bytes).await.map(Some)
    }

    /// A stored document, as text.
    pub(crate) async fn document(&self, path: &RepoPath) -> Result<Option<String>, CliError> {
        let bytes = self.file(path, FILE_BYTES).await?;
        bytes.map(|bytes| self.text(path, bytes)).transpose()
    }

    /// A stored document, parsed.
    pub(crate) async fn parsed<T>(
        &self,
        path: &RepoPath,
        parse: impl FnOnce(&[u8]) -> Result<T, ParseError>,
    ) -> Result<Option<T>, CliError> {
        let bytes = self.file(path, FILE_BYTES).await?;
        bytes.map(|bytes| parse(&bytes).map_err(|error| self.unusable(path, error))).transpose()
    }

    /// The whole history of a project's signers; empty where it has none.
    pub(crate) async fn history(&self, project: &RepoPath) -> Result<History, CliError> {
        let path = layout::history(project);
        match self.file(&path, ANSWER_BYTES).await? {
            Some(bytes) => History::parse(&bytes).map_err(|error| self.unusable(&path, error)),
            None => Ok(History::default()),
        }
    }

    /// The history up to the signers that signed `path`.
    pub(crate) async fn chain(&self, path: &RepoPath) -> Result<History, CliError> {
        let request = self.http.get(self.route("get_signers_chain", Some(path)));
        let bytes = self.read(self.send(request, ANSWER_TIMEOUT).await?, ANSWER_BYTES).await?;
        let chain = ChainResponse::parse(&bytes).map_err(|error| self.unusable(path, error))?;
        Ok(chain.history)
    }

    /// The keys of the signers file in force above a path, and of one that is proposed.
    pub(crate) async fn listed_keys(&self, path: &RepoPath) -> Result<Vec<PublicKey>, CliError> {
        let request = self.http.get(self.route("get_signers", Some(path)));
        let response = self.send(request, ANSWER_TIMEOUT).await?;
        let mut files = Vec::new();
        if response.status().is_success() {
            let bytes = self.read(response, FILE_BYTES).await?;
            files.push(SignersFile::parse(&bytes).map_err(|error| self.unusable(path, error))?);
        }
        let project = match layout::signable(path) {
            Some(Signable::PendingSigners { project }) => project,
            Some(Signable::Index) | None => path.clone(),
        };
        files.extend(self.parsed(&layout::pending_signers(&project), SignersFile::parse).await?);
        Ok(files.iter().flat_map(SignersFile::keys).collect())
    }

    /// What the catalogue says to everyone about a question in the query.
    pub(crate) async fn search<T>(
        &self,
        route: &str,
        query: &[(&str, &str)],
        parse: impl FnOnce(&[u8]) -> Result<T, ParseError>,
    ) -> Result<T, CliError> {
        let mut url = self.route(route, None);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let bytes = self.read(self.send(self.http.get(url), ANSWER_TIMEOUT).await?, ANSWER_BYTES).await?;
        parse(&bytes).map_err(|error| self.unusable(&route, error))
    }

    /// The projects whose identifiers end like this.
    pub(crate) async fn projects(&self, name: &str) -> Result<ProjectsResponse, CliError> {
        self.search("projects", &[("name", name)], ProjectsResponse::parse).await
    }

    /// What waits for a key, as everyone may know.
    pub(crate) async fn pending_of(&self, key: &PublicKey) -> Result<KeyPendingResponse, CliError> {
        let mut url = self.route("keys", None);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend([key.to_string().as_str(), "pending"]);
        }
        let bytes = self.read(self.send(self.http.get(url), ANSWER_TIMEOUT).await?, ANSWER_BYTES).await?;
        KeyPendingResponse::parse(&bytes).map_err(|error| self.unusable(&"keys", error))
    }

    /// A request that `key` signs, for an answer that `parse` reads.
    pub(crate) async fn ask<T>(
        &self,
        key: &SigningKey,
        route: ServerCall<'_>,
        parse: impl FnOnce(&[u8]) -> Result<T, ParseError>,
    ) -> Result<T, CliError> {
        let (method, name, timeout) = route.parts();
        let body = route.body()?;
        let (timestamp, nonce) = (now()?.to_header(), new_nonce()?);
        let signature = key.sign(&request_digest(&timestamp, &nonce, body.as_bytes()))?;
        let request = self
            .http
            .request(method, self.route(name, None))
            .header(wire::HEADER_TIMESTAMP, timestamp)
            .header(wire::HEADER_NONCE, nonce)
            .header(wire::HEADER_SIGNATURE, signature.to_header())
            .header(wire::HEADER_PUBLIC_KEY, key.public_key().to_string())
            .body(body);
        let bytes = self.read(self.send(request, timeout).await?, ANSWER_BYTES).await?;
        parse(&bytes).map_err(|error| self.unusable(&name, error))
    }

    /// Whether the server is there, without saying who asks.
    pub(crate) async fn ping(&self) -> Result<PingResponse, CliError> {
        let response = self.send(self.http.get(self.route("ping", None)), ANSWER_TIMEOUT).await?;
        let bytes = self.read(response, FILE_BYTES).await?;
        PingResponse::parse(&bytes).map_err(|error| self.unusable(&"ping", error))
    }

    /// A stream of events, which has begun and has no end.
    pub(crate) async fn listen(&self, query: &ListenQuery) -> Result<Response, CliError> {
        let mut url = self.route("events", None);
        let EventFilter { prefix, key, kinds } = &query.filter;
        let kinds = kinds.as_ref().map(|kinds| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>());
        let parameters = [
            ("prefix", prefix.as_ref().map(RepoPath::to_string)),
            ("key", key.as_ref().map(ToString::to_string)),
            ("type", kinds.map(|kinds| kinds.join(","))),
        ];
        for (name, value) in parameters.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            url.query_pairs_mut().append_pair(name, &value);
        }
        let request = self.http.get(url);
        let request = match &query.after {
            Some(after) => request.header(HEADER_LAST_EVENT_ID, after),
            None => request,
        };
        // There is no limit for the whole answer, only for its head.
        let response = tokio::time::timeout(ANSWER_TIMEOUT, request.send()).await;
        let response = response.map_err(|_| self.silent())?.map_err(|error| self.unreachable(&error))?;
        if !response.status().is_success() {
            let is_too_old = response.status() == StatusCode::NOT_FOUND && query.after.is_some();
            let refused = self.read(response, 0).await.map_or_else(|error| error, |_| self.silent());
            return Err(if is_too_old { refused.with_hint(TOO_OLD) } else { refused });
        }
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
            return Ok(response);
        }
        Err(self.unusable_event(ParseError::new("", "it is no stream of events")))
    }

    fn route(&self, name: &str, path: Option<&RepoPath>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(["v1", name]);
            segments.extend(path.into_iter().flat_map(RepoPath::segments));
        }
        url
    }

    async fn send(&self, request: reqwest::RequestBuilder, timeout: Duration) -> Result<Response, CliError> {
        request.timeout(timeout).send().await.map_err(|error| self.unreachable(&error))
    }

    async fn read(&self, mut response: Response, max_bytes: usize) -> Result<Vec<u8>, CliError> {
        let status = response.status();
        if status.is_redirection() {
            let target =
                response.headers().get(LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()));
            return Err(CliError::other(
                format!(
                    "the server {} redirects to {}",
                    self.address(),
                    shown_text(&target.unwrap_or_default())
                ),
                "redirects are not followed: if you trust that address, give it with --server",
            ));
        }
        let max_bytes = if status.is_success() { max_bytes } else { 64 << 10 };
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if bytes.len() + chunk.len() > max_bytes {
                return Err(CliError::unverified(
                    format!("the server {} answers with more than {max_bytes} bytes", self.address()),
                    "no honest answer is that long: check --server",
                ));
            }
            bytes.extend_from_slice(&chunk);
        }
        if status.is_success() { Ok(bytes) } else { Err(self.refused(status, &bytes)) }
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> CliError {
        let said = ErrorResponse::parse(body).map(|answer| shown_text(&answer.error));
        let said = said.unwrap_or_else(|| "(without a reason)".to_owned());
        let message = format!("the server {} answered {}: {said}", self.address(), status.as_u16());
        let (kind, hint) = match status.as_u16() {
            400 => (ErrorKind::Other, "correct what the message names"),
            401 => (ErrorKind::Other, "check this computer's clock, and that --key names the right key"),
            403 => (ErrorKind::Other, "only those whom the project's signers file lists may do this"),
            404 => (
                ErrorKind::Other,
                "check the path, and --server: `countersign pending` lists what waits for you",
            ),
            409 => (
                ErrorKind::Other,
                "it is done already, or something is in the way: `countersign chain PROJECT` and `countersign \
                 status PATH` show what is there",
            ),
            429 => (ErrorKind::Unreachable, "it was too much for now: wait as long as the message says"),
            500 => (
                ErrorKind::Other,
                "check that the server can read what the message names; else ask its operator",
            ),
            502..=504 => (ErrorKind::Unreachable, "the server is busy or down: try again later"),
            _ => (ErrorKind::Other, "the server's operator finds more in its log"),
        };
        CliError::new(kind, message, hint)
    }

    fn unreachable(&self, error: &reqwest::Error) -> CliError {
        let innermost = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
        let reason = innermost.last().map(|error| shown_text(&error.to_string())).unwrap_or_default();
        CliError::unreachable(
            format!("the server {} cannot be reached", self.address()),
            "check the network and --server (COUNTERSIGN_SERVER); `countersign serve --dev` starts one here",
        )
        .because(reason)
    }

    fn silent(&self) -> CliError {
        CliError::unreachable(
            format!("the server {} does not answer", self.address()),
            "check the network and --server (COUNTERSIGN_SERVER)",
        )
    }

    /// Not an event.
    pub(crate) fn unusable_event(&self, error: ParseError) -> CliError {
        self.unusable(&"events", error)
    }

    /// An answer that is not what it must be.
    fn unusable(&self, what: &impl Display, error: ParseError) -> CliError {
        CliError::unverified(
            format!("the server {} gives an answer for {what} that cannot be used", self.address()),
            "check that --server is a Countersign server; if it is, do not trust it",
        )
        .because(error)
    }

    fn text(&self, path: &RepoPath, bytes: Vec<u8>) -> Result<String, CliError> {
        String::from_utf8(bytes).map_err(|_| self.unusable(path, ParseError::new("", "it is not UTF-8")))
    }
}

/// The requests that are signed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServerCall<'a> {
    Ping,
    Register(&'a countersign_api::requests::ProposeBody),
    Update(&'a countersign_api::requests::ProposeBody),
    Signatures(&'a countersign_api::requests::SignaturesBody),
    Assets(&'a countersign_api::requests::AssetsBody),
    Revoke(&'a countersign_api::requests::RevokeBody),
}

impl<'a> ServerCall<'a> {
    fn parts(self) -> (Method, &'static str, Duration) {
        match self {
            Self::Ping => (Method::GET, "ping", ANSWER_TIMEOUT),
            Self::Register(_) => (Method::POST, "register_repo", FETCH_TIMEOUT),
            Self::Update(_) => (Method::POST, "update_signers", FETCH_TIMEOUT),
            Self::Signatures(_) => (Method::POST, "signatures", ANSWER_TIMEOUT),
            Self::Assets(_) => (Method::POST, "assets", RELEASE_TIMEOUT),
            Self::Revoke(_) => (Method::POST, "revoke", ANSWER_TIMEOUT),
        }
    }

    fn body(self) -> Result<String, CliError> {
        match self {
            Self::Ping => Ok(String::new()),
            Self::Register(body) | Self::Update(body) => to_json(body),
            Self::Signatures(body) => to_json(body),
            Self::Assets(body) => to_json(body),
            Self::Revoke(body) => to_json(body),
        }
    }
}

fn to_json(body: &impl Serialize) -> Result<String, CliError> {
    serde_json::to_string(body)
        .map_err(|error| CliError::other("the request cannot be written", "report this").because(error))
}

/// The clock of this computer.
pub(crate) fn now() -> Result<Timestamp, CliError> {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
    let nanos = since_1970.and_then(|elapsed| i128::try_from(elapsed.as_nanos()).ok());
    nanos
        .and_then(|nanos| Timestamp::from_unix_nanos(nanos).ok())
        .ok_or_else(|| CliError::other("this computer's clock is out of range", "set the clock"))
}

/// A random UUID of version 4.
fn new_nonce() -> Result<String, CliError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        CliError::other("the system gives no random bytes", "check the system").because(error.to_string())
    })?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid().hyphenated().to_string())
}
