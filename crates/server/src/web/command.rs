//! Commands to paste. Text from strangers is one quoted word, and never contains invisible characters.

use countersign_core::values::shown::shown_text;

/// The word where the visitor has to fill in the address of the server.
const UNKNOWN_SERVER: &str = "SERVER";

/// The command `countersign VERB SUBJECT --server ORIGIN`; `None` if the shell would run something other than the page
/// shows.
pub fn client(verb: &str, subject: &str, origin: Option<&str>) -> Option<String> {
    let is_plain = !subject.starts_with('-') && shown_text(subject) == subject;
    let server = origin.unwrap_or(UNKNOWN_SERVER);
    is_plain.then(|| format!("countersign {verb} {} --server {server}", quote(subject)))
}

/// Quotes one word for a POSIX shell.
pub fn quote(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | ':' | '+' | '@');
    if !text.is_empty() && text.chars().all(is_safe) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
