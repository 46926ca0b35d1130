//! The metrics of a running server.

use std::{net::Ipv4Addr, net::SocketAddr, time::Duration, time::Instant};

use countersign_testing::literals::free_port;

use super::{http, http::Request};

const TIMEOUT: Duration = Duration::from_secs(30);

/// An address where nothing listens, for a server that cannot say where it listens.
pub(crate) fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port()).into()
}

pub(crate) struct Page(pub(crate) String);

impl Page {
    pub(crate) fn read(address: SocketAddr) -> Self {
        let reply = http::send(address, &Request::get("/metrics"));
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        Self(reply.text())
    }

    /// The value of exactly this sample.
    #[track_caller]
    pub(crate) fn value(&self, sample: &str) -> f64 {
        let line = self.0.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {sample} in\n{}", self.0)).parse().unwrap()
    }
}

/// Waits until a sample has this value.
#[track_caller]
pub(crate) fn await_value(address: SocketAddr, sample: &str, expected: f64) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let found = Page::read(address).value(sample);
        if found == expected {
            return;
        }
        assert!(Instant::now() < deadline, "{sample} is {found}, not {expected}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
