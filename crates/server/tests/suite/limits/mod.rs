//! How often, and how much at the same time.

mod pages;
mod rates;
mod semaphore;
