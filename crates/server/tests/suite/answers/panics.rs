//! A panic while the log cannot be written (D48): it is answered, and the server goes on.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use std::{env, fs::File, net::SocketAddr, net::TcpStream, process::Command, time::Duration};

use countersign_core::values::time::Timestamp;
use countersign_server::operate::{config::LogFormat, config::LogLevel, observe};
use countersign_store::machine::clock::Clock;

use crate::support::start_with;

const CHILD: &str = "IS_A_CHILD_WITHOUT_A_LOG";

/// The test begins itself anew, with a standard error that is full.
#[test]
fn a_panic_is_answered_when_nothing_can_be_logged() {
    if env::var_os(CHILD).is_some() {
        return serve_and_panic();
    }
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut again = Command::new(env::current_exe().unwrap());
    again.args(["--exact", "answers::panics::a_panic_is_answered_when_nothing_can_be_logged", "--nocapture"]);
    let output = again.env(CHILD, "1").stderr(full).output().unwrap();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stdout));
}

fn serve_and_panic() {
    let logging = observe::start_logging(LogFormat::Text, LogLevel::Info).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let panics = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&panics);
    let clock = Clock::new(move || {
        assert!(!flag.load(Ordering::Relaxed), "the clock fell off the wall");
        Timestamp::from_unix_seconds(1_700_000_000).unwrap()
    });
    let (_dir, running) = runtime.block_on(start_with(clock));
    assert_eq!(ask(running.address), 401);
    panics.store(true, Ordering::Relaxed);
    assert_eq!((ask(running.address), ask(running.address)), (500, 500));
    panics.store(false, Ordering::Relaxed);
    assert_eq!(ask(running.address), 401);
    runtime.block_on(running.stop()).unwrap();
    drop(logging);
    let stats = observe::stats();
    // Two panics, and the two failures that came of them.
    assert!(stats.unwritten.get() >= 4 && stats.written.get() == 0, "{stats:?}");
}

/// The status of the answer to a request that makes the server look at its clock.
fn ask(address: SocketAddr) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let headers = ["timestamp: x", "nonce: x", "sig: x", "pk: x"];
    let headers: String = headers.iter().map(|header| format!("X-svc-{header}\r\n")).collect();
    let request = format!(
        "GET /v1/pending_signatures HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}
