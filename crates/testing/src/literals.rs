//! What tests write as text: paths, times, certificates, ports.

use std::{net::Ipv4Addr, net::TcpListener, sync::atomic::AtomicU16, sync::atomic::Ordering};

use countersign_core::values::{path::RepoPath, time::Timestamp};

pub fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).expect("the test's own path")
}

pub fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).expect("the test's own time")
}

/// Shifts `time` by some nanoseconds.
pub fn shifted(time: Timestamp, nanos: i128) -> Timestamp {
    let since_epoch = time.nanos_since(at("1970-01-01T00:00:00Z"));
    Timestamp::from_unix_nanos(since_epoch + nanos).expect("a year before 9999")
}

pub fn shifted_seconds(time: Timestamp, seconds: i128) -> Timestamp {
    shifted(time, seconds * 1_000_000_000)
}

// Certificates for `127.0.0.1` and `localhost` with their keys, as PEM. No program but a test may trust them.

/// A certificate and its key.
pub type CertificatePair = [&'static str; 2];

pub const FIRST: CertificatePair =
    [include_str!("../certificates/first.cert.pem"), include_str!("../certificates/first.key.pem")];
pub const SECOND: CertificatePair =
    [include_str!("../certificates/second.cert.pem"), include_str!("../certificates/second.key.pem")];

// Ports of loopback for tests.

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
