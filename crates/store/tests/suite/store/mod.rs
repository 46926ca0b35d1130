mod feed;
mod following;
mod log;
mod sharing;
mod transactions;
