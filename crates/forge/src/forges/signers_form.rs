//! What the path of a signers file's page says: the repository, and the ways to read a branch and a path from it.

use countersign_core::values::wire;

use crate::{
    shown::shown_text,
    source::kind::{ForgeKind, PathNames, SplitPath},
    url::UrlProblem,
};

/// A signers file on a branch.
pub(super) struct BranchFile<'a> {
    pub(super) branch: PathNames<'a>,
    pub(super) path: PathNames<'a>,
}

/// The host that serves a URL: GitHub's raw host has no `blob` in its paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServedBy {
    Forge,
    RawHost,
}

pub(super) struct SignersPage<'a> {
    pub(super) project: PathNames<'a>,
    /// The places that the URL can mean, at least one. There are two if a last directory may belong to the branch's
    /// name or to the path.
    pub(super) places: Vec<BranchFile<'a>>,
}

pub(super) fn read_page<'a>(
    kind: ForgeKind,
    segments: PathNames<'a>,
    served_by: ServedBy,
) -> Result<SignersPage<'a>, UrlProblem> {
    let malformed = UrlProblem::SignersForm { form: expected_form(kind, served_by) };
    let SplitPath { project, page } = kind.split_project(segments).ok_or_else(|| malformed.clone())?;
    let rest = match (kind, page) {
        (ForgeKind::Github, _) if served_by == ServedBy::RawHost => page,
        (ForgeKind::Github | ForgeKind::Gitlab, ["blob" | "raw", rest @ ..])
        | (ForgeKind::Forgejo, ["src" | "raw", "branch", rest @ ..]) => rest,
        (ForgeKind::Forgejo, ["src" | "raw", kind @ ("tag" | "commit"), named, ..]) => {
            return Err(UrlProblem::NotABranch { named: shown_text(&format!("{kind}/{named}")) });
        }
        (ForgeKind::Github | ForgeKind::Gitlab | ForgeKind::Forgejo, _) => return Err(malformed),
    };
    let rest = strip_refs(rest)?;
    if rest.len() < 2 {
        return Err(malformed);
    }
    let mut places = find_places(rest);
    let first = places.first().ok_or(UrlProblem::SignersPath)?;
    let named = first.branch.join("/");
    places.retain(|place| is_branch_name(place.branch));
    if places.is_empty() {
        return Err(UrlProblem::NotABranch { named: shown_text(&named) });
    }
    Ok(SignersPage { project, places })
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
fn strip_refs(rest: PathNames<'_>) -> Result<PathNames<'_>, UrlProblem> {
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

/// Whether a name follows Git's rules for names of references. Without them `main~2` or `main^2` would name a commit
/// that was never the head of a branch here, such as one from the middle of a merged pull request.
fn is_branch_name(segments: &[&str]) -> bool {
    let is_component = |name: &&str| {
        !name.starts_with('.')
            && !name.ends_with('.')
            && !name.ends_with(".lock")
            && !name.contains("..")
            && !name.contains("@{")
            && !name.chars().any(|c| c.is_control() || " ~^:?*[\\".contains(c))
    };
    let starts_plainly = segments.first().is_some_and(|first| !first.starts_with('-') && *first != "@");
    starts_plainly && segments.iter().all(is_component)
}

fn find_places(rest: PathNames<'_>) -> Vec<BranchFile<'_>> {
    let place = |at: usize| BranchFile { branch: &rest[..at], path: &rest[at..] };
    let in_directory = match rest {
        [_, .., dir, _] => wire::PUBLISHED_SIGNERS_DIRS.contains(dir),
        _ => false,
    };
    let at_root = rest.last() == Some(&wire::SIGNERS_FILE);
    let splits = [in_directory.then(|| rest.len() - 2), at_root.then(|| rest.len() - 1)];
    splits.into_iter().flatten().map(place).collect()
}
