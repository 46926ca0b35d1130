//! What an operator sets, reads and does.

mod admin;
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
