//! Several nodes on one PostgreSQL: the order of their batches, their nonces, and who does what once. Everything that
//! speaks to the database is here; what the batches mean is not.
//!
//! Each node keeps all of Git itself, so that reads never come here. [`order::SharedOrder`] is what the store's writer
//! asks, [`nonces::SharedNonces`] what authentication asks, and [`news::NewsReader`] tells of other nodes'
//! batches. They share a [`node::NodeState`], and each has a connection of its own.

pub mod admin;
pub mod checkpoints;
pub mod database;
pub mod error;
pub mod news;
pub mod node;
pub mod nonces;
pub mod order;
mod passed;
pub mod schema;
pub mod settings;
pub mod tls;
pub mod webhooks;
