//! Staples, and what they prove (D86).

use std::collections::BTreeSet;

use countersign_core::{
    log::trie::TrieSibling,
    proof::{
        freshness::{LogTrust, StapleSubject, verify},
        staple::Staple,
    },
    values::{
        digest::{Sha256, Sha512},
        time::Timestamp,
    },
};

use super::promises::{assert_path, assert_shown, check_document};

pub fn check(data: &[u8]) {
    let Some(staple) = check_document(data, Staple::parse, Staple::write) else { return };
    let (release, project) = (&staple.statuses.release, &staple.statuses.project);
    assert_path(&release.path);
    assert_path(&project.path);
    let subject = StapleSubject {
        index_path: release.path.clone(),
        index_digest: release.index,
        project: project.path.clone(),
        signers: vec![project.signers],
        signer_keys: BTreeSet::new(),
    };
    let now = Timestamp::from_unix_seconds(1_770_000_000).expect("in the range of timestamps");
    let freshness = match verify(&staple, &subject, LogTrust::Unknown, now) {
        Ok(freshness) => freshness,
        Err(error) => return assert_shown(&error),
    };
    // Without a known key nothing is attested, but what is shown fits together.
    assert_eq!((freshness.as_of, &freshness.log_key, freshness.cosignatures.len()), (None, &None, 0));
    assert_eq!(freshness.checkpoint.size, staple.proof.index + 1);
    let refused = |change: &dyn Fn(&mut Staple)| {
        let mut changed = staple.clone();
        change(&mut changed);
        assert!(verify(&changed, &subject, LogTrust::Unknown, now).is_err());
    };
    refused(&|staple| staple.leaf.state = Sha256::of(staple.leaf.state.as_bytes()));
    refused(&|staple| staple.leaf.changes = Sha256::of(staple.leaf.changes.as_bytes()));
    refused(&|staple| staple.proof.index += 1);
    refused(&|staple| staple.proof.hashes.push(staple.leaf.object));
    refused(&|staple| staple.statuses.release.number = staple.statuses.release.number.wrapping_add(1));
    refused(&|staple| {
        staple.statuses.project.signers = Sha512::of(staple.statuses.project.signers.as_bytes());
    });
    refused(&|staple| {
        staple.statuses.release_path.siblings.insert(0, TrieSibling { bit: 0, hash: staple.leaf.object })
    });
}
