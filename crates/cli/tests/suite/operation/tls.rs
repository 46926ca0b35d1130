//! https with a certificate file, which is read again on SIGHUP.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::{path::Path, path::PathBuf, sync::Arc, time::Duration, time::Instant};

use countersign_testing::literals::{FIRST, SECOND};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, StreamOwned,
    crypto::ring::default_provider,
};
use tempfile::TempDir;

use crate::support::{EventStream, Launch, Request, TestServer};

/// A directory with `cert.pem` and `key.pem`.
struct Files(TempDir);

impl Files {
    fn new([cert, key]: [&str; 2]) -> Self {
        let files = Self(TempDir::new().unwrap());
        files.write(cert, key);
        files
    }

    fn write(&self, cert: &str, key: &str) {
        std::fs::write(self.path("cert.pem"), cert).unwrap();
        std::fs::write(self.path("key.pem"), key).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn adapt(&self, launch: Launch) -> Launch {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        launch.args(["--tls-cert", &text(&self.path("cert.pem")), "--tls-key", &text(&self.path("key.pem"))])
    }

    fn serve(&self) -> TestServer {
        TestServer::start_with(|launch| self.adapt(launch.args(["--log-level", "debug"])))
    }
}

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A connection of a client that trusts this certificate alone, after its handshake.
fn connect(
    address: SocketAddr,
    trusted: &str,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Result<Tls, std::io::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_protocol_versions(versions).unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from(address.ip().to_string()).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut tls = StreamOwned::new(connection, stream);
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock)?;
    }
    Ok(tls)
}

