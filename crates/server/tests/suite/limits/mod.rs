//! How often, and how much at the same time.

mod places;
mod rates;
