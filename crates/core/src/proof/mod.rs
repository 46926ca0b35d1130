//! Proofs: from evidence to something verified, and what may be signed.

pub mod bundle;
pub mod freshness;
pub mod log_pin;
pub mod state;
pub mod state_lie;
pub mod to_sign;
pub mod to_state;
pub mod trust;
pub mod verify;
