//! Leaves, bundles of them, and records of the status map (D82, D83).

use countersign_core::{
    log::{
        leaf::{Leaf, parse_bundle, write_bundle},
        record::Record,
        status::{LoggedRelease, Statuses},
    },
    values::bounds::NEWEST_RELEASES,
};

use super::promises::assert_path;

pub fn check(data: &[u8]) {
    if let Ok(leaves) = parse_bundle(data) {
        assert_eq!(write_bundle(&leaves), data, "a bundle has one spelling");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(leaf) = Leaf::parse(text) {
        assert_eq!(leaf.text(), text, "a leaf has one spelling");
        let leaves = vec![leaf; 2];
        assert_eq!(parse_bundle(&write_bundle(&leaves)), Ok(leaves));
    }
    let Ok(record) = Record::parse(text) else { return };
    assert_eq!(record.text(), text, "a record has one spelling");
    let statuses = Statuses::of_records([record.clone()]);
    assert_eq!(statuses.root(), record.leaf().1, "the only leaf is the root");
    assert_eq!(Statuses::default().insert_record(&record).root(), statuses.root());
    match &record {
        Record::Release(release) => {
            assert_path(&release.path);
            assert_eq!(
                statuses.release(&release.path),
                Some(LoggedRelease { number: release.number, state: release.state })
            );
        }
        Record::Project(project) => {
            project.newest.iter().for_each(assert_path);
            assert!(project.newest.len() <= NEWEST_RELEASES);
            assert_eq!(statuses.project(&project.path), Some(project));
        }
    }
}
