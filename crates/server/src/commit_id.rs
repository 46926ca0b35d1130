//! The id of a commit, as a client names it.

use countersign_store::ObjectId;

use crate::error::ApiError;

/// In either letter case. `name` is the parameter or header that it stands in.
pub(crate) fn parse_commit_id(name: &str, text: &str) -> Result<ObjectId, ApiError> {
    let is_hex = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parsed = ObjectId::from_hex(text.to_ascii_lowercase().as_bytes()).ok();
    parsed.filter(|_| is_hex).ok_or_else(|| {
        ApiError::invalid_parameter(format!("{name}: must be the id of a commit, of 40 hexadecimal digits"))
    })
}
