//! The index of a release (D11), and whether it belongs to its place (D34).

use countersign_core::{
    documents::{
        index::{AssetName, ReleaseIndex},
        layout,
    },
    rules::place::{check_place, path_of_url, release_tag},
    values::{path::RepoPath, shown::is_unseen},
};

use super::promises::{assert_path, assert_shown, check_document};

pub fn check(data: &[u8]) {
    let Some(index) = check_document(data, ReleaseIndex::parse, ReleaseIndex::write) else { return };
    assert_path(&index.project_id);
    assert!(index.published_files.windows(2).all(|pair| pair[0].file_name < pair[1].file_name));
    for file in &index.published_files {
        assert_asset_name(file.file_name.as_str());
        assert!(file.digests.sha256.is_some() || file.digests.sha512.is_some());
    }
    check_places(&index);
}

/// Asserts that a name is safe to show, and to write to below a directory (D24).
pub fn assert_asset_name(name: &str) {
    assert_eq!(AssetName::parse(name).as_ref().map(AssetName::as_str), Ok(name));
    assert!(!name.starts_with('/') && !name.contains('\\'), "{name:?}");
    assert!(!name.chars().any(is_unseen), "{name:?}");
    for segment in name.split('/') {
        assert!(!matches!(segment, "" | "." | "..") && segment.len() <= 200, "{name:?}");
    }
}

/// An index is valid only at the places that it names itself.
fn check_places(index: &ReleaseIndex) {
    let project = &index.project_id;
    let dirs: Vec<RepoPath> = match &index.release_url {
        Some(url) => release_tag(url, project)
            .and_then(|tag| RepoPath::parse(&format!("{project}/releases/tag/{tag}")).ok())
            .into_iter()
            .collect(),
        None => index
            .published_files
            .iter()
            .filter_map(|file| {
                let place = path_of_url(&file.source)?;
                let dir = place.as_str().strip_suffix(file.file_name.as_str())?.strip_suffix('/')?;
                RepoPath::parse(dir).ok()
            })
            .collect(),
    };
    let accepted = dirs.iter().filter(|dir| match check_place(index, &layout::index_in(dir)) {
        Ok(()) => {
            assert!(*dir == project || dir.is_inside(project), "{dir} is outside of {project}");
            true
        }
        Err(error) => {
            assert_shown(&error);
            false
        }
    });
    let accepted: std::collections::BTreeSet<&RepoPath> = accepted.collect();
    assert!(accepted.len() <= 1, "{accepted:?}");
    let speaks_of_files = index.release_url.is_some() || !index.published_files.is_empty();
    if speaks_of_files && let Ok(elsewhere) = RepoPath::parse(&format!("{project}/elsewhere")) {
        let is_elsewhere = check_place(index, &layout::index_in(&elsewhere)).is_ok();
        assert!(!is_elsewhere || accepted.iter().all(|dir| **dir == elsewhere));
    }
}
