//! What one client can take from others, and how much the server accepts.

mod budgets;
mod places;
mod rates;
mod slow_clients;
