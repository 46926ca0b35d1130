//! What an operator sets, reads and does.

mod admin_drop;
mod admin_owner;
mod admin_socket;
mod adopted;
mod check;
mod clock;
mod configuration;
mod health;
mod logs;
mod metrics;
mod refusals;
mod restored;
mod shutdown;
mod tls;
mod written;
