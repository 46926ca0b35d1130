//! PostgreSQL for tests: a cluster in a temporary directory, which ends with the value that stands for it.
//!
//! It never touches a cluster that is there: it has a data directory, a port and a socket of its own.

mod cluster;
mod process;
mod programs;
mod standby;
mod template;

pub use self::{
    cluster::{Postgres, PostgresEnd, PostgresOptions},
    standby::Standby,
    template::{DATABASE, PASSWORD, ROLE},
};
