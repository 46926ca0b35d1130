//! What holds for all scripts of `packaging`.

use std::{fs, process::Command};

use super::packaging;
use crate::support::{client::Ran, keys::installed};

#[test]
fn shellcheck_finds_nothing() {
    if !installed("shellcheck") {
        return;
    }
    let mut scripts = Vec::new();
    for dir in [packaging(""), packaging("debian")] {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let is_script = path.is_file() && fs::read(&path).unwrap().starts_with(b"#!/bin/sh\n");
            scripts.extend(is_script.then_some(path));
        }
    }
    assert!(scripts.len() >= 10, "{scripts:?}");
    Ran::of(Command::new("shellcheck").args(scripts)).ok();
}

#[test]
fn the_packaged_unit_and_configuration_fit_together() {
    let read = |name| fs::read_to_string(packaging(name)).unwrap();
    let (unit, users, config) =
        (read("countersign.service"), read("sysusers.conf"), read("countersign.toml"));
    assert!(unit.contains("serve --config /etc/countersign/countersign.toml\n"), "{unit}");
    assert!(unit.contains("\nUser=countersign\n") && users.starts_with("u countersign "), "{users}");
    assert!(config.contains("data_dir = \"/var/lib/countersign\"") && users.contains("/var/lib/countersign"));
    // No stranger reaches a server that no one has configured.
    assert!(config.contains("\nlisten = \"127.0.0.1:"), "{config}");
    let dir = tempfile::TempDir::new().unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_countersign"));
    check.args(["serve", "--check", "--config"]).arg(packaging("countersign.toml"));
    Ran::of(check.env_clear().env("COUNTERSIGN_DATA_DIR", dir.path().join("data"))).ok();
}
