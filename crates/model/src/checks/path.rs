//! Mirror-relative paths (D6), checked against a second implementation of the rules.

use countersign_core::{
    documents::layout,
    values::{path::RepoPath, shown::is_unseen},
};
use countersign_server::routing::tail::parse_tail;

use super::promises::assert_path;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = RepoPath::parse(text);
    check_tail(text);
    assert_eq!(parsed.as_ref().ok().map(RepoPath::as_str), normalise(text).as_deref(), "{text:?}");
    let Ok(path) = parsed else { return };
    assert_path(&path);
    check_relations(&path);
    // The server stores only under paths of URLs, which have a scheme, a host and a port.
    let is_on_server =
        matches!(path.segments().next(), Some("http" | "https")) && path.segments().count() >= 3;
    if is_on_server && path.check_storable_dir().is_ok() {
        check_storable(&path);
    }
}

/// A path inside the target of a request is decoded once.
fn check_tail(text: &str) {
    let Ok(path) = parse_tail(text) else { return };
    assert_path(&path);
    let encoded: String = path.as_str().bytes().map(|byte| format!("%{byte:02X}")).collect();
    assert_eq!(parse_tail(&encoded).expect("every path can be encoded"), path);
    if !text.contains('%') {
        assert_eq!(RepoPath::parse(text), Ok(path));
    }
}

/// Normalises a path by the rules of D6.
fn normalise(text: &str) -> Option<String> {
    const MAX_BYTES: usize = 1_024;
    let text = text.strip_suffix('/').unwrap_or(text);
    let mut segments: Vec<String> = text.split('/').map(str::to_owned).collect();
    let is_bad = |segment: &String| {
        let has_bad_char = segment.chars().any(|c| c == '\\' || c.is_control());
        segment.is_empty() || segment == "." || segment == ".." || has_bad_char
    };
    if segments.iter().any(is_bad) || segments.iter().any(|s| s.eq_ignore_ascii_case(".git")) {
        return None;
    }
    let scheme = segments[0].to_ascii_lowercase();
    if scheme == "http" || scheme == "https" {
        if segments.len() > 1 {
            segments[1] = segments[1].to_ascii_lowercase();
            let port = segments.get(2).and_then(|port| port.parse::<u32>().ok().map(|n| (n, port)));
            let is_port = port.is_some_and(|(n, text)| (1..=65_535).contains(&n) && n.to_string() == *text);
            if !is_port {
                let default = if scheme == "http" { "80" } else { "443" };
                segments.insert(2, default.to_owned());
            }
        }
        segments[0] = scheme;
    }
    let joined = segments.join("/");
    (text.len() <= MAX_BYTES && joined.len() <= MAX_BYTES && segments.len() <= 64).then_some(joined)
}

fn check_relations(path: &RepoPath) {
    let ancestors: Vec<RepoPath> = path.self_and_ancestors().collect();
    assert_eq!(ancestors.len(), path.segments().count());
    for ancestor in &ancestors[1..] {
        assert!(path.is_inside(ancestor) && !ancestor.is_inside(path));
    }
    assert!(!path.is_inside(path));
    assert_eq!(path.segments().next_back(), Some(path.file_name()));
    if let Some(behind) = layout::signable_behind(path) {
        assert_eq!(behind.parent(), path.parent());
    }
    if let Some(project) = layout::project_with_signers_at(path) {
        assert!(path.is_inside(&project));
    }
    if let Some(project) = layout::project_of_active_signers(path) {
        assert_eq!(layout::active_signers(&project), *path);
    }
}

/// Checks a path where strangers can make the server store files. Clients can ask for every file there.
fn check_storable(path: &RepoPath) {
    for name in path.segments().skip(3) {
        let lower = name.to_ascii_lowercase();
        assert!(!lower.starts_with("svc.") && !lower.starts_with(".git\u{0}"), "{name:?}");
        assert!(name.len() <= 200 && !name.ends_with(['.', ' ']), "{name:?}");
        assert!(!name.chars().any(is_unseen), "{name:?}");
        let git_names = [".git", ".gitmodules", ".gitattributes", ".gitignore", ".mailmap", "git~1"];
        assert!(!git_names.contains(&lower.as_str()), "{name:?}");
    }
    let index = layout::index_in(path);
    let deepest = [
        layout::request_of(&layout::revocation_of(&index)),
        layout::pending_revocation_signatures_of(&index),
        layout::registration_of(&layout::superseded_signers(
            path,
            &countersign_core::values::digest::Sha512::of(b""),
        )),
        layout::history(path),
        layout::history_entry(path, 999_999),
    ];
    deepest.iter().for_each(assert_path);
}
