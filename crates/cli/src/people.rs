//! Signers in the words of this client: names first, in the order of the signers file, and the user marked.

use countersign_core::values::{key::PublicKey, time::Timestamp};
use countersign_explain::progress::{GroupProgress, Names};
use countersign_explain::signers::shown_signer;

/// Who is who, and which of them the user is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct People<'a> {
    pub(crate) names: &'a Names,
    pub(crate) you: Option<PublicKey>,
}

impl People<'_> {
    pub(crate) fn name(&self, key: PublicKey) -> String {
        let you = if self.you == Some(key) { " (you)" } else { "" };
        format!("{}{you}", shown_signer(&self.names.signer(key)))
    }

    pub(crate) fn list(&self, keys: impl IntoIterator<Item = PublicKey>) -> String {
        let signers = self.names.in_order(keys).into_iter();
        signers.map(|signer| self.name(signer.key)).collect::<Vec<_>>().join(", ")
    }

    /// The same, where there may be none.
    pub(crate) fn list_or(&self, keys: impl IntoIterator<Item = PublicKey>, none: &str) -> String {
        let listed = self.list(keys);
        if listed.is_empty() { none.to_owned() } else { listed }
    }

    pub(crate) fn list_missing(&self, group: &GroupProgress) -> String {
        self.list(group.not_signed().map(|member| member.signer.key))
    }
}

/// As in `2026-02-01 10:00:00 UTC`.
pub(crate) fn when_text(at: Timestamp) -> String {
    let exact = at.to_whole_seconds().to_string();
    exact.replacen('T', " ", 1).replacen('Z', " UTC", 1)
}
