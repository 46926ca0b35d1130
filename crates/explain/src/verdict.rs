//! The verdict on a release in one line, and its progress, in the same words everywhere (D238, D240).

use countersign_core::documents::{layout, signers::Signer};
use countersign_core::rules::quorum::Tally;
use countersign_core::values::{path::RepoPath, shown::marked_name, shown::quoted};

use crate::progress::GroupProgress;
use crate::words::shown_signer_name;

/// What speaks against a release that is not revoked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubts {
    /// How far a revocation has come that waits for more signatures, and its reason.
    pub begun: Option<(Tally, String)>,
    /// What signers hold against it, the oldest first.
    pub objections: Vec<String>,
}

impl Doubts {
    /// Says the gravest doubt, as in `1 of 2 revokers want it revoked: "wrong build"`.
    pub fn text(&self) -> Option<String> {
        if let Some((tally, reason)) = &self.begun {
            let Tally { collected, needed } = tally;
            return Some(format!("{collected} of {needed} revokers want it revoked: {}", quoted(reason)));
        }
        let first = quoted(self.objections.first()?);
        Some(match self.objections.len() {
            1 => format!("1 signer objects: {first}"),
            many => format!("{many} signers object: {first}"),
        })
    }
}

/// A path as an address, as in `https://github.com/acme/app`. Letters that can look like others are marked.
pub fn shown_url(path: &RepoPath) -> String {
    let mut segments = path.as_str().splitn(4, '/');
    let (scheme, host, port) = (segments.next(), segments.next(), segments.next());
    let (Some(scheme), Some(host), Some(port)) = (scheme, host, port) else {
        return marked_name(path.as_str());
    };
    let origin = match (scheme, port) {
        ("http", "80") | ("https", "443") => format!("{scheme}://{host}"),
        ("http" | "https", port) => format!("{scheme}://{host}:{port}"),
        _ => return marked_name(path.as_str()),
    };
    marked_name(&segments.next().map_or(origin.clone(), |rest| format!("{origin}/{rest}")))
}

/// A release by its name and its project, as in `v1.1 of https://github.com/acme/app`.
pub fn shown_release(index: &RepoPath, project: &RepoPath) -> String {
    format!("{} of {}", marked_name(&layout::release_name(index, project)), shown_url(project))
}

/// Says what a group of signers has, what it lacks and from whom, as in `has 1 of 2; 1 more from bob or carol`.
pub fn standing_text(group: &GroupProgress) -> String {
    let Tally { collected, needed } = group.tally();
    let missing: Vec<&Signer> = group.not_signed().map(|member| &member.signer).collect();
    let has = format!("has {collected} of {needed}");
    match needed - collected {
        0 => has,
        more => format!(
            "{has}; {more} more from {}",
            list_names(&missing, if missing.len() == more { "and" } else { "or" })
        ),
    }
}

/// The most names in one line. The others are counted.
const MOST_NAMES: usize = 6;

fn list_names(signers: &[&Signer], word: &str) -> String {
    let name = |signer: &&Signer| shown_signer_name(signer).unwrap_or_else(|| short_key(signer));
    let mut names: Vec<String> = signers.iter().take(MOST_NAMES).map(name).collect();
    if signers.len() > MOST_NAMES {
        names.push(format!("{} others", signers.len() - MOST_NAMES));
    }
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} {word} {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// A key by its first and last characters, as in `svc-pub:ppnb…7Yko`.
fn short_key(signer: &Signer) -> String {
    let key = signer.key.to_string();
    let (start, end) = (key.get(..12), key.get(key.len().saturating_sub(4)..));
    start.zip(end).map_or(key.clone(), |(start, end)| format!("{start}…{end}"))
}
