//! Witnesses that are slow, confused or hostile.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, atomic::AtomicBool, atomic::AtomicUsize, atomic::Ordering};
use std::{collections::VecDeque, io::Read as _, io::Write as _, thread, time::Duration};

use countersign_core::log::{checkpoint::SignedCheckpoint, checkpoint::WitnessRequest, note::NoteSignature};
use countersign_core::proof::bundle::Staple;
use countersign_core::values::{key::SecretKey, verifier_key::KeyKind, verifier_key::VerifierKey};

use super::asking::release;
use crate::support::metrics::{Page, await_value, free_address};
use crate::support::witnesses::{LogSetup, await_logged, checkpoint_of, log_key_of};
use crate::support::{Request, World, machine_clock::MachineClock, waiting::wait_until};

/// What a witness answers, given what it was asked.
type Answer = Box<dyn Fn(&WitnessRequest) -> String + Send>;

/// A witness in this process. Each answer of the list serves once, the last one for ever.
struct FakeWitness {
    address: SocketAddr,
    key: VerifierKey,
    asked: Arc<Mutex<Vec<WitnessRequest>>>,
}

fn secret() -> SecretKey {
    SecretKey::from_seed(&[77; 32])
}

fn key() -> VerifierKey {
    VerifierKey::new("fake.example", KeyKind::Witness, secret().public_key()).unwrap()
}

fn reply(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}

fn cosign(request: &WitnessRequest) -> String {
    let line = NoteSignature::sign(request.note.text(), &key(), &secret(), 1_700_000_000);
    reply("200 OK", "", &line.to_string())
}

/// The answer of a witness with another key, at a time of its own.
fn cosign_as(name: &'static str, seed: u8, time: u64) -> Answer {
    Box::new(move |request| {
        let (key, secret) = named_key(name, seed);
        reply("200 OK", "", &NoteSignature::sign(request.note.text(), &key, &secret, time).to_string())
    })
}

fn named_key(name: &str, seed: u8) -> (VerifierKey, SecretKey) {
    let secret = SecretKey::from_seed(&[seed; 32]);
    (VerifierKey::new(name, KeyKind::Witness, secret.public_key()).unwrap(), secret)
}

fn fixed(text: String) -> Answer {
    Box::new(move |_| text.clone())
}

impl FakeWitness {
    fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, mut answers) = (Arc::clone(&asked), VecDeque::from(answers));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(request) = read_request(&stream) else { continue };
                let answer = if answers.len() > 1 { answers.pop_front() } else { None };
                let text = answer.as_ref().unwrap_or_else(|| &answers[0])(&request);
                seen.lock().unwrap().push(request);
                let _ = (&stream).write_all(text.as_bytes());
            }
        });
        Self { address, key: key(), asked }
    }

    fn start_log(&self) -> World {
        let line = format!("witness fake {} http://{}/prefix/\nquorum fake\n", self.key, self.address);
        LogSetup { witnesses: Some(line), ..LogSetup::at(free_address()) }.start()
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn read_request(mut stream: &TcpStream) -> Option<WitnessRequest> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        // It does not show what it has cosigned.
        if head.starts_with("GET ") {
            return None;
        }
        assert!(head.starts_with("POST /prefix/add-checkpoint HTTP/1.1"), "{head}");
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0_usize) {
            return Some(WitnessRequest::parse(body.as_bytes()).expect("the server asks in the right form"));
        }
    }
}

fn is_cosigned(world: &World) -> bool {
    let log = log_key_of(&world.server);
    let shown = world.server.get("/log/checkpoint");
    let note = countersign_core::log::note::Note::parse(&shown.body);
    let signed = note.ok().and_then(|note| SignedCheckpoint::open(&note, &[log], &[key()]).ok());
    signed.is_some_and(|signed| signed.cosignatures().next().is_some())
}

#[test]
fn a_size_is_learnt_from_a_conflict_with_and_without_a_body() {
    let witness = FakeWitness::start(vec![
        // Asked before the log signs, it has seen nothing.
        Box::new(cosign),
        // It has seen one commit, says so once, and then nothing.
        fixed(reply("409 Conflict", "content-type: text/x.tlog.size\r\n", "1\n")),
        fixed(reply("409 Conflict", "", "")),
        fixed(reply("409 Conflict", "content-type: text/x.tlog.size\r\n", "1\n")),
        Box::new(cosign),
    ]);
    let world = witness.start_log();
    release(&world, "1.0");
    wait_until("the witness never gets there", || is_cosigned(&world));
    let asked = || witness.asked.lock().unwrap().clone();
    wait_until("no proof is sent", || asked().iter().any(|asked| asked.old > 0 && !asked.proof.is_empty()));
    assert!(asked().iter().all(|asked| asked.note.signatures().len() == 1), "the log's signature only");
    assert!(asked().iter().filter(|asked| asked.old == 0).count() >= 2, "it was asked for its size again");
}

