//! Key files, agents and passphrases.

use std::{io::Read as _, os::unix::net::UnixStream};

pub(crate) mod agent;
mod fido;
mod keygen;
mod openssh;
mod terminal;

/// A whole request to an agent.
fn read_request(stream: &mut UnixStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut request = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut request).unwrap();
    request
}

/// Bytes behind their length, as agents write them.
fn string(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}
