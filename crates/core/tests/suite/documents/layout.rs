//! Where files lie, both ways: from what they are to their paths, and back.

use countersign_core::documents::layout;
use countersign_testing::{PROJECT, path};

#[test]
fn the_tag_of_a_release_makes_its_directory_and_is_read_from_it() {
    let project = path(PROJECT);
    for tag in ["v1.0", "group/v1", "releases/tag/v1"] {
        let dir = layout::release_dir(&project, tag).unwrap();
        assert_eq!(dir.as_str(), format!("{PROJECT}/releases/tag/{tag}"));
        assert_eq!(layout::tag_of_release(&dir, &project), Some(tag));
        assert_eq!(layout::release_name(&layout::index_in(&dir), &project), tag);
    }
    for tag in ["", "..", "a//b", "a/../b", "a\nb"] {
        assert!(layout::release_dir(&project, tag).is_err(), "{tag:?}");
    }
}

#[test]
fn a_release_that_is_not_a_forges_has_the_name_of_its_directory() {
    let project = path(PROJECT);
    for (dir, name) in
        [("/v1", "v1"), ("/releases/v1", "releases/v1"), ("/releases/tags/v1", "releases/tags/v1")]
    {
        let dir = path(&format!("{PROJECT}{dir}"));
        assert_eq!(layout::tag_of_release(&dir, &project), None);
        assert_eq!(layout::release_name(&layout::index_in(&dir), &project), name);
    }
    // In the project's own directory, and in that of another project with a longer name.
    assert_eq!(layout::name_in_project(&project, &project), None);
    assert_eq!(layout::release_name(&layout::index_in(&project), &project), project.file_name());
    let other = path(&format!("{PROJECT}-other/releases/tag/v1"));
    assert_eq!(layout::tag_of_release(&other, &project), None);
    assert_eq!(layout::release_name(&layout::index_in(&other), &project), "v1");
}

#[test]
fn only_the_paths_of_entries_have_their_number() {
    let project = path(PROJECT);
    for number in [0, 1, 42, 999_999] {
        assert_eq!(layout::history_number(&layout::history_entry(&project, number), &project), Some(number));
    }
    for name in ["1.json", "+00001.json", "0000001.json", "000001", "000001.json/x", "00000a.json"] {
        let other = path(&format!("{}/{name}", layout::history_dir(&project)));
        assert_eq!(layout::history_number(&other, &project), None, "{name}");
    }
    assert_eq!(layout::history_number(&path(&format!("{PROJECT}/000001.json")), &project), None);
}