/// One request; the whole answer.
fn ask(tls: &mut Tls, path: &str) -> String {
    write!(tls, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    tls.read_to_string(&mut answer).unwrap();
    answer
}

fn is_presented(server: &TestServer, trusted: &str) -> bool {
    connect(server.address(), trusted, &[&TLS13]).is_ok()
}

#[test]
fn a_server_with_a_certificate_speaks_https_and_stops_in_order() {
    let files = Files::new(FIRST);
    let mut server = files.serve();
    assert!(server.ready_line().contains("https://127.0.0.1:"), "{}", server.ready_line());
    for (version, name) in [(&TLS13, ProtocolVersion::TLSv1_3), (&TLS12, ProtocolVersion::TLSv1_2)] {
        let mut tls = connect(server.address(), FIRST[0], &[version]).unwrap();
        assert_eq!(tls.conn.protocol_version(), Some(name));
        assert_eq!(tls.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        let answer = ask(&mut tls, "/v1/ping");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("pong"), "{answer}");
    }
    assert!(!is_presented(&server, SECOND[0]), "another certificate is not ours");

    // What is no request is refused in JSON here, too.
    let mut tls = connect(server.address(), FIRST[0], &[&TLS13]).unwrap();
    write!(tls, "GET /v1/ping HTTP/1.1\r\nhost: localhost\r\n\r\nnonsense\r\n\r\n").unwrap();
    let mut answers = String::new();
    tls.read_to_string(&mut answers).expect("an orderly end");
    assert!(answers.starts_with("HTTP/1.1 200 "), "{answers}");
    let (_, refused) = answers.split_once("HTTP/1.1 400 ").expect(&answers);
    let json = r#"{"error":"this is not a valid HTTP/1.1 request","code":"malformed_request"}"#;
    assert!(refused.ends_with(json), "{answers}");
    // Plain HTTP gets no answer, and a line in the log.
    let mut plain = TcpStream::connect(server.address()).unwrap();
    plain.write_all(b"GET /v1/ping HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    drop((tls, plain));

    // A stop waits neither for idle connections nor for handshakes, and ends streams in order.
    let silent = TcpStream::connect(server.address()).unwrap();
    let idle = connect(server.address(), FIRST[0], &[&TLS13]).unwrap();
    let asked = Instant::now();
    let log = server.stop_and_read_log();
    assert!(asked.elapsed() < Duration::from_secs(8), "it took {:?}", asked.elapsed());
    assert!(log.contains("https only"), "{log}");
    drop((silent, idle));
    server.start_again();
    let tls = connect(server.address(), FIRST[0], &[&TLS13]).unwrap();
    let mut events = EventStream::over(tls, &Request::get("/v1/events"));
    assert_eq!(events.head.status, 200);
    let first = events.next_block().unwrap();
    assert_eq!((first.comments, first.id.map(|id| id.len())), (1, Some(40)));
    assert_eq!(server.stop().code(), Some(0));
    assert_eq!(events.next_block(), None);
}

/// A handshake costs the server more than many an answer.
#[test]
fn an_address_cannot_have_handshakes_without_number() {
    let files = Files::new(FIRST);
    let (config, cert, key) = (files.path("limits.toml"), files.path("cert.pem"), files.path("key.pem"));
    let limits = "[rate_limits]\naddress_per_second = 1\naddress_burst = 3\n";
    std::fs::write(&config, format!("{limits}[tls]\ncert_file = {cert:?}\nkey_file = {key:?}\n")).unwrap();
    let server = TestServer::start_with(|launch| launch.args(["--config", config.to_str().unwrap()]));
    let asked = Instant::now();
    let shaken = (0..20).filter(|_| is_presented(&server, FIRST[0])).count();
    let allowed = 3 + asked.elapsed().as_secs() as usize + 1;
    assert!((1..=allowed).contains(&shaken), "{shaken} of 20");
}

#[test]
fn a_new_certificate_is_used_after_sighup_and_one_that_cannot_be_used_leaves_the_old_one() {
    let files = Files::new(FIRST);
    let mut server = files.serve();
    let assert_old_one_stays = |times| {
        server.signal("HUP");
        server.await_log("the old one stays", times);
        assert!(is_presented(&server, FIRST[0]));
    };
    for (before, (cert, key)) in
        [(SECOND[0], FIRST[1]), ("nonsense", FIRST[1]), (SECOND[0], "")].into_iter().enumerate()
    {
        files.write(cert, key);
        assert_old_one_stays(before + 1);
    }
    std::fs::remove_file(files.path("cert.pem")).unwrap();
    assert_old_one_stays(4);

    let mut old = connect(server.address(), FIRST[0], &[&TLS13]).unwrap();
    files.write(SECOND[0], SECOND[1]);
    assert!(is_presented(&server, FIRST[0]), "not before the signal");
    server.signal("HUP");
    server.await_log("certificate and key were read again", 1);
    assert!(is_presented(&server, SECOND[0]));
    assert!(!is_presented(&server, FIRST[0]));
    assert!(ask(&mut old, "/v1/ping").contains("pong"), "old connections go on");
    let log = server.stop_and_read_log();
    assert_eq!(log.matches("the old one stays").count(), 4, "{log}");
    assert!(log.contains("cert.pem") && log.contains("key.pem"), "{log}");
}

#[test]
fn files_that_cannot_be_used_are_errors_that_name_them() {
    let files = Files::new(FIRST);
    let data = files.path("data");
    let refusal = || files.adapt(Launch::serve(&data)).refusal();
    for ((cert, key), words) in [
        (("", FIRST[1]), "cert.pem"),
        (("nonsense", FIRST[1]), "no certificate"),
        ((FIRST[0], ""), "key.pem"),
        ((FIRST[0], FIRST[0]), "key.pem"),
        ((FIRST[0], SECOND[1]), "belong together"),
    ] {
        files.write(cert, key);
        let said = refusal();
        assert!(said.contains(words) && said.contains(".pem"), "{said}");
    }
    std::fs::remove_file(files.path("cert.pem")).unwrap();
    assert!(refusal().contains("cert.pem"));
    let half = Launch::serve(&data).args(["--tls-cert", files.path("key.pem").to_str().unwrap()]);
    assert!(half.refusal().contains("--tls-key"));
    let half = Launch::serve(&data).args(["--tls-key", files.path("key.pem").to_str().unwrap()]);
    assert!(half.refusal().contains("--tls-cert"));
    assert!(!data.exists(), "nothing is made before the certificate is read");
}
