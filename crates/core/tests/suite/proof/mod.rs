mod bundle;
mod freshness;
mod log_pin;
mod to_revoke;
mod to_sign;
mod to_veto;
mod trust;
mod verify;
