//! The id of a request, which its answer and its log lines carry.

use std::sync::{
    LazyLock,
    atomic::{AtomicU64, Ordering},
};

use uuid::Uuid;

/// Different for every request of every run.
pub(crate) struct RequestId(String);

impl RequestId {
    /// A `Uuid` for each would ask the system for random bytes with every request.
    pub(crate) fn new() -> Self {
        static RUN: LazyLock<u64> = LazyLock::new(|| Uuid::new_v4().as_u64_pair().0);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(format!("{:016x}-{:08x}", *RUN, NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread};

    use super::*;

    #[test]
    fn no_two_requests_have_the_same_id_whatever_thread_they_are_on() {
        let ids = || (0..3_000).map(|_| RequestId::new().as_str().to_owned()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(ids)).collect();
        let ids: Vec<String> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 12_000);
        assert!(ids.iter().all(|id| id.len() == 25 && id[..16] == ids[0][..16]));
    }
}
