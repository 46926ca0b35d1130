//! The routes of the specification: what each takes, answers and stores.

mod catalogue;
mod chain;
mod checksums;
mod files;
mod histories;
mod many_signers;
mod ping;
mod reference;
mod registration;
mod revocation;
mod signers_files;
mod status;
