//! The threads of a proxy: one accepts, and two carry the data of each connection.

use std::{
    io::{self, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    postgres_wire::PostgresWire,
    state::{LossMoment, Protocol, Shared},
};

pub(super) fn accept(shared: &Arc<Shared>, listener: TcpListener) {
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
