//! The signing server, as its client sees it: asked for things, bounded in time and size, and not believed.

mod advice;
mod attempts;
pub(crate) mod events;
pub(crate) mod failures;
pub(crate) mod log;
pub(crate) mod session;
pub(crate) mod state;
pub(crate) mod submission;
pub(crate) mod targets;
pub(crate) mod turns;

use std::{sync::Arc, time::Duration, time::SystemTime};

use countersign_api::catalogue::{
    KeyPendingResponse, KeyResponse, KeySignedResponse, ProjectsResponse, ReleasesResponse,
};
use countersign_api::{answers::PingResponse, event::EventFilter};
use countersign_core::documents::{layout, layout::Signable, signers::SignersFile};
use countersign_core::rules::auth::request_digest;
use countersign_core::values::bounds::{ANSWER_BYTES, FILE_BYTES};
use countersign_core::values::{
    json::ParseError, key::PublicKey, path::RepoPath, shown::shown_text, time::Timestamp, wire, wire::routes,
};
use countersign_forge::guard::{Guard, GuardRefusal, HostResolver};
use countersign_forge::{https::https_client, url::parse_bare_url};
use reqwest::{RequestBuilder, Response, StatusCode, header::CONTENT_TYPE, header::HeaderValue};
use url::Url;

pub(crate) use crate::client::attempts::ServerCall;
use crate::client::attempts::{
    ANSWER_TIMEOUT, Answer, ExchangeError, PAUSES, Repetition, exchange, next_pause,
};
use crate::words::{error::CliError, error::ErrorKind, output::Output};
use crate::{keys::SigningKey, settings::client_config::KnownServer};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A question for events to listen to.
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
    /// The project whose signers file named the server, if the user did not.
    pub(crate) named_by: Option<RepoPath>,
    output: Output,
}

impl ServerClient {
    /// A server that the user named.
    pub(crate) fn new(server: &str, output: Output) -> Result<Self, CliError> {
        Self::open(KnownServer::named(server), output)
    }

    /// A server that only a project named is a stranger's choice of whom to ask (D227).
    pub(crate) fn open(server: KnownServer, output: Output) -> Result<Self, CliError> {
        let KnownServer { address, named_by } = server;
        let shown = shown_text(&address);
        let malformed = || {
            CliError::usage(
                format!("`{shown}` is not the address of a signing server"),
                "write it as https://HOST or http://HOST:PORT, with --server or COUNTERSIGN_SERVER",
            )
        };
        let mut base = parse_bare_url(&address).ok_or_else(malformed)?;
        base.path_segments_mut().map_err(|()| malformed())?.pop_if_empty();
        // A redirect would be a stranger's choice of whom to ask.
        let resolver =
            named_by.as_ref().map(|project| HostResolver::new(Guard::for_users_of(project, &base), &base));
        let resolver = resolver.transpose().map_err(|refusal| not_asked(&shown, &refusal))?.map(Arc::new);
        let http = https_client(|builder| {
            let builder = builder
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(reqwest::redirect::Policy::none())
                .referer(false);
            match &resolver {
                Some(resolver) => builder.dns_resolver(Arc::clone(resolver)),
                None => builder,
            }
        });
        let http = http.map_err(CliError::no_https)?;
        Ok(Self { base, http, named_by, output })
    }

    pub(crate) fn address(&self) -> String {
        shown_text(self.base.as_str().trim_end_matches('/'))
    }

    /// A stored document, parsed.
    pub(crate) async fn parsed<T>(
        &self,
        path: &RepoPath,
        parse: impl FnOnce(&[u8]) -> Result<T, ParseError>,
    ) -> Result<Option<T>, CliError> {
        let answer = self.find(self.route(routes::FILES, Some(path)), FILE_BYTES).await?;
        let parsed = answer.map(|answer| parse(&answer.bytes)).transpose();
        parsed.map_err(|error| self.unusable_content(path, error))
    }

    /// The keys of the signers file in force above a path, and of one that is proposed.
    pub(crate) async fn listed_keys(&self, path: &RepoPath) -> Result<Vec<PublicKey>, CliError> {
        let mut files: Vec<SignersFile> = Vec::new();
        if let Some(answer) = self.find(self.route(routes::GET_SIGNERS, Some(path)), FILE_BYTES).await? {
            let parsed = SignersFile::parse(&answer.bytes);
            files.push(parsed.map_err(|error| self.unusable(path, &answer, error))?);
        }
        let project = match layout::signable(path) {
            Some(Signable::PendingSigners { project }) => project,
            Some(Signable::Index) | None => path.clone(),
        };
        files.extend(self.parsed(&layout::pending_signers(&project), SignersFile::parse).await?);
        Ok(files.iter().flat_map(SignersFile::keys).collect())
    }

