//! A small HTTP client: one connection, kept open, with as little work of its own as possible.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use countersign_core::{auth::sign_request, digest::Sha512, key::SecretKey, path::RepoPath};
use countersign_server::clock::Clock;
use uuid::Uuid;

use crate::Failure;

/// Makes connections; one for each thread of a measurement.
pub(crate) struct Client;

pub(crate) struct Connection {
    stream: TcpStream,
    clock: Clock,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(&self, address: SocketAddr) -> Result<Connection, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, clock: Clock::system(), buffer: vec![0; 64 * 1024] })
    }
}

impl Connection {
    pub(crate) fn get(&mut self, path: &str) -> Result<(), Failure> {
        self.exchange(&format!("GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n"))
    }

    pub(crate) fn signed_get(&mut self, key: &SecretKey, path: &str) -> Result<(), Failure> {
        let headers = self.auth_headers(key, "");
        self.exchange(&format!("GET {path} HTTP/1.1\r\nhost: bench\r\n{headers}\r\n"))
    }

    pub(crate) fn submit(&mut self, key: &SecretKey, path: &RepoPath, content: &[u8]) -> Result<(), Failure> {
        let signature = key.sign(&Sha512::of(content)).to_base64();
        let public_key = key.public_key().to_base64();
        let body = format!(
            r#"{{"file_path":"{path}","public_key":"{public_key}","signatures":{{"{path}":"{signature}"}}}}"#
        );
        let (headers, length) = (self.auth_headers(key, &body), body.len());
        self.exchange(&format!(
            "POST /v1/signatures HTTP/1.1\r\nhost: bench\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        ))
    }

    fn auth_headers(&self, key: &SecretKey, body: &str) -> String {
        let (now, nonce) = (self.clock.now(), Uuid::new_v4().to_string());
        let signature = sign_request(key, now, &nonce, body.as_bytes()).to_header();
        let (timestamp, public_key) = (now.to_header(), key.public_key());
        format!(
            "x-svc-timestamp: {timestamp}\r\nx-svc-nonce: {nonce}\r\nx-svc-sig: {signature}\r\nx-svc-pk: {public_key}\r\n"
        )
    }

    fn exchange(&mut self, request: &str) -> Result<(), Failure> {
        self.stream.write_all(request.as_bytes())?;
        let mut received = 0;
        loop {
            received += match self.stream.read(&mut self.buffer[received..])? {
                0 => return Err("the connection was closed".into()),
                count => count,
            };
            if is_complete(&self.buffer[..received])? {
                break;
            }
            if received == self.buffer.len() {
                self.buffer.resize(2 * received, 0);
            }
        }
        if self.buffer[..received].starts_with(b"HTTP/1.1 200 ") {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&self.buffer[..received]).into())
    }
}

fn is_complete(response: &[u8]) -> Result<bool, Failure> {
    let Some(end) = response.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(false) };
    let head = std::str::from_utf8(&response[..end])?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.ok_or("a response without content-length")?.parse()?;
    Ok(response.len() >= end + 4 + length)
}
