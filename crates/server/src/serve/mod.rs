//! Start and end of the server: the one place that knows all its parts, and the way of a request to its handler.

pub mod admin;
pub mod answer;
pub mod due;
pub mod listen;
pub mod start;
pub mod table;
