//! What components count with, and the names of the cases that they count.

pub(crate) use countersign_store::writer::stats::Counter;

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
