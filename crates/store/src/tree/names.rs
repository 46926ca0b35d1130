//! The names of a tree's entries.

use std::{collections::HashSet, sync::LazyLock};

use countersign_core::values::{path::RepoPath, wire};
use smol_str::SmolStr;

/// The name of an entry. The names of our own files recur in every project, and are kept once.
pub(crate) fn intern(name: &str) -> SmolStr {
    FREQUENT_NAMES.get(name).map_or_else(|| name.into(), SmolStr::clone)
}

/// The path of a file; `None` where its name was put into the tree by hand and no request can spell it.
pub(crate) fn addressable(path: &str) -> Option<RepoPath> {
    RepoPath::parse(path).ok().filter(|parsed| parsed.as_str() == path)
}

static FREQUENT_NAMES: LazyLock<HashSet<SmolStr>> = LazyLock::new(|| {
    use wire::*;
    let directories =
        [ACTIVE_DIR, PENDING_DIR, SUPERSEDED_DIR, "http", "https", "80", "443", "releases", "tag"];
    let mut names: HashSet<SmolStr> = directories.map(SmolStr::from).into();
    let revocation = format!("{INDEX_FILE}{REVOCATION_SUFFIX}");
    let metadata = format!("{SIGNERS_FILE}{METADATA_SUFFIX}");
    for file in [SIGNERS_FILE, INDEX_FILE, HISTORY_FILE, &revocation, &metadata] {
        for suffix in
            ["", METADATA_SUFFIX, REGISTRATION_SUFFIX, SIGNERS_COPY_SUFFIX, SIGNATURES_SUFFIX, REQUEST_SUFFIX]
        {
            for ending in ["", PENDING_SUFFIX, REVOKED_SUFFIX] {
                names.insert(format!("{file}{suffix}{ending}").into());
            }
        }
    }
    names
});
