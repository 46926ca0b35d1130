//! Ports of loopback for tests.

use std::{
    net::{Ipv4Addr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

const FIRST_PORT: u32 = 12_000;
const PORTS: u32 = 20_000;

/// A port of loopback where nothing listens. It is below those that the system gives to outgoing connections, so none
/// of them takes it while the listener is away for a moment.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = std::process::id().wrapping_mul(101) % PORTS;
    for _ in 0..PORTS {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST_PORT + (start + step) % PORTS).expect("below 32768");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port on loopback");
}
