//! The signed requests that commits of the last day stored. A follower that starts must know them, since none of them
//! may be used again.

use std::sync::Arc;

use countersign_api::claim::Claim;
use countersign_core::values::{path::RepoPath, time::Timestamp, wire};
use gix::{ObjectId, objs::Kind};

use super::differing::TreeReader;
use crate::{audit::replay::nonces::REMEMBERED, commit::Commit, error::StoreError, objects::Objects};

/// Each with the time of its commit, oldest first.
pub(crate) fn read_requests(
    objects: &Arc<Objects>,
    tip: ObjectId,
) -> Result<Vec<(Vec<u8>, Timestamp)>, StoreError> {
    let read = |id: ObjectId| {
        let bytes = objects.read(&id, Kind::Commit)?;
        Commit::parse(&bytes).map_err(|reason| StoreError::corrupt(id, reason))
    };
    let (mut found, mut trees) = (Vec::new(), TreeReader::new(Arc::clone(objects)));
    let mut commit = read(tip)?;
    let newest = commit.time;
    while newest.ahead_of(commit.time).is_none_or(|age| age <= REMEMBERED) {
        let Some(parent) = commit.parents.first().copied() else { break };
        let parent = read(parent)?;
        if stores_request(&commit.message) {
            let files = trees.compare(Some(parent.tree), commit.tree)?;
            for blob in files.into_iter().filter(|(path, _)| is_request(path)).filter_map(|(_, blob)| blob) {
                found.push((objects.read(&blob, Kind::Blob)?, commit.time));
            }
        }
        commit = parent;
    }
    found.reverse();
    Ok(found)
}

fn stores_request(message: &str) -> bool {
    match Claim::parse(message) {
        Some(
            Claim::Register { .. } | Claim::Update { .. } | Claim::Withdraw { .. } | Claim::Revoke { .. },
        ) => true,
        Some(
            Claim::Create
            | Claim::Sign { .. }
            | Claim::Agree { .. }
            | Claim::Activate { .. }
            | Claim::Veto { .. }
            | Claim::Assets { .. }
            | Claim::Object { .. }
            | Claim::Drop { .. },
        )
        | None => false,
    }
}

fn is_request(path: &RepoPath) -> bool {
    let ends = [wire::REGISTRATION_SUFFIX, wire::REQUEST_SUFFIX, wire::WITHDRAWAL_SUFFIX];
    ends.iter().any(|end| path.as_str().ends_with(end))
}
