//! How text from outside appears in our messages: nothing raw that could rewrite a line, and no secret.

pub(crate) use countersign_core::values::shown::shown_text;

/// A URL without user information, query and fragment: that is where passwords and signed tokens stand.
pub(crate) fn shown_url(text: &str) -> String {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let (bare, rest) = text.split_at(end);
    let hidden = match rest.chars().next() {
        Some('?') => "?…",
        Some(_) => "#…",
        None => "",
    };
    shown_text(&format!("{}{hidden}", hide_user_info(bare)))
}

fn hide_user_info(text: &str) -> String {
    let (scheme, rest, end) = match text.find("://") {
        Some(at) => {
            let (scheme, rest) = text.split_at(at + 3);
            (scheme, rest, rest.find(['/', '\\']).unwrap_or(rest.len()))
        }
        // Not a form that we know, so a password may stand anywhere before an `@`.
        None => ("", text, text.len()),
    };
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}…{}", &rest[at..]),
        None => text.to_owned(),
    }
}
