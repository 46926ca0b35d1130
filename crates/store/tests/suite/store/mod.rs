mod log;
mod transactions;
