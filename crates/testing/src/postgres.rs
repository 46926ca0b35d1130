//! PostgreSQL for tests: a cluster in a temporary directory, which ends with the value that stands for it.
//!
//! It never touches a cluster that is there: it has a data directory, a port and a socket of its own.

mod cluster;
mod process;

pub use crate::postgres::cluster::{Postgres, PostgresEnd, PostgresOptions, Standby};
pub use crate::postgres::process::{DATABASE, PASSWORD, ROLE};
