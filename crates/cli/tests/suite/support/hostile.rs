//! A signing server that lies: it passes on what an honest one answers, except where a test puts a lie in the way.

pub(crate) use self::forgery::{Forgery, Listed, digest_of, index_of, origin, revocation_of, signature_set};
pub(crate) use self::scene::{Scene, Victim, assert_harmless};
pub(crate) use self::server::{AfterHalf, Asked, HostileServer, Lie};

mod forgery;
mod scene;
mod server;
mod state;
