//! The id of a request, which its answer and its log lines carry.

use std::{
    cell::Cell,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use uuid::{Uuid, fmt::Simple};

/// A number that no other request gets. Each thread takes many at a time, so threads seldom wait for each other.
fn next_number() -> u64 {
    const MANY: u64 = 1_024;
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NEXT: Cell<u64> = const { Cell::new(0) };
    }
    let next = NEXT.get();
    let number = if next.is_multiple_of(MANY) { TAKEN.fetch_add(MANY, Ordering::Relaxed) } else { next };
    NEXT.set(number + 1);
    number
}

/// Different for every request of every run.
pub(crate) struct RequestId([u8; RequestId::BYTES]);

impl RequestId {
    const RUN_BYTES: usize = 16;
    const BYTES: usize = Self::RUN_BYTES + 1 + 8;

    pub(crate) fn new() -> Self {
        static RUN: LazyLock<[u8; Simple::LENGTH]> = LazyLock::new(|| {
            let mut digits = [0; Simple::LENGTH];
            Uuid::new_v4().simple().encode_lower(&mut digits);
            digits
        });
        let mut id = [b'-'; Self::BYTES];
        id[..Self::RUN_BYTES].copy_from_slice(&RUN[..Self::RUN_BYTES]);
        let mut left = next_number();
        for digit in id[Self::RUN_BYTES + 1..].iter_mut().rev() {
            *digit = b"0123456789abcdef"[(left % 16) as usize];
            left /= 16;
        }
        Self(id)
    }

    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
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
        assert!(ids.iter().all(|id| id.len() == RequestId::BYTES && id[..16] == ids[0][..16]));
    }
}
