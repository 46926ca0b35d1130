//! Tests of the cluster's database, against a PostgreSQL of their own. Where it is not installed they say so and skip.

mod lost_answers;
mod nonces;
mod order;
mod support;
