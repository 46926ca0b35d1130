mod bundle;
mod freshness;
mod log_pin;
mod replaced;
mod to_revoke;
mod to_sign;
mod trust;
mod verify;
