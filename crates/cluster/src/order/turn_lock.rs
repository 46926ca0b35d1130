//! The lock of the turn (D70): an advisory lock of the database, with the number of our table. Appends share it; a node
//! whose turn it is has it alone, and the queue for it is fair. It only saves work: the primary key decides.

/// Opens the transaction that holds the lock.
pub(super) const TAKE_TURN: &str =
    "begin; select pg_advisory_xact_lock('svc_repository'::regclass::oid::int, 1)";
/// The part of the appending statement that shares the turn.
pub(super) const SHARE_TURN: &str =
    "select pg_advisory_xact_lock_shared('svc_repository'::regclass::oid::int, 1)";
