//! What went wrong between this client and a server, in the client's words: one cause, one next step.

use std::{error::Error, fmt::Display, io};

use countersign_core::values::{json::ParseError, shown::shown_text, shown::shown_within, wire::routes::API};
use countersign_forge::{guard::find_refusal, https::TlsProblem, https::find_tls_problem};
use serde_json::json;

use crate::client::advice::{advise, is_fetched, to_client_words};
use crate::client::{ServerClient, attempts::Answer, attempts::ExchangeError, not_asked};
use crate::words::error::{CliError, ErrorKind};

/// The longest refusals name a key and two paths, and say what to do.
const SAID_CHARS: usize = 1000;
/// What of the command line and the settings names the server.
pub(crate) const CHECK_SERVER: &str = "check --server (COUNTERSIGN_SERVER, `countersign config`)";

impl ServerClient {
    /// An answer other than success.
    pub(super) fn refused(&self, answer: &Answer) -> CliError {
        let address = self.address();
        let status = answer.status.as_u16();
        if answer.status.is_redirection() {
            let target = answer.location.as_deref().unwrap_or_default();
            let other = target.split(&format!("{API}/")).next().unwrap_or(target);
            return CliError::other(
                format!("the server {address} redirects to {other}"),
                format!("redirects are not followed: if you trust that address, use {other} with --server"),
            );
        }
        let Some(told) = answer.told() else { return self.refused_by_stranger(answer) };
        let said = shown_within(&to_client_words(&told.error), SAID_CHARS);
        let code = told.known_code();
        let (kind, hint) = advise(code, status);
        let did = match status {
            401 => "does not accept your signature on the request",
            404 => "does not have it",
            429 => "asks you to wait",
            400..500 => "refuses this",
            502..=504 => "cannot answer now",
            500 if is_fetched(code) => "cannot use what it was told to fetch",
            _ => "failed",
        };
        let mut error = CliError::new(kind, format!("the server {address} {did}: {said}"), hint)
            .with_detail("status", json!(status));
        if let Some(code) = told.code {
            if status == 409 {
                error = error.with_detail("conflict", json!(code));
            }
            error = error.with_detail("code", json!(code));
        }
        error.with_request_id(answer.request_id.as_deref())
    }

    /// Every error of a Countersign server has a text of its own.
    fn refused_by_stranger(&self, answer: &Answer) -> CliError {
        let status = answer.status.as_u16();
        if self.base.scheme() == "http" && String::from_utf8_lossy(&answer.bytes).contains("HTTPS port") {
            return self.speaks_https();
        }
        let error = match status {
            429 | 502..=504 => CliError::unreachable(
                format!("a proxy in front of {} answers {status}", self.address()),
                "run it again in a few minutes; if that does not help, tell the server's operator",
            ),
            _ => self.not_countersign(answer),
        };
        error.with_detail("status", json!(status)).with_request_id(answer.request_id.as_deref())
    }

    fn not_countersign(&self, answer: &Answer) -> CliError {
        let what = if answer.is_web_page() { "with a web page" } else { "with an unknown answer" };
        CliError::other(
            format!(
                "{} is not a Countersign server: it answers {} {what}",
                self.address(),
                answer.status.as_u16()
            ),
            format!("{CHECK_SERVER}: `countersign ping --server URL` tries an address"),
        )
    }

    /// An answer that is not what it must be.
    pub(super) fn unusable(&self, what: &impl Display, answer: &Answer, error: ParseError) -> CliError {
        if answer.is_web_page() {
            return self.not_countersign(answer).with_kind(ErrorKind::Verification).because(error);
        }
        self.unusable_content(what, error).with_request_id(answer.request_id.as_deref())
    }

    pub(crate) fn unusable_content(&self, what: &impl Display, error: ParseError) -> CliError {
        CliError::unverified(
            format!("the server {} gives an answer for {what} that cannot be used", self.address()),
            "check that --server is a Countersign server; if it is, do not trust it",
        )
        .because(error)
    }

