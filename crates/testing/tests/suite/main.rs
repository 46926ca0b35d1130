//! The tests of what other tests stand on.

#![allow(clippy::unwrap_used, reason = "a test")]

mod linearizable;
mod postgres;
mod proxy;
mod proxy_postgres;
