//! The requests that are signed.

use std::time::Duration;

use countersign_api::requests::{AssetsBody, ProposeBody, SignaturesBody, SignedStatement, WithdrawBody};
use countersign_core::{documents::statement::StatementKind, values::wire::routes};
use reqwest::Method;
use serde::Serialize;

use crate::{client::attempts::ANSWER_TIMEOUT, client::attempts::Repetition, words::error::CliError};

/// How long the server may take to fetch a signers file from a forge.
const FETCH_TIMEOUT: Duration = Duration::from_secs(150);
/// How long the server may take to download all assets of a release.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);

#[derive(Debug, Clone, Copy)]
pub(crate) enum ServerCall<'a> {
    Ping,
    Register(&'a ProposeBody),
    Update(&'a ProposeBody),
    Signatures(&'a SignaturesBody),
    Assets(&'a AssetsBody),
    Withdraw(&'a WithdrawBody),
    State(&'a SignedStatement),
}

/// How a request is sent.
pub(super) struct CallForm {
    pub(super) method: Method,
    pub(super) route: &'static str,
    pub(super) timeout: Duration,
    pub(super) repetition: Repetition,
    /// The name of the request in messages.
    pub(super) title: &'static str,
    pub(super) body: String,
}

impl CallForm {
    /// A request that can be sent again, and is answered soon.
    fn post(
        route: &'static str,
        title: &'static str,
        body: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        let body = serde_json::to_string(body)?;
        let (method, timeout, repetition) = (Method::POST, ANSWER_TIMEOUT, Repetition::Harmless);
        Ok(Self { method, route, timeout, repetition, title, body })
    }

    /// A request for which the server fetches something.
    fn fetching(self, timeout: Duration) -> Self {
        Self { timeout, repetition: Repetition::Harmful, ..self }
    }
}

impl ServerCall<'_> {
    pub(super) fn form(self) -> Result<CallForm, CliError> {
        let form = match self {
            Self::Ping => Ok(CallForm {
                method: Method::GET,
                route: routes::PING,
                timeout: ANSWER_TIMEOUT,
                repetition: Repetition::Harmless,
                title: "a ping",
                body: String::new(),
            }),
            Self::Register(body) => CallForm::post(routes::REGISTER_REPO, "a registration", body)
                .map(|form| form.fetching(FETCH_TIMEOUT)),
            Self::Update(body) => CallForm::post(routes::UPDATE_SIGNERS, "an update of signers", body)
                .map(|form| form.fetching(FETCH_TIMEOUT)),
            Self::Assets(body) => {
                CallForm::post(routes::ASSETS, "a release", body).map(|form| form.fetching(RELEASE_TIMEOUT))
            }
            Self::Signatures(body) => CallForm::post(routes::SIGNATURES, "a signature", body),
            Self::Withdraw(body) => CallForm::post(routes::WITHDRAW, "a withdrawal", body),
            Self::State(statement) => {
                let route = match statement.kind {
                    StatementKind::Revocation => routes::REVOKE,
                    StatementKind::Veto => routes::VETO,
                    StatementKind::Objection => routes::OBJECT,
                };
                CallForm::post(route, statement.kind.title(), statement)
            }
        };
        form.map_err(|error| CliError::other("the request cannot be written", "report this").because(error))
    }
}
