//! The pages for a browser. What each page says is in `tests/scenarios`; here is what needs more than a line.

use serde_json::{Value, json};

use crate::support::{Person, signers::signer};

mod activity;
mod changes;
mod hostile;
mod lists;
mod log;
mod pages;

/// An entry of a signers file with a name.
fn named(person: &Person, name: &str) -> Value {
    let mut entry = signer(&person.key());
    entry["name"] = json!(name);
    entry
}