#[test]
fn nothing_that_a_witness_answers_stops_the_log() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    target.set_nonblocking(true).unwrap();
    let elsewhere = format!("location: http://{}/\r\n", target.local_addr().unwrap());
    let lies: [(&str, Answer); 8] = [
        ("absent", fixed(reply("404 Not Found", "", ""))),
        ("forbidding", fixed(reply("403 Forbidden", "", "no"))),
        ("elsewhere", fixed(reply("307 Temporary Redirect", &elsewhere, ""))),
        ("long", fixed(reply("200 OK", "", &"x".repeat(1 << 20)))),
        ("unsigned", fixed(reply("200 OK", "", "no signature\n"))),
        ("refusing", fixed(reply("422 Unprocessable Entity", "", ""))),
        ("garbled", fixed("not HTTP at all\r\n\r\n".to_owned())),
        ("stranger", cosign_as("other.example", 78, 1_700_000_000)),
    ];
    let witnesses = lies.map(|(name, lie)| (name, FakeWitness::start(vec![lie])));
    let mut policy = String::new();
    for ((name, witness), seed) in witnesses.iter().zip(80..) {
        let key = named_key(&format!("{name}.example"), seed).0;
        policy += &format!("witness {name} {key} http://{}/prefix/\n", witness.address);
    }
    let names = witnesses.each_ref().map(|(name, _)| *name);
    policy += &format!("group all any {}\nquorum all\n", names.join(" "));
    let Some(clock) = MachineClock::new() else { return };
    let mut world = LogSetup { witnesses: Some(policy), ..LogSetup::at(free_address()) }.prepare();
    let launch = clock.give_long_to(world.server.launch().clone());
    world.server.change_launch(|_| launch);
    world.server.start_again();
    release(&world, "1.0");
    wait_until("they are not asked", || witnesses.iter().all(|(_, witness)| witness.asked() > 0));
    // For so long it waits for better ones.
    clock.set(20);
    await_logged(&world.server);
    let metrics = world.server.metrics_address();
    for (name, witness) in &witnesses {
        wait_until(&format!("{name} is not asked again"), || witness.asked() >= 2);
        let failures = format!("countersign_log_witness_failures_total{{witness=\"{name}\"}}");
        wait_until(&format!("{name} does not fail"), || Page::read(metrics).value(&failures) >= 1.0);
    }
    assert!(target.accept().is_err(), "a redirect is not followed");
    let checkpoint = world.server.get("/log/checkpoint").text();
    assert_eq!(checkpoint.lines().filter(|line| line.starts_with('\u{2014}')).count(), 1, "{checkpoint}");
    assert_eq!(Page::read(metrics).value("countersign_log_stopped"), 0.0);
    release(&world, "1.1");
    await_logged(&world.server);
}

#[test]
fn a_witness_that_wants_to_be_left_alone_is() {
    let witness = FakeWitness::start(vec![
        fixed(reply("429 Too Many Requests", "retry-after: 6\r\n", "")),
        Box::new(cosign),
    ]);
    let begun = std::time::Instant::now();
    let world = witness.start_log();
    release(&world, "1.0");
    wait_until("it is asked again", || witness.asked() >= 2);
    assert!(begun.elapsed() >= Duration::from_secs(6));
    wait_until("it cosigns", || is_cosigned(&world));
}

#[test]
fn a_witness_that_says_it_has_seen_more_stops_the_log() {
    let witness = FakeWitness::start(vec![fixed(reply("409 Conflict", "", "1000000\n"))]);
    let world = witness.start_log();
    release(&world, "1.0");
    await_value(world.server.metrics_address(), "countersign_log_stopped", 1.0);
    world.server.await_log("fake.example has seen 1000000 commits", 1);
    assert_eq!(world.server.get("/log/checkpoint").status, 503);
}

