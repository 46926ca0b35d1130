//! The parameters behind the question mark.

use std::{borrow::Cow, fmt::Display};

use countersign_core::values::shown::shown_text;
use url::form_urlencoded;

use crate::error::ApiError;

/// Each known parameter at most once.
pub(crate) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    pub(crate) fn parse(text: &'a str, known: &[&str]) -> Result<Self, ApiError> {
        let mut fields: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            if !known.contains(&name.as_ref()) {
                let (name, known) = (shown_text(&name), known.join("`, `"));
                return Err(ApiError::invalid_parameter(format!("`{name}` is not one of `{known}`")));
            }
            if fields.iter().any(|(given, _)| *given == name) {
                return Err(ApiError::invalid_parameter(format!("{name}: given more than once")));
            }
            fields.push((name, value));
        }
        Ok(Self(fields))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_ref())
    }
}

/// A parameter whose value is refused.
pub(crate) fn bad<E: Display>(name: &str) -> impl Fn(E) -> ApiError {
    move |error| ApiError::invalid_parameter(format!("{name}: {error}"))
}
