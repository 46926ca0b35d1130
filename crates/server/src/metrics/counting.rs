//! What components count with, and the names of the cases that they count.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that goes up.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Returns how many there were before.
    pub fn add(&self, more: u64) -> u64 {
        self.0.fetch_add(more, Ordering::Relaxed)
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// An enum whose cases have names. Adds `ALL`, in which a case stands at `case as usize`, and `name`.
macro_rules! named {
    ($(#[$about:meta])* pub enum $of:ident { $($(#[$why:meta])* $case:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $of {
            $($(#[$why])* $case,)+
        }

        impl $of {
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$case),+];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$case => $name,)+
                }
            }
        }
    };
}
pub(crate) use named;