    /// The releases that a question in the query finds.
    pub(crate) async fn releases(&self, query: &[(&str, &str)]) -> Result<ReleasesResponse, CliError> {
        self.look_into_catalogue(self.route(routes::RELEASES, None), query, ReleasesResponse::parse).await
    }

    /// The projects that a question in the query finds.
    pub(crate) async fn projects(&self, query: &[(&str, &str)]) -> Result<ProjectsResponse, CliError> {
        self.look_into_catalogue(self.route(routes::PROJECTS, None), query, ProjectsResponse::parse).await
    }

    /// What waits for a key, as everyone may know.
    pub(crate) async fn pending_of(&self, key: &PublicKey) -> Result<KeyPendingResponse, CliError> {
        let url = self.at(routes::KEYS, [&*key.to_string(), "pending"]);
        self.look_into_catalogue(url, &[], KeyPendingResponse::parse).await
    }

    /// What everyone may know about a key.
    pub(crate) async fn key(&self, key: &PublicKey) -> Result<KeyResponse, CliError> {
        self.look_into_catalogue(self.at(routes::KEYS, [&*key.to_string()]), &[], KeyResponse::parse).await
    }

    /// What a key has signed, a part of it.
    pub(crate) async fn signed_by(
        &self,
        key: &PublicKey,
        query: &[(&str, &str)],
    ) -> Result<KeySignedResponse, CliError> {
        let url = self.at(routes::KEYS, [&*key.to_string(), "signed"]);
        self.look_into_catalogue(url, query, KeySignedResponse::parse).await
    }

    async fn look_into_catalogue<T>(
        &self,
        mut url: Url,
        query: &[(&str, &str)],
        parse: impl FnOnce(&[u8]) -> Result<T, ParseError>,
    ) -> Result<T, CliError> {
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let answer = self.get(url, ANSWER_BYTES).await?;
        parse(&answer.bytes).map_err(|error| self.unusable(&"a question", &answer, error))
    }

    /// A request that `key` signs, for an answer that `parse` reads. Every try has a nonce of its own: the server takes
    /// none twice.
    pub(crate) async fn ask<T>(
        &self,
        key: &SigningKey,
        call: ServerCall,
        parse: impl FnOnce(&[u8]) -> Result<T, ParseError>,
    ) -> Result<T, CliError> {
        let ServerCall { method, route, timeout, repetition, title, body } = call;
        let signed = || {
            let (timestamp, nonce) = (now()?.to_header(), new_nonce()?);
            let signature = key.sign(&request_digest(&timestamp, &nonce, body.as_bytes()))?;
            let request = self.http.request(method.clone(), self.route(route, None));
            Ok::<_, CliError>(
                request
                    .header(wire::HEADER_TIMESTAMP, timestamp)
                    .header(wire::HEADER_NONCE, nonce)
                    .header(wire::HEADER_SIGNATURE, signature.to_header())
                    .header(wire::HEADER_PUBLIC_KEY, key.public_key().to_string())
                    .body(body.clone()),
            )
        };
        let answer =
            self.repeat(repetition, async || exchange(signed()?, timeout, ANSWER_BYTES).await).await?;
        let answer = answer.map_err(|answer| self.refused(&answer))?;
        parse(&answer.bytes).map_err(|error| self.unusable(&title, &answer, error))
    }

    /// Asks whether the server is there, without saying who asks.
    pub(crate) async fn ping(&self) -> Result<PingResponse, CliError> {
        let answer = self.get(self.route(routes::PING, None), FILE_BYTES).await?;
        PingResponse::parse(&answer.bytes).map_err(|error| self.unusable(&"a ping", &answer, error))
    }

