//! Log lines.

mod flow;
mod lines;
mod writer;
