//! What the path of a signers file's page says: the repository, and the ways to read a branch and a path from it.

use countersign_core::values::wire;

use super::kind::ForgeKind;
use crate::{shown::shown_text, url::UrlProblem};

/// A signers file on a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BranchFile {
    pub(super) branch: Vec<String>,
    pub(super) path: Vec<String>,
}

/// Where a URL points: GitHub's raw host has no `blob` in its paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServedBy {
    Forge,
    RawHost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SignersPage {
    pub(super) project: Vec<String>,
    /// At least one. Two where a last directory may belong to the branch's name or to the path.
    pub(super) places: Vec<BranchFile>,
}

pub(super) fn read_page(
    kind: ForgeKind,
    segments: &[&str],
    served_by: ServedBy,
) -> Result<SignersPage, UrlProblem> {
    let malformed = UrlProblem::SignersForm { form: expected_form(kind, served_by) };
    let (project, rest) = match (kind, segments) {
        (ForgeKind::Github, [_, _, rest @ ..]) if served_by == ServedBy::RawHost => (&segments[..2], rest),
        (ForgeKind::Github, [_, _, "blob" | "raw", rest @ ..]) => (&segments[..2], rest),
        (ForgeKind::Gitlab, _) => {
            let dash = segments.iter().position(|segment| *segment == "-").filter(|dash| *dash >= 2);
            match dash.map(|dash| (&segments[..dash], &segments[dash + 1..])) {
                Some((project, ["blob" | "raw", rest @ ..])) => (project, rest),
                _ => return Err(malformed),
            }
        }
        (ForgeKind::Forgejo, [_, _, "src" | "raw", "branch", rest @ ..]) => (&segments[..2], rest),
        (ForgeKind::Forgejo, [_, _, "src" | "raw", kind @ ("tag" | "commit"), named, ..]) => {
            return Err(UrlProblem::NotABranch { named: shown_text(&format!("{kind}/{named}")) });
        }
        _ => return Err(malformed),
    };
    let rest = strip_refs(rest)?;
    if rest.len() < 2 {
        return Err(malformed);
    }
    let mut places = find_places(rest);
    let Some(first) = places.first() else {
        return Err(UrlProblem::SignersPath);
    };
    let named = first.branch.join("/");
    places.retain(|place| is_branch_name(&place.branch));
    if places.is_empty() {
        return Err(UrlProblem::NotABranch { named: shown_text(&named) });
    }
    Ok(SignersPage { project: to_owned(project), places })
}

fn expected_form(kind: ForgeKind, served_by: ServedBy) -> &'static str {
    match (kind, served_by) {
        (ForgeKind::Github, ServedBy::RawHost) => "…/OWNER/REPOSITORY/refs/heads/BRANCH/svc.signers.json",
        (ForgeKind::Github, ServedBy::Forge) => "…/OWNER/REPOSITORY/blob/BRANCH/svc.signers.json",
        (ForgeKind::Gitlab, _) => "…/GROUP/PROJECT/-/blob/BRANCH/svc.signers.json",
        (ForgeKind::Forgejo, _) => "…/OWNER/REPOSITORY/src/branch/BRANCH/svc.signers.json",
    }
}

/// Drops `refs/heads/`, and refuses what is certainly no branch.
fn strip_refs<'a, 'u>(rest: &'a [&'u str]) -> Result<&'a [&'u str], UrlProblem> {
    let not_a_branch = |named: String| UrlProblem::NotABranch { named: shown_text(&named) };
    let rest = match rest {
        ["refs", "heads", rest @ ..] => rest,
        ["refs", kind, named, _, ..] => return Err(not_a_branch(format!("refs/{kind}/{named}"))),
        rest => rest,
    };
    match rest {
        [named, _, ..] if is_hash(named) || *named == "HEAD" => Err(not_a_branch((*named).to_owned())),
        rest => Ok(rest),
    }
}

/// A whole object name, of SHA-1 or SHA-256. A shorter one is asked for as a branch, and not found.
fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Git's rules for names of references. Without them `main~2` or `main^2` would name a commit that was never the head of
/// a branch here, such as one from the middle of a merged pull request.
fn is_branch_name(segments: &[String]) -> bool {
    let is_component = |name: &String| {
        !name.starts_with('.')
            && !name.ends_with('.')
            && !name.ends_with(".lock")
            && !name.contains("..")
            && !name.contains("@{")
            && !name.chars().any(|c| c.is_control() || " ~^:?*[\\".contains(c))
    };
    let starts_plainly = segments.first().is_some_and(|first| !first.starts_with('-') && first != "@");
    starts_plainly && segments.iter().all(is_component)
}

fn find_places(rest: &[&str]) -> Vec<BranchFile> {
    let place = |at: usize| BranchFile { branch: to_owned(&rest[..at]), path: to_owned(&rest[at..]) };
    let in_directory = match rest {
        [_, .., dir, _] => wire::PUBLISHED_SIGNERS_DIRS.contains(dir),
        _ => false,
    };
    let at_root = rest.last() == Some(&wire::SIGNERS_FILE);
    let splits = [in_directory.then(|| rest.len() - 2), at_root.then(|| rest.len() - 1)];
    splits.into_iter().flatten().map(place).collect()
}

fn to_owned(segments: &[&str]) -> Vec<String> {
    segments.iter().map(|segment| (*segment).to_owned()).collect()
}
