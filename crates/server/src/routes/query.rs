//! Questions: the parameters behind the question mark, and how an answer is sent.

use std::{borrow::Cow, fmt::Display};

use axum::response::Response;
use countersign_core::values::shown::shown_text;
use serde::Serialize;
use url::form_urlencoded;

use super::files::{JSON, sized};
use crate::{error::ApiError, origin::RequestOrigin, state::App};

/// Each known parameter at most once.
pub(super) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    pub(super) fn parse(text: &'a str, known: &[&str]) -> Result<Self, ApiError> {
        let mut fields: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            if !known.contains(&name.as_ref()) {
                let message = format!("`{}` is not one of `{}`", shown_text(&name), known.join("`, `"));
                return Err(ApiError::bad_request(message));
            }
            if fields.iter().any(|(given, _)| *given == name) {
                return Err(ApiError::bad_request(format!("{name}: given more than once")));
            }
            fields.push((name, value));
        }
        Ok(Self(fields))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_ref())
    }
}

/// An answer, which waits for room if it is large (D45).
pub(super) async fn send(
    app: &App,
    answer: &impl Serialize,
    origin: Option<&RequestOrigin>,
) -> Result<Response, ApiError> {
    let answer = serde_json::to_vec(answer).expect("lists of text and numbers are always JSON");
    let length = answer.len();
    Ok(sized(app.sending.body(answer.into(), origin).await?, JSON, length))
}

/// A parameter whose value is refused.
pub(super) fn bad<E: Display>(name: &str) -> impl Fn(E) -> ApiError {
    move |error| ApiError::bad_request(format!("{name}: {error}"))
}
