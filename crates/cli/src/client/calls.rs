//! The requests that are signed.

use std::time::Duration;

use countersign_api::requests::{AssetsBody, ProposeBody, SignaturesBody, SignedStatement, WithdrawBody};
use countersign_core::documents::statement::StatementKind;
use countersign_core::values::wire::routes;
use reqwest::Method;
use serde::Serialize;

use super::{attempts::Repetition, exchange::ANSWER_TIMEOUT};
use crate::error::CliError;

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
}

impl ServerCall<'_> {
    pub(super) fn form(self) -> CallForm {
        let (method, route, timeout) = match self {
            Self::Ping => (Method::GET, routes::PING, ANSWER_TIMEOUT),
            Self::Register(_) => (Method::POST, routes::REGISTER_REPO, FETCH_TIMEOUT),
            Self::Update(_) => (Method::POST, routes::UPDATE_SIGNERS, FETCH_TIMEOUT),
            Self::Signatures(_) => (Method::POST, routes::SIGNATURES, ANSWER_TIMEOUT),
            Self::Assets(_) => (Method::POST, routes::ASSETS, RELEASE_TIMEOUT),
            Self::Withdraw(_) => (Method::POST, routes::WITHDRAW, ANSWER_TIMEOUT),
            Self::State(statement) => {
                let route = match statement.kind {
                    StatementKind::Revocation => routes::REVOKE,
                    StatementKind::Veto => routes::VETO,
                    StatementKind::Objection => routes::OBJECT,
                };
                (Method::POST, route, ANSWER_TIMEOUT)
            }
        };
        CallForm { method, route, timeout }
    }

    /// What messages call it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Ping => "a ping",
            Self::Register(_) => "a registration",
            Self::Update(_) => "an update of signers",
            Self::Signatures(_) => "a signature",
            Self::Assets(_) => "a release",
            Self::Withdraw(_) => "a withdrawal",
            Self::State(statement) => statement.kind.title(),
        }
    }

    pub(super) fn repetition(self) -> Repetition {
        match self {
            Self::Ping | Self::Signatures(_) | Self::Withdraw(_) | Self::State(_) => Repetition::Harmless,
            Self::Register(_) | Self::Update(_) | Self::Assets(_) => Repetition::Harmful,
        }
    }

    pub(super) fn body(self) -> Result<String, CliError> {
        match self {
            Self::Ping => Ok(String::new()),
            Self::Register(body) | Self::Update(body) => to_json(body),
            Self::Signatures(body) => to_json(body),
            Self::Assets(body) => to_json(body),
            Self::Withdraw(body) => to_json(body),
            Self::State(statement) => to_json(statement),
        }
    }
}

fn to_json(body: &impl Serialize) -> Result<String, CliError> {
    serde_json::to_string(body)
        .map_err(|error| CliError::other("the request cannot be written", "report this").because(error))
}
