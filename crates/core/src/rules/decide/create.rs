//! The first commit of every repository: its format marker (D38).

use crate::{
    documents::repository::{FORMAT, RepositoryMarker},
    rules::snapshot::Change,
    values::time::Timestamp,
};

use super::titles;

pub fn create(now: Timestamp) -> Change {
    let mut change = Change::new(format!("{}\n", titles::CREATE));
    let marker = RepositoryMarker { format: FORMAT, created_at: now.to_whole_seconds() };
    change.write(RepositoryMarker::path(), marker.write());
    change
}
