//! A route, as the reference shows it.

use super::endpoint::Endpoint;

#[derive(Debug, Clone)]
pub struct Row {
    pub method: Verb,
    /// With `{path}` for the rest of it.
    pub path: String,
    pub endpoint: Endpoint,
}

/// Every GET is also a HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
}

impl Verb {
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}
