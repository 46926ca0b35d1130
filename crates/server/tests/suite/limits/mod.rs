//! How often, and how much at the same time.

mod pages;
mod places;
mod rates;
