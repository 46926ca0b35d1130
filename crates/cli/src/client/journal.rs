//! The journal of a server.

use countersign_api::error_code::ErrorCode;
use countersign_core::values::{
    json::ParseError,
    wire::{self, routes},
};
use countersign_store::ObjectId;
use reqwest::{Response, StatusCode};

use super::{
    ServerClient,
    attempts::{Attempts, Repetition},
    exchange::{ANSWER_TIMEOUT, Answer, ExchangeError},
};
use crate::error::CliError;

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
        let mut attempts = Attempts::default();
        let outcome = loop {
            // There is no limit for the whole answer, only for its head.
            let sent = tokio::time::timeout(ANSWER_TIMEOUT, self.http.get(url.clone()).send()).await;
            let outcome = match sent.map_err(|_| self.silent())? {
                Ok(response) if response.status().is_success() => {
                    return self.begin_journal(response).map(Some);
                }
                Ok(response) => Answer::read(response, 0).await,
                Err(error) => Err(ExchangeError::Transport(error)),
            };
            if !self.try_again(&mut attempts, &outcome, Repetition::Harmless).await {
                break outcome;
            }
        };
        let answer = match outcome {
            Ok(answer) => answer,
            Err(error) => return Err(self.failed(error).await),
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
