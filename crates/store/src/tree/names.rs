//! The names of a tree's entries.

use std::{collections::HashSet, sync::LazyLock};

use countersign_core::values::{path::RepoPath, wire};
use smol_str::SmolStr;

/// Interns the name of an entry. The names of our own files recur in every project, and are kept once.
pub(crate) fn intern(name: &str) -> SmolStr {
    FREQUENT_NAMES.get(name).map_or_else(|| name.into(), SmolStr::clone)
}

/// The path of a file; `None` where its name was put into the tree by hand and no request can spell it.
pub(crate) fn addressable(path: &str) -> Option<RepoPath> {
    RepoPath::parse(path).ok().filter(|parsed| parsed.as_str() == path)
}

static FREQUENT_NAMES: LazyLock<HashSet<SmolStr>> = LazyLock::new(|| {
    use wire::*;
    let own_dirs = [ACTIVE_DIR, PENDING_DIR, SUPERSEDED_DIR, VETOED_DIR, HISTORY_DIR];
    let usual_dirs = ["http", "https", "80", "443", "releases", "tag"];
    let mut names: HashSet<SmolStr> = own_dirs.into_iter().chain(usual_dirs).map(SmolStr::from).collect();
    let metadata = format!("{SIGNERS_FILE}{METADATA_SUFFIX}");
    let veto = format!("{SIGNERS_FILE}{VETO_SUFFIX}");
    let revocation = format!("{INDEX_FILE}{REVOCATION_SUFFIX}");
    let suffixes = [
        "",
        AGREEMENT_SUFFIX,
        EARLIER_OBJECTIONS_SUFFIX,
        OBJECTIONS_SUFFIX,
        OTHER_FORMATS_SUFFIX,
        REGISTRANT_SUFFIX,
        REGISTRATION_SUFFIX,
        REQUEST_SUFFIX,
        SIGNATURES_SUFFIX,
        SIGNERS_COPY_SUFFIX,
        WITHDRAWAL_SUFFIX,
    ];
    // Not all of these exist. That costs some kilobytes, once.
    for file in [SIGNERS_FILE, &metadata, &veto, VETO_FILE, INDEX_FILE, &revocation] {
        for suffix in suffixes {
            for ending in ["", PENDING_SUFFIX, REVOKED_SUFFIX] {
                names.insert(format!("{file}{suffix}{ending}").into());
            }
        }
    }
    names
});
