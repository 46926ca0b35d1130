//! The id of a request, which its answer and its log lines carry.

use std::sync::{
    LazyLock,
    atomic::{AtomicU64, Ordering},
};

use uuid::Uuid;

/// Different for every request of every run. A `Uuid` for each would ask the system for random bytes with every request.
pub fn new_request_id() -> String {
    static RUN: LazyLock<u64> = LazyLock::new(|| Uuid::new_v4().as_u64_pair().0);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{:016x}-{:08x}", *RUN, NEXT.fetch_add(1, Ordering::Relaxed))
}
