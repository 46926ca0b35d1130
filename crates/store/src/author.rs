//! Who makes the commits.

use thiserror::Error;

/// A name and an address that Git accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    pub(crate) name: String,
    pub(crate) email: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the author's {field} is empty, or has a control character, `<` or `>`")]
pub struct AuthorError {
    field: &'static str,
}

impl Author {
    pub fn new(name: &str, email: &str) -> Result<Self, AuthorError> {
        for (field, text) in [("name", name), ("email", email)] {
            // Git would drop these silently, or write a commit that its own fsck rejects.
            let forbidden = text.contains(|c: char| c.is_control() || matches!(c, '<' | '>'));
            if forbidden || text.trim() != text || text.is_empty() {
                return Err(AuthorError { field });
            }
        }
        Ok(Self { name: name.to_owned(), email: email.to_owned() })
    }
}
