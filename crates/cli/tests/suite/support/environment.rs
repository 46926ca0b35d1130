//! The environment of the programs that a test starts.

use std::process::Command;

/// One authority that signs for no server here. To read the hundreds of the system takes a quarter of a short command.
const AUTHORITIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testing/certificates/second.cert.pem");

/// Nothing of the tester's own environment reaches the program but the path, and which fault is planted
/// (`tests/faults`).
pub(crate) fn clear_environment(command: &mut Command) {
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if let Some(fault) = std::env::var_os("PLANTED") {
        command.env("PLANTED", fault);
    }
    command.env("SSL_CERT_FILE", AUTHORITIES);
}
