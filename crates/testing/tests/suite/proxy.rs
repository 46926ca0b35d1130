//! The proxy in front of a server that sends every line back.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{process::Command, thread, time::Duration, time::Instant};

use countersign_testing::proxy::Proxy;

const SILENCE: Duration = Duration::from_millis(200);

/// Sends every line back, with a word in front; runs until the test program ends.
fn echo(word: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut writer = client.try_clone().unwrap();
                for line in BufReader::new(client).lines().map_while(Result::ok) {
                    if writer.write_all(format!("{word} {line}\n").as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

struct Line(BufReader<TcpStream>);

impl Line {
    fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(BufReader::new(stream))
    }

    fn say(&self, text: &str) {
        self.0.get_ref().write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    fn hear(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn ask(&mut self, text: &str) -> String {
        self.say(text);
        self.hear().unwrap()
    }

    fn is_silent(&mut self) -> bool {
        self.0.get_ref().set_read_timeout(Some(SILENCE)).unwrap();
        let heard = self.hear();
        self.0.get_ref().set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        heard.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }

    fn is_closed(&mut self) -> bool {
        self.hear().map_or(true, |line| line.is_empty())
    }
}

#[test]
fn it_passes_everything_on() {
    let proxy = Proxy::start(echo("re"));
    let (mut one, mut two) = (Line::open(proxy.address()), Line::open(proxy.address()));
    assert_eq!([one.ask("a"), two.ask("b"), one.ask("c")], ["re a", "re b", "re c"]);
    assert_eq!(proxy.connections(), 2);
    // Much, in both directions at once.
    let long = "x".repeat(1_000_000);
    let writer = one.0.get_ref().try_clone().unwrap();
    let sent = format!("{long}\n");
    std::thread::scope(|scope| {
        scope.spawn(move || (&writer).write_all(sent.as_bytes()).unwrap());
        assert_eq!(one.hear().unwrap(), format!("re {long}"));
    });
}

#[test]
fn a_cut_closes_what_is_open_and_lets_new_connections_in() {
    let proxy = Proxy::start(echo("re"));
    let mut one = Line::open(proxy.address());
    one.ask("a");
    proxy.cut();
    assert!(one.is_closed());
    assert_eq!(Line::open(proxy.address()).ask("b"), "re b");
}

#[test]
fn refused_connections_are_refused_by_the_system_and_open_ones_go_on() {
    let proxy = Proxy::start(echo("re"));
    let mut one = Line::open(proxy.address());
    one.ask("a");
    for _ in 0..3 {
        proxy.refuse();
        let refused = TcpStream::connect(proxy.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(one.ask("b"), "re b");
        proxy.restore();
        assert_eq!(Line::open(proxy.address()).ask("c"), "re c");
    }
}

#[test]
fn connections_are_refused_at_once_beside_programs_that_are_being_started() {
    let proxy = Proxy::start(echo("re"));
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                assert!(Command::new("true").status().unwrap().success());
            }
        });
        let refused: Vec<bool> = (0..500)
            .map(|_| {
                proxy.refuse();
                let is_refused = TcpStream::connect(proxy.address()).is_err();
                proxy.restore();
                is_refused
            })
            .collect();
        is_done.store(true, Ordering::Relaxed);
        assert!(refused.iter().all(|is_refused| *is_refused));
    });
}

#[test]
fn a_blackhole_accepts_and_stays_silent_and_delivers_afterwards() {
    let proxy = Proxy::start(echo("re"));
    let mut old = Line::open(proxy.address());
    old.ask("a");
    proxy.blackhole();
    let mut new = Line::open(proxy.address());
    old.say("b");
    new.say("c");
    assert!(old.is_silent() && new.is_silent());
    proxy.restore();
    assert_eq!([old.hear().unwrap(), new.hear().unwrap()], ["re b", "re c"]);
    // A cut closes connections in it as well.
    proxy.blackhole();
    old.say("d");
    proxy.cut();
    assert!(old.is_closed());
}

#[test]
fn a_delay_holds_up_both_directions() {
    let proxy = Proxy::start(echo("re"));
    let mut line = Line::open(proxy.address());
    line.ask("a");
    proxy.delay(Duration::from_millis(50));
    let start = Instant::now();
    assert_eq!(line.ask("b"), "re b");
    assert!(start.elapsed() >= Duration::from_millis(100));
    proxy.restore();
}

#[test]
fn new_connections_go_where_it_was_told_last() {
    let proxy = Proxy::start(echo("first"));
    let mut old = Line::open(proxy.address());
    old.ask("a");
    proxy.redirect(echo("second"));
    assert_eq!(Line::open(proxy.address()).ask("b"), "second b");
    assert_eq!(old.ask("c"), "first c");
}

#[test]
fn nothing_listens_after_it_is_gone() {
    let proxy = Proxy::start(echo("re"));
    let address = proxy.address();
    let mut line = Line::open(address);
    line.ask("a");
    drop(proxy);
    assert!(line.is_closed());
    assert!(TcpStream::connect(address).is_err());
}
