//! Shows text from outside in our messages: nothing raw that could rewrite a line, and no secret.

pub(crate) use countersign_core::values::shown::shown_text;

/// A URL without user information, query and fragment: that is where passwords and signed tokens stand.
pub(crate) fn shown_url(text: &str) -> String {
    let (bare, rest) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
    let hidden = match rest.chars().next() {
        Some('?') => "?…",
        Some(_) => "#…",
        None => "",
    };
    let (scheme, after) = bare.split_at(bare.find("://").map_or(0, |at| at + 3));
    // Without a scheme it is no form that we know, so a password may stand anywhere before an `@`.
    let end = after.find(['/', '\\']).filter(|_| !scheme.is_empty()).unwrap_or(after.len());
    let shown = match after[..end].rfind('@') {
        Some(at) => format!("{scheme}…{}{hidden}", &after[at..]),
        None => format!("{bare}{hidden}"),
    };
    shown_text(&shown)
}
