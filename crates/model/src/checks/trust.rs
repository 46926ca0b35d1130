//! What a client has accepted of each project.

use countersign_core::{proof::trust::TrustStore, values::path::RepoPath};

use super::promises::{assert_path, assert_shown, check_document};

pub fn check(data: &[u8]) {
    let Some(store) = check_document(data, TrustStore::parse, TrustStore::write) else { return };
    for (project, pin) in &store.projects {
        assert_path(project);
        assert!(!pin.history.is_empty());
        for (index, seen) in &pin.revocations {
            assert_path(index);
            assert!(pin.revocation_of(index, &seen.index_digest).is_some());
        }
        if let Ok(inside) = RepoPath::parse(&format!("{project}/inside"))
            && !store.projects.contains_key(&inside)
        {
            let error = store.check_overlap(&inside).expect_err("projects do not lie in one another (D35)");
            assert_shown(&error);
        }
    }
}
