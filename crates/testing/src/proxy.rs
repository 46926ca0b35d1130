//! A TCP proxy that fails on purpose: it cuts, refuses, stays silent, delays, and loses single answers of PostgreSQL.

mod postgres_wire;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, os::fd::OwnedFd, thread::JoinHandle, time::Duration, time::Instant};

use crate::{literals::free_port, proxy::postgres_wire::PostgresWire};

const TIMEOUT: Duration = Duration::from_secs(30);

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
        let end = Instant::now() + TIMEOUT;
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
        let end = Instant::now() + TIMEOUT;
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

// What the threads of a proxy share.

/// Which answer the proxy loses. It then closes the connection that the answer was for.
#[derive(Debug, Clone)]
pub struct LostAnswer {
    /// A part of the statement, in any case and spacing. Every statement has the empty text.
    pub statement: &'static str,
    /// The first such statement from now on is 1, over all connections.
    pub nth: usize,
    pub moment: LossMoment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossMoment {
    /// The statement never reaches the database.
    BeforeEffect,
    /// The database has done it, up to the end of the transaction if the statement is one by itself.
    AfterEffect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Any,
    Postgres,
}

#[derive(Debug)]
struct Shared {
    protocol: Protocol,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    target: SocketAddr,
    flow: Flow,
    refuses: bool,
    is_listening: bool,
    is_over: bool,
    connections: Vec<Link>,
    next_id: u64,
    losing: Option<LostAnswer>,
    lost: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    Slow(Duration),
    Silent,
}

/// A connection by both of its ends, to close them.
#[derive(Debug)]
struct Link {
    id: u64,
    ends: Vec<TcpStream>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, and looks again after a while.
    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, Duration::from_secs(1));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until data may pass; false once the connection is closed.
    fn admit(&self, id: u64) -> bool {
        let mut state = self.lock();
        while state.flow == Flow::Silent && state.has(id) {
            state = self.wait(state);
        }
        let (flow, is_open) = (state.flow, state.has(id));
        drop(state);
        if let Flow::Slow(each) = flow {
            std::thread::sleep(each);
        }
        is_open
    }

    fn close(&self, id: u64) {
        let mut state = self.lock();
        if let Some(at) = state.connections.iter().position(|link| link.id == id) {
            state.connections.swap_remove(at).close();
        }
    }

    /// Whether the answer to this statement is the one to lose at this moment; counts it.
    fn loses(&self, statement: &str, moment: LossMoment) -> bool {
        let mut state = self.lock();
        let Some(losing) = &mut state.losing else { return false };
        if losing.moment != moment || !plain(statement).contains(&plain(losing.statement)) {
            return false;
        }
        losing.nth -= 1;
        if losing.nth > 0 {
            return false;
        }
        state.losing = None;
        state.lost += 1;
        self.changed.notify_all();
        true
    }
}

impl State {
    fn has(&self, id: u64) -> bool {
        !self.is_over && self.connections.iter().any(|link| link.id == id)
    }

    fn cut(&mut self) {
        self.connections.drain(..).for_each(Link::close);
    }

    fn add(&mut self, client: &TcpStream) -> io::Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        self.connections.push(Link { id, ends: vec![client.try_clone()?] });
        Ok(id)
    }
}

impl Link {
    fn close(self) {
        for end in self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

/// SQL in one case and spacing.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

// The threads of a proxy: one accepts, and two carry the data of each connection.

fn accept(shared: &Arc<Shared>, listener: TcpListener) {
    let address = listener.local_addr().expect("it listens");
    let mut listener = Some(listener);
    loop {
        let mut state = shared.lock();
        let is_heard = !state.refuses && !state.is_over;
        if let Some(listener) = listener.take_if(|_| !is_heard) {
            stop_listening(listener);
        }
        if state.is_over {
            return;
        }
        if !is_heard {
            state.is_listening = false;
            shared.changed.notify_all();
            drop(shared.wait(state));
            continue;
        }
        if listener.is_none() {
            listener = TcpListener::bind(address).ok();
            state.is_listening = listener.is_some();
            shared.changed.notify_all();
        }
        drop(state);
        match listener.as_ref().map(TcpListener::accept) {
            Some(Ok((client, _))) => {
                let shared = Arc::clone(shared);
                std::thread::spawn(move || serve(&shared, client));
            }
            // The port is taken for a moment, or the client is gone already.
            Some(Err(_)) | None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Stops listening. To close the socket is not enough: a program that another thread is just starting has it open, too.
fn stop_listening(listener: TcpListener) {
    let _ = TcpStream::from(OwnedFd::from(listener)).shutdown(Shutdown::Both);
}

fn serve(shared: &Arc<Shared>, client: TcpStream) {
    let Some(id) = ({
        let mut state = shared.lock();
        (!state.refuses && !state.is_over).then(|| state.add(&client).ok()).flatten()
    }) else {
        return;
    };
    let _ = forward(shared, id, client);
    shared.close(id);
}

fn forward(shared: &Arc<Shared>, id: u64, client: TcpStream) -> io::Result<()> {
    if !shared.admit(id) {
        return Ok(());
    }
    let target = shared.lock().target;
    let server = TcpStream::connect(target)?;
    for end in [&client, &server] {
        end.set_nodelay(true)?;
    }
    {
        let mut state = shared.lock();
        let Some(link) = state.connections.iter_mut().find(|link| link.id == id) else { return Ok(()) };
        link.ends.push(server.try_clone()?);
    }
    let wire = Mutex::new(PostgresWire::default());
    let wire = (shared.protocol == Protocol::Postgres).then_some(&wire);
    let up = Pump { shared, id, from: &client, to: &server, wire, side: Side::Client };
    let down = Pump { from: &server, to: &client, side: Side::Server, ..up };
    std::thread::scope(|scope| {
        scope.spawn(move || up.run());
        down.run();
    });
    Ok(())
}

#[derive(Clone, Copy)]
enum Side {
    Client,
    Server,
}

/// Carries data in one direction.
#[derive(Clone, Copy)]
struct Pump<'a> {
    shared: &'a Shared,
    id: u64,
    from: &'a TcpStream,
    to: &'a TcpStream,
    wire: Option<&'a Mutex<PostgresWire>>,
    side: Side,
}

impl Pump<'_> {
    fn run(self) {
        // The other direction may go on after an end of file, not after a failure.
        match self.carry() {
            Ok(()) => drop(self.to.shutdown(Shutdown::Write)),
            Err(_) => self.shared.close(self.id),
        }
    }

    fn carry(self) -> io::Result<()> {
        let (mut from, mut to) = (self.from, self.to);
        let mut data = vec![0; 64 * 1024];
        loop {
            let length = from.read(&mut data)?;
            if length == 0 {
                return Ok(());
            }
            if !self.shared.admit(self.id) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let Some(wire) = self.wire else {
                to.write_all(&data[..length])?;
                continue;
            };
            let mut wire = wire.lock().unwrap_or_else(PoisonError::into_inner);
            let passed = match self.side {
                Side::Client => wire.pass_request(&data[..length], |statement| {
                    self.shared.loses(statement, LossMoment::BeforeEffect)
                }),
                Side::Server => wire.pass_answer(&data[..length], |statement| {
                    self.shared.loses(statement, LossMoment::AfterEffect)
                }),
            };
            drop(wire);
            to.write_all(&passed.data)?;
            if passed.is_last {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
    }
}
