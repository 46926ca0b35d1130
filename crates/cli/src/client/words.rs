//! What a server says, for people who type commands and never see a request.

use countersign_forge::guard::GuardRefusal;

use crate::words::error::{CliError, replace_where};

/// Names of the API, and what a user of this client calls them.
const WORDS: [(&str, &str); 16] = [
    ("POST /v1/register_repo", "`countersign register`"),
    ("POST /v1/update_signers", "`countersign update`"),
    ("POST /v1/signatures", "`countersign sign`"),
    ("POST /v1/assets", "`countersign release`"),
    ("POST /v1/revoke", "`countersign revoke`"),
    ("POST /v1/withdraw", "`countersign withdraw`"),
    ("POST /v1/object", "`countersign object`"),
    ("POST /v1/veto", "`countersign veto`"),
    ("veto_json", "the veto"),
    ("forge_release_url", "the release's page"),
    ("csum_files", "--checksums"),
    ("signers_file_url", "the signers file's URL"),
    ("revocation_json", "the revocation"),
    ("objection_json", "the objection"),
    ("subject_digest", "the digest of what was shown"),
    ("public_key", "the key"),
];

pub(super) fn to_client_words(said: &str) -> String {
    WORDS.iter().fold(said.to_owned(), |said, (word, meaning)| replace_word(&said, word, meaning))
}

/// Replaces a word where it stands alone. A part of a path stays as it is.
fn replace_word(text: &str, word: &str, meaning: &str) -> String {
    let opens = |c: char| c.is_whitespace() || "(\"'`".contains(c);
    let closes = |c: char| c.is_whitespace() || ":,;.)\"'`".contains(c);
    replace_where(text, word, meaning, |before, behind| {
        before.chars().next_back().is_none_or(opens) && behind.chars().next().is_none_or(closes)
    })
}

/// A server that only a signers file names, at an address where strangers must not send this computer (D227).
pub(super) fn not_asked(address: &str, refusal: &GuardRefusal) -> CliError {
    let reason = match refusal {
        GuardRefusal::NotPublic { kind, .. } => format!("it is or resolves to {kind}"),
        GuardRefusal::PlainHttp { .. } => "its address is not https".to_owned(),
        GuardRefusal::Scheme { .. } | GuardRefusal::UserInfo | GuardRefusal::Host(_) => refusal.to_string(),
    };
    CliError::usage(
        format!(
            "the project's signers file names the server {address}, which this computer does not ask: {reason}"
        ),
        format!(
            "if you know this server, name it yourself: --server {address}, or `countersign config set server`"
        ),
    )
}
