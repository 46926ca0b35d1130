mod bundle;
mod freshness;
mod log_pin;
mod to_object;
mod to_revoke;
mod to_sign;
mod trust;
mod verify;