#[test]
fn one_of_three_witnesses_alone_neither_stops_the_log_nor_spoils_its_proofs() {
    const LATER: u64 = 4_000_000_000;
    let lies: [(&str, Answer); 2] = [
        ("it says that it has seen 9223372036854775807 commits", {
            fixed(reply("409 Conflict", "", "9223372036854775807\n"))
        }),
        ("the clock of the witness fake.example is ahead", {
            Box::new(|request| {
                let line = NoteSignature::sign(request.note.text(), &key(), &secret(), LATER);
                reply("200 OK", "", &line.to_string())
            })
        }),
    ];
    for (said, lie) in lies {
        let liar = FakeWitness::start(vec![Box::new(cosign), lie]);
        let honest = [("one.example", 81), ("two.example", 82)]
            .map(|(name, seed)| (FakeWitness::start(vec![cosign_as(name, seed, 1_700_000_000)]), name, seed));
        let mut policy = format!("witness fake {} http://{}/prefix/\n", key(), liar.address);
        for (witness, name, seed) in &honest {
            let key = named_key(name, *seed).0;
            policy += &format!("witness {name} {key} http://{}/prefix/\n", witness.address);
        }
        policy += "group all 2 fake one.example two.example\nquorum all\n";
        let world = LogSetup { witnesses: Some(policy), ..LogSetup::at(free_address()) }.start();
        let keys = honest.each_ref().map(|(_, name, seed)| named_key(name, *seed).0);
        for name in ["1.0", "1.1"] {
            let index = release(&world, name);
            await_logged(&world.server);
            let mut times = Vec::new();
            wait_until("the two others do not cosign", || {
                let reply = world.server.get(&format!("/v1/proof/{index}"));
                let Ok(staple) = Staple::parse(&reply.body) else { return false };
                let all = staple.proof.note.signers(&[&keys[..], &[key()]].concat()).unwrap();
                times = all.into_iter().filter_map(|signer| signer.time).collect();
                staple.proof.note.signers(&keys).unwrap().len() == 2
            });
            assert!(!times.contains(&LATER));
        }
        world.server.await_log(said, 1);
        let page = Page::read(world.server.metrics_address());
        assert_eq!(page.value("countersign_log_stopped"), 0.0);
        assert!(page.value("countersign_log_witness_failures_total{witness=\"fake\"}") >= 1.0);
        // Nor does it if it posts.
        let text = world.server.get("/log/checkpoint").text();
        let text = format!("{}\n", text.split_once("\n\n").unwrap().0);
        let line = NoteSignature::sign(&text, &key(), &secret(), LATER);
        let posted = Request::new("POST", "/log/cosignature").with_body(format!("{text}\n{line}"));
        let reply = world.server.send(&posted);
        assert_eq!(reply.status, 400, "{}", reply.text());
    }
}

/// A witness that keeps connections, and closes each one when the second request on it has come.
fn start_impatient(secret: fn() -> SecretKey) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let closed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&closed);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                let Some(request) = read_request(&stream) else { return };
                let line = NoteSignature::sign(request.note.text(), &key(), &secret(), 1_700_000_000);
                let body = line.to_string();
                let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                (&stream).write_all(text.as_bytes()).unwrap();
                if read_request(&stream).is_some() {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    (address, closed)
}

#[test]
fn a_connection_that_closes_under_a_question_is_followed_by_another_one() {
    let (address, closed) = start_impatient(secret);
    let line = format!("witness fake {} http://{address}/prefix/\nquorum fake\n", key());
    let mut world = LogSetup { witnesses: Some(line), ..LogSetup::at(free_address()) }.start();
    // The heartbeats come every two seconds, on the connection of the one before.
    wait_until("no connection is used again", || closed.load(Ordering::SeqCst) >= 3);
    wait_until("it cosigns", || is_cosigned(&world));
    let failures = "countersign_log_witness_failures_total{witness=\"fake\"}";
    assert_eq!(Page::read(world.server.metrics_address()).value(failures), 0.0);
    let log = world.server.stop_and_read_log();
    assert!(!log.contains("does not cosign"), "{log}");
}

#[test]
fn a_witness_that_has_cosigned_and_forgets_the_log_has_not_seen_nothing() {
    for status in ["404 Not Found", "403 Forbidden"] {
        let forgets = Arc::new(AtomicBool::new(false));
        let is_forgetful = Arc::clone(&forgets);
        let answer = move |request: &WitnessRequest| match is_forgetful.load(Ordering::SeqCst) {
            true => reply(status, "", "never heard of it"),
            false => cosign(request),
        };
        let witness = FakeWitness::start(vec![Box::new(answer)]);
        let mut world = witness.start_log();
        release(&world, "1.0");
        let signed = await_logged(&world.server);
        wait_until("it does not cosign", || is_cosigned(&world));
        world.server.stop();
        forgets.store(true, Ordering::SeqCst);
        world.server.start_again();
        world.server.await_log("says now that it does not know this log", 1);
        release(&world, "1.1");
        let asked = witness.asked();
        wait_until("it is not asked again", || witness.asked() > asked);
        let newest = checkpoint_of(&world.server);
        assert_eq!(newest.checkpoint(), signed.checkpoint(), "it signs nothing on this word");
        forgets.store(false, Ordering::SeqCst);
        await_logged(&world.server);
    }
}

#[test]
fn plain_http_is_for_this_machine_only() {
    let line = format!("witness far {} http://witness.example\nquorum far\n", key());
    let world = LogSetup { witnesses: Some(line), ..LogSetup::at(free_address()) }.prepare();
    let said = world.server.launch().refusal();
    assert!(said.contains("http://witness.example") && said.contains("https://"), "{said}");
}
