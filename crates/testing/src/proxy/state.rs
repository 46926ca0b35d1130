//! What the threads of a proxy share.

use std::{
    io,
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

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
pub(super) enum Protocol {
    Any,
    Postgres,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) protocol: Protocol,
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) target: SocketAddr,
    pub(super) flow: Flow,
    pub(super) refuses: bool,
    pub(super) is_listening: bool,
    pub(super) is_over: bool,
    pub(super) connections: Vec<Link>,
    pub(super) next_id: u64,
    pub(super) losing: Option<LostAnswer>,
    pub(super) lost: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Open,
    Slow(Duration),
    Silent,
}

/// A connection by both of its ends, to close them.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: u64,
    pub(super) ends: Vec<TcpStream>,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, and looks again after a while.
    pub(super) fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, Duration::from_secs(1));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until data may pass; false once the connection is closed.
    pub(super) fn admit(&self, id: u64) -> bool {
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

    pub(super) fn close(&self, id: u64) {
        let mut state = self.lock();
        if let Some(at) = state.connections.iter().position(|link| link.id == id) {
            state.connections.swap_remove(at).close();
        }
    }

    /// Whether the answer to this statement is the one to lose at this moment; counts it.
    pub(super) fn loses(&self, statement: &str, moment: LossMoment) -> bool {
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
    pub(super) fn has(&self, id: u64) -> bool {
        !self.is_over && self.connections.iter().any(|link| link.id == id)
    }

    pub(super) fn cut(&mut self) {
        self.connections.drain(..).for_each(Link::close);
    }

    pub(super) fn add(&mut self, client: &TcpStream) -> io::Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        self.connections.push(Link { id, ends: vec![client.try_clone()?] });
        Ok(id)
    }
}

impl Link {
    pub(super) fn close(self) {
        for end in self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

/// SQL in one case and spacing.
pub(super) fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
