//! Tests of the cluster's database, against a PostgreSQL of their own. Where it is not installed they say so and skip.

#![allow(clippy::unwrap_used, reason = "a test")]

mod checkpoints;
mod connecting;
mod following;
mod lost_answers;
mod nonces;
mod operating;
mod order;
mod settings;
mod standby;
mod support;
