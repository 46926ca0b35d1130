mod bundle;
mod to_sign;
mod trust;
mod verify;
