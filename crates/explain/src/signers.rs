//! Signers in words, as messages and pages name them.

use countersign_core::{
    documents::signers::{Group, Role, Signer, SignersFile},
    values::{
        key::PublicKey,
        shown::{quoted, shown_text},
    },
};

/// The key with its name, wherever in the file that stands: not every entry of a key has to repeat it. An empty name is
/// none.
pub fn named_signer(file: &SignersFile, key: PublicKey) -> Signer {
    let groups = Role::ALL.into_iter().filter_map(|role| file.explicit_groups(role)).flatten();
    let listed = groups.flat_map(|group| &group.signers).chain(file.registrars());
    let mut entries = listed.filter(|signer| signer.key == key);
    let name = entries.find_map(|signer| signer.name.clone().filter(|name| !name.is_empty()));
    Signer { key, name }
}

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

/// As in `any 2 of 3 keys: alice (svc-pub:…), …`.
pub fn shown_group(group: &Group) -> String {
    let Group { threshold, signers } = group;
    format!("{}: {}", rule_text(*threshold, signers.len()), shown_signers(signers))
}

pub fn shown_groups(groups: &[Group]) -> String {
    groups.iter().map(shown_group).collect::<Vec<_>>().join("; and ")
}

/// As in `any 2 of 3 keys`: what a group needs.
pub fn rule_text(threshold: usize, size: usize) -> String {
    format!("any {threshold} of {size} key{}", plural(size))
}

pub fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
