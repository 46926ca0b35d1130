//! Signers in words, as messages and pages name them.

use countersign_core::{
    documents::signers::{Group, Signer},
    values::shown::{plural, quoted, shown_text},
};

/// A name never stands without its key (D39).
pub fn shown_signer(signer: &Signer) -> String {
    match shown_signer_name(signer) {
        None => signer.key.to_string(),
        Some(name) => format!("{name} ({})", signer.key),
    }
}

/// The name alone, for where the key stands beside it. One that is more than a plain word is quoted: it could otherwise
/// read as part of our sentence, or bring along a key of its own choice.
pub fn shown_signer_name(signer: &Signer) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+');
    let name = signer.name.as_deref().filter(|name| !name.is_empty())?;
    Some(if name.chars().all(is_plain) { shown_text(name) } else { quoted(name) })
}

pub fn shown_signers(signers: &[Signer]) -> String {
    signers.iter().map(shown_signer).collect::<Vec<_>>().join(", ")
}

/// Shows a group, as in `any 2 of 3 keys: alice (svc-pub:…), …`.
pub fn shown_group(group: &Group) -> String {
    let Group { threshold, signers } = group;
    format!("{}: {}", rule_text(*threshold, signers.len()), shown_signers(signers))
}

pub fn shown_groups(groups: &[Group]) -> String {
    groups.iter().map(shown_group).collect::<Vec<_>>().join("; and ")
}

/// Says what a group needs, as in `any 2 of 3 keys`.
pub fn rule_text(threshold: usize, size: usize) -> String {
    format!("any {threshold} of {size} key{}", plural(size))
}