    /// Finds out that no server is there before a key is asked for (D244). Any answer will do.
    pub(crate) async fn check_reachable(&self) -> Result<(), CliError> {
        match self.ping().await {
            Err(error) if error.kind() == ErrorKind::Unreachable => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Checks that the server can accept changes. An error says why not.
    pub(crate) async fn check_ready(&self) -> Result<(), CliError> {
        self.get(self.route(routes::READY, None), FILE_BYTES).await.map(drop)
    }

    /// A stream of events, which has begun and has no end.
    pub(crate) async fn listen(&self, query: &ListenQuery) -> Result<Response, CliError> {
        let mut url = self.route(routes::EVENTS, None);
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
        let request = || match &query.after {
            Some(after) => self.http.get(url.clone()).header(wire::HEADER_LAST_EVENT_ID, after),
            None => self.http.get(url.clone()),
        };
        let response = self.open_stream(request).await?.map_err(|answer| self.refused(&answer))?;
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
            return Ok(response);
        }
        Err(self.unusable_event(ParseError::new("", "it is not a stream of events")))
    }

    /// An answer whose head has arrived, or a refusal. There is no limit for the whole answer, only for its head.
    async fn open_stream(
        &self,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<Result<Response, Answer>, CliError> {
        let begin = async || {
            let begun = tokio::time::timeout(ANSWER_TIMEOUT, request().send()).await;
            match begun.map_err(|_| self.silent())?? {
                response if response.status().is_success() => Ok(Ok(response)),
                response => Ok(Err(Answer::read(response, 0).await?)),
            }
        };
        self.repeat(Repetition::Harmless, begin).await
    }

    fn route(&self, route: &str, path: Option<&RepoPath>) -> Url {
        self.at(route, path.into_iter().flat_map(RepoPath::segments))
    }

    /// The address of what has these names below a route.
    fn at<'a>(&self, route: &'a str, names: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(route.split('/').skip(1)).extend(names);
        }
        url
    }

    async fn get(&self, url: Url, max_bytes: usize) -> Result<Answer, CliError> {
        self.look_up(url, max_bytes).await?.map_err(|answer| self.refused(&answer))
    }

    /// Fetches a file, or `None` if a Countersign server says that it does not exist. Any other server can answer 404
    /// too.
    async fn find(&self, url: Url, max_bytes: usize) -> Result<Option<Answer>, CliError> {
        match self.look_up(url, max_bytes).await? {
            Ok(answer) => Ok(Some(answer)),
            Err(answer) if answer.status == StatusCode::NOT_FOUND && answer.told().is_some() => Ok(None),
            Err(answer) => Err(self.refused(&answer)),
        }
    }

    async fn look_up(&self, url: Url, max_bytes: usize) -> Result<Result<Answer, Answer>, CliError> {
        let ask = async || exchange(self.http.get(url.clone()), ANSWER_TIMEOUT, max_bytes).await;
        self.repeat(Repetition::Harmless, ask).await
    }

    /// Sends a request until it succeeds, or another try is not worth it (D63). The inner error is an answer other than
    /// success.
    async fn repeat<T>(
        &self,
        repetition: Repetition,
        send: impl AsyncFn() -> Result<Result<T, Answer>, ExchangeError>,
    ) -> Result<Result<T, Answer>, CliError> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let failed = match send().await {
                Ok(Ok(done)) => return Ok(Ok(done)),
                Ok(Err(answer)) => Ok(answer),
                Err(error) => Err(error),
            };
            let pause = pauses.next().and_then(|pause| next_pause(pause, &failed, repetition));
            match (pause, failed) {
                (Some(pause), failed) => {
                    self.say_asked_to_wait(pause, failed.ok());
                    tokio::time::sleep(pause).await;
                }
                (None, Ok(answer)) => return Ok(Err(answer)),
                (None, Err(error)) => return Err(self.failed(error).await),
            }
        }
    }

    /// A pause that the server asks for is worth a word.
    fn say_asked_to_wait(&self, pause: Duration, answer: Option<Answer>) {
        if let Some(told) =
            answer.filter(|answer| answer.retry_after.is_some()).and_then(|answer| answer.told())
        {
            let (address, said, seconds) =
                (self.address(), shown_text(&told.error), pause.as_secs_f32().ceil());
            self.output.note(&format!("{address}: {said}. Asking again in {seconds} s."));
        }
    }

    /// The error if the server sends something that is not an event.
    pub(crate) fn unusable_event(&self, error: ParseError) -> CliError {
        self.unusable_content(&"events", error)
    }
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

/// A server that only a signers file names, at an address where strangers must not send this computer (D227).
fn not_asked(address: &str, refusal: &GuardRefusal) -> CliError {
    let reason = match refusal {
        GuardRefusal::NotPublic { kind, .. } => format!("it is or resolves to {kind}"),
        GuardRefusal::PlainHttp { .. } => "its address is not https".to_owned(),
        GuardRefusal::Scheme { .. } | GuardRefusal::UserInfo | GuardRefusal::Host(_) => refusal.to_string(),
    };
    CliError::usage(
        format!(
            "the project's signers file names the server {address}, which this computer does not ask: {reason}"
        ),
        format!(
            "if you know this server, name it yourself: --server {address}, or `countersign config set server`"
        ),
    )
}
