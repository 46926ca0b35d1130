//! A panic while the log cannot be written (D48): it is answered, and the server goes on.

use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use std::{env, fs::File, process::Command};

use countersign_core::values::time::Timestamp;
use countersign_server::operate::{config::LogFormat, config::LogLevel, observe};
use countersign_store::machine::clock::Clock;

use crate::support::{get, start_with};

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
    let logging = observe::start_logging(LogFormat::Text, LogLevel::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let panics = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&panics);
    let clock = Clock::new(move || {
        assert!(!flag.load(Ordering::Relaxed), "the clock fell off the wall");
        Timestamp::from_unix_seconds(1_700_000_000).unwrap()
    });
    let (_dir, running) = runtime.block_on(start_with(clock));
    // The status of the answer to a request that makes the server look at its clock.
    let ask = || {
        let headers = ["timestamp", "nonce", "sig", "pk"].map(|name| format!("x-svc-{name}: x\r\n")).concat();
        runtime.block_on(get(running.address, "/v1/pending_signatures", &headers)).status
    };
    assert_eq!(ask(), 401);
    panics.store(true, Ordering::Relaxed);
    assert_eq!((ask(), ask()), (500, 500));
    panics.store(false, Ordering::Relaxed);
    assert_eq!(ask(), 401);
    runtime.block_on(running.stop()).unwrap();
    drop(logging);
    let stats = observe::stats();
    // Two panics, and the two failures that came of them.
    assert!(stats.unwritten.get() >= 4 && stats.written.get() == 0, "{stats:?}");
}
