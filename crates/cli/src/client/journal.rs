//! The journal of a server.

use countersign_api::error_code::ErrorCode;
use countersign_core::values::json::ParseError;
use countersign_core::values::wire::{self, routes};
use countersign_store::ObjectId;
use reqwest::{Response, StatusCode};

use super::ServerClient;
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
