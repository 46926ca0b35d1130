//! Values: what documents and requests are made of. `parse` is the only door for text from outside.

pub mod bounds;
pub mod digest;
pub mod json;
pub mod key;
pub mod ml_dsa;
pub mod other_format;
pub mod path;
pub mod shown;
pub(crate) mod sshsig;
pub mod time;
pub mod verifier_key;
pub mod wire;
