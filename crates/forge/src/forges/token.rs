//! A forge's access token, which no text of ours ever shows.

use std::fmt;

use thiserror::Error;

#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TokenError {
    #[error("the token is empty")]
    Empty,
    #[error("the token has a space, a line break or another character that is not printable ASCII")]
    Characters,
}

impl Token {
    pub fn new(text: String) -> Result<Self, TokenError> {
        if text.is_empty() {
            return Err(TokenError::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        Ok(Self(text))
    }

    /// For the one request header that it is meant for.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
