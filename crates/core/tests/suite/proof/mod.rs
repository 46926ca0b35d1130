mod bundle;
mod freshness;
mod to_revoke;
mod to_sign;
mod trust;
mod verify;
