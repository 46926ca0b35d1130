//! A TCP proxy that fails on purpose: it cuts, refuses, stays silent, delays, and loses single answers of PostgreSQL.

mod postgres_wire;
mod state;
mod threads;

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::ports::free_port;

pub use self::state::{LossMoment, LostAnswer};
use self::{
    state::{Flow, Protocol, Shared, State},
    threads::accept,
};

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy for any protocol.
    pub fn start(target: SocketAddr) -> Self {
        Self::start_for(target, Protocol::Any)
    }

    /// Starts a proxy for PostgreSQL without TLS, which can lose answers.
    pub fn for_postgres(target: SocketAddr) -> Self {
        Self::start_for(target, Protocol::Postgres)
    }

    fn start_for(target: SocketAddr, protocol: Protocol) -> Self {
        let listener = bind_free_port();
        let address = listener.local_addr().expect("it listens");
        let state = State {
            target,
            flow: Flow::Open,
            refuses: false,
            is_listening: true,
            is_over: false,
            connections: Vec::new(),
            next_id: 0,
            losing: None,
            lost: 0,
        };
        let shared = Arc::new(Shared { protocol, state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Some(std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&shared, listener)
        }));
        Self { address, shared, accepting }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection that there is.
    pub fn cut(&self) {
        self.shared.lock().cut();
        self.shared.changed.notify_all();
    }

    /// Stops listening. Connections that are there go on.
    pub fn refuse(&self) {
        self.shared.lock().refuses = true;
        self.wake_listener();
        let mut state = self.shared.lock();
        while state.is_listening {
            state = self.shared.wait(state);
        }
    }

    /// Accepts everything and passes nothing on, in either direction. What is sent meanwhile arrives after `restore`.
    pub fn blackhole(&self) {
        self.set_flow(Flow::Silent);
    }

    /// Every piece of data waits so long, in each direction.
    pub fn delay(&self, each: Duration) {
        self.set_flow(Flow::Slow(each));
    }

    /// Ends what `refuse`, `blackhole` and `delay` began.
    #[track_caller]
    pub fn restore(&self) {
        self.set_flow(Flow::Open);
        let mut state = self.shared.lock();
        state.refuses = false;
        self.shared.changed.notify_all();
        let end = Instant::now() + PATIENCE;
        while !state.is_listening {
            assert!(Instant::now() < end, "{} is taken by another program", self.address);
            state = self.shared.wait(state);
        }
    }

    /// Leads new connections to another address from now on, as after a failover.
    pub fn redirect(&self, target: SocketAddr) {
        self.shared.lock().target = target;
    }

    /// Loses one answer, once. A later call replaces one that has not come to that.
    #[track_caller]
    pub fn lose(&self, answer: LostAnswer) {
        assert_eq!(self.shared.protocol, Protocol::Postgres, "only the answers of PostgreSQL are understood");
        assert!(answer.nth > 0, "the first is 1");
        self.shared.lock().losing = Some(answer);
    }

    /// Waits until the answer of the last `lose` is lost.
    #[track_caller]
    pub fn await_loss(&self) {
        let end = Instant::now() + PATIENCE;
        let mut state = self.shared.lock();
        while let Some(losing) = &state.losing {
            assert!(Instant::now() < end, "no such answer came: {losing:?}");
            state = self.shared.wait(state);
        }
    }

    /// How many answers the proxy has lost.
    pub fn lost(&self) -> usize {
        self.shared.lock().lost
    }

    /// How many connections go through the proxy.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections.len()
    }

    fn set_flow(&self, flow: Flow) {
        self.shared.lock().flow = flow;
        self.shared.changed.notify_all();
    }

    fn wake_listener(&self) {
        self.shared.changed.notify_all();
        // It waits for a connection, so it gets one.
        let _ = TcpStream::connect(self.address);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.cut();
        self.wake_listener();
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
    }
}

fn bind_free_port() -> TcpListener {
    let listener = (0..10).find_map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, free_port())).ok());
    listener.expect("a free port on loopback")
}
