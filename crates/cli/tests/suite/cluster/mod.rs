//! Several nodes on one PostgreSQL, with the real programs, while processes, connections and answers get lost.
//! Without PostgreSQL these tests say that they are skipped.

mod load;
mod nodes;

mod clocks;
mod database;
mod failover;
mod faults;
mod kept_log;
mod lies;
mod lost_answers;
mod moving;
mod replay;
mod rotations;
mod wrong_node;
