//! How routes are made: each with its description, and the path at its end.

pub mod route_table;
pub mod tail;