    pub(super) async fn failed(&self, error: ExchangeError) -> CliError {
        match error {
            ExchangeError::TooLong { max_bytes } => CliError::unverified(
                format!("the server {} answers with more than {max_bytes} bytes", self.address()),
                "no honest answer is that long: check --server",
            ),
            ExchangeError::Transport(error) => self.unreachable(&error).await,
            ExchangeError::Other(error) => error,
        }
    }

    pub(super) async fn unreachable(&self, error: &reqwest::Error) -> CliError {
        if let Some(problem) = find_tls_problem(error) {
            return self.untrusted(problem);
        }
        if let Some(refusal) = find_refusal(error) {
            return not_asked(&self.address(), refusal);
        }
        // Something is there that does not speak HTTP: it may speak https.
        if self.base.scheme() == "http" && !error.is_connect() && !error.is_timeout() && self.is_https().await
        {
            return self.speaks_https();
        }
        let innermost =
            std::iter::successors(Some(error as &(dyn Error + 'static)), |error| (*error).source()).last();
        let address = self.address();
        if error.is_timeout() {
            return self.silent();
        }
        let refused = innermost.and_then(|error| error.downcast_ref::<io::Error>());
        let is_refused = refused.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        let hint = if is_refused {
            format!("nothing listens there: {CHECK_SERVER}")
        } else {
            format!("check the network, and {CHECK_SERVER}")
        };
        let reason = innermost.map(|error| shown_text(&error.to_string())).unwrap_or_default();
        CliError::unreachable(format!("the server {address} cannot be reached"), hint).because(reason)
    }

    pub(super) fn silent(&self) -> CliError {
        CliError::unreachable(
            format!("the server {} does not answer in time", self.address()),
            format!("check the network, and {CHECK_SERVER}"),
        )
    }

    fn untrusted(&self, problem: TlsProblem) -> CliError {
        const OWN_AUTHORITY: &str =
            "if it has its own certificate authority, name the authority's file: SSL_CERT_FILE=FILE";
        let address = self.address();
        let (reason, hint) = match problem {
            TlsProblem::NotTls => {
                let plain = address.replacen("https://", "http://", 1);
                return CliError::unreachable(
                    format!("{address} does not speak https at this port"),
                    format!(
                        "if it is a server that you trust on your own network, use {plain} with --server"
                    ),
                );
            }
            TlsProblem::UnknownIssuer => {
                ("no authority that this computer trusts has signed it".to_owned(), OWN_AUTHORITY)
            }
            TlsProblem::Expired => (
                "it has expired".to_owned(),
                "check this computer's clock; if it is right, the server's operator must renew the certificate",
            ),
            TlsProblem::NotValidYet => ("it is not valid yet".to_owned(), "check this computer's clock"),
            TlsProblem::OtherName => (
                "it is for another name".to_owned(),
                "check the name in --server; it must be the one that the certificate is for",
            ),
            TlsProblem::AuthorityAsServer => (
                "it is the certificate of an authority, not of a server".to_owned(),
                "the server's operator makes another one, which SSL_CERT_FILE can then name: add `-addext \
                 basicConstraints=critical,CA:FALSE` to `openssl req -x509`",
            ),
            TlsProblem::Other(reason) => (shown_text(&reason), OWN_AUTHORITY),
        };
        CliError::unreachable(format!("the certificate of {address} is not accepted"), hint).because(reason)
    }

    /// Whether the port of an http address answers a TLS handshake.
    async fn is_https(&self) -> bool {
        let mut url = self.base.clone();
        let port = url.port_or_known_default();
        if url.set_scheme("https").and_then(|()| url.set_port(port)).is_err() {
            return false;
        }
        let asked = self.http.get(url).timeout(crate::client::CONNECT_TIMEOUT).send().await;
        asked.map_or_else(
            |error| find_tls_problem(&error).is_some_and(|problem| problem != TlsProblem::NotTls),
            |_| true,
        )
    }

    fn speaks_https(&self) -> CliError {
        let secure = self.address().replacen("http://", "https://", 1);
        CliError::unreachable(
            format!("{} speaks https at this port, not http", self.address()),
            format!("use {secure} with --server"),
        )
    }
}
