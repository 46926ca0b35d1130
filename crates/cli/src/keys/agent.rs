//! A key that an ssh-agent holds: a small part of draft-ietf-sshm-ssh-agent, strict and bounded.

#[cfg(test)]
mod tests;

use std::io::{Read as _, Write as _};
use std::{ffi::OsString, io, os::unix::net::UnixStream, path::PathBuf, time::Duration, time::Instant};

use countersign_core::values::key::{PublicKey, Signature};
use countersign_core::values::{digest::Sha512, other_format::FormatMessage, wire};
use ssh_key::{encoding, encoding::Decode as _, encoding::Encode as _, encoding::Reader as _};
use thiserror::Error;

use crate::words::{error::CliError, output::Output};

pub(crate) const SOCKET_VARIABLE: &str = "SSH_AUTH_SOCK";

const FAILURE: u8 = 5;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;

const MAX_ANSWER_BYTES: usize = 256 * 1024;

/// How long to wait for an agent. Someone may have to find the device first, and touch it, or answer a question.
const PATIENCE: AgentTimeouts =
    AgentTimeouts { note_after: Duration::from_secs(2), give_up_after: Duration::from_secs(120) };

/// A public key whose private half the agent has said to hold.
#[derive(Debug)]
pub(crate) struct AgentKey {
    agent: Agent,
    key: PublicKey,
}

#[derive(Debug)]
pub(crate) enum AgentError {
    /// The agent answers, but does not hold the key; `keys` others it does.
    UnknownKey {
        keys: usize,
    },
    Failed(CliError),
}

#[derive(Debug)]
struct Agent {
    socket: PathBuf,
    patience: AgentTimeouts,
    output: Output,
}

#[derive(Debug, Clone, Copy)]
struct AgentTimeouts {
    note_after: Duration,
    give_up_after: Duration,
}

/// Why there was no answer, or none that makes sense.
#[derive(Debug, Error)]
enum AnswerError {
    #[error("it is not reachable at {SOCKET_VARIABLE}")]
    Connection(#[source] io::Error),
    #[error("it ended the conversation")]
    Gone(#[source] io::Error),
    #[error("it did not answer in time")]
    TimedOut,
    #[error("it refused")]
    Refused,
    #[error("its answer is not one of the agent protocol")]
    Malformed,
    #[error("its signature is wrong")]
    WrongSignature,
}

impl AgentKey {
    /// Finds the key in the agent. `socket` is the value of SSH_AUTH_SOCK.
    pub(crate) fn find(socket: Option<OsString>, key: PublicKey, output: Output) -> Result<Self, AgentError> {
        let Some(socket) = socket.filter(|socket| !socket.is_empty()) else {
            return Err(AgentError::Failed(CliError::usage(
                format!("a public key signs through an ssh-agent, and {SOCKET_VARIABLE} names none"),
                "start one (`eval $(ssh-agent)`) and give it the key (`ssh-add FILE`), or pass the private key as --key",
            )));
        };
        let agent = Agent { socket: socket.into(), patience: PATIENCE, output };
        let held = agent.list().map_err(|error| AgentError::Failed(to_cli_error(error, "list its keys")))?;
        if held.contains(&key.to_ssh_blob()) {
            Ok(Self { agent, key })
        } else {
            Err(AgentError::UnknownKey { keys: held.len() })
        }
    }

    /// The Ed25519 keys that the agent holds; none where no agent answers.
    pub(crate) fn list_held(socket: Option<OsString>, output: Output) -> Vec<PublicKey> {
        let Some(socket) = socket.filter(|socket| !socket.is_empty()) else { return Vec::new() };
        let agent = Agent { socket: socket.into(), patience: PATIENCE, output };
        let held = agent.list().unwrap_or_default();
        held.iter().filter_map(|blob| parse_ssh_blob(blob)).collect()
    }

    pub(crate) fn public_key(&self) -> PublicKey {
        self.key
    }

    pub(crate) fn sign(&self, digest: &Sha512) -> Result<Signature, CliError> {
        let what = format!("sign with the key {}", self.key);
        self.agent.sign(&self.key, digest).map_err(|error| to_cli_error(error, &what))
    }

    pub(crate) fn sign_message(&self, message: &FormatMessage) -> Result<Signature, CliError> {
        let what = format!("sign with the key {}", self.key);
        let signed = self.agent.request_signature(&self.key, message.as_bytes());
        let signed = signed.and_then(|signature| match message.is_signed_by(&self.key, &signature) {
            true => Ok(signature),
            false => Err(AnswerError::WrongSignature),
        });
        signed.map_err(|error| to_cli_error(error, &what))
    }
}

impl AgentKey {
    /// The text of a log's checkpoint. The caller verifies the signature, together with the checkpoint.
    pub(crate) fn sign_text(&self, text: &str) -> Result<Signature, CliError> {
        let what = format!("sign with the key {}", self.key);
        self.agent.request_signature(&self.key, text.as_bytes()).map_err(|error| to_cli_error(error, &what))
    }
}

fn to_cli_error(error: AnswerError, what: &str) -> CliError {
    let hint = match error {
        AnswerError::Connection(_) | AnswerError::Gone(_) => {
            "check that the agent still runs (`ssh-add -l`), or pass the private key as --key"
        }
        AnswerError::TimedOut => {
            "touch the device or answer the agent's question when it asks, and run it again"
        }
        AnswerError::Refused => {
            "confirm when it asks; a locked agent is unlocked with `ssh-add -X`, and `ssh-add -l` lists what it holds"
        }
        AnswerError::Malformed | AnswerError::WrongSignature => {
            "do not trust this agent; check what SSH_AUTH_SOCK points to"
        }
    };
    CliError::other(format!("the ssh-agent did not {what}"), hint).because(error)
}

impl Agent {
    /// The keys that it holds, in OpenSSH's binary encoding.
    fn list(&self) -> Result<Vec<Vec<u8>>, AnswerError> {
        let answer = self.exchange(&[REQUEST_IDENTITIES])?;
        parse_identities(expect_type(&answer, IDENTITIES_ANSWER)?).map_err(|_| AnswerError::Malformed)
    }

    /// An agent may be at the other end of a network: what it returns is verified.
    fn sign(&self, key: &PublicKey, digest: &Sha512) -> Result<Signature, AnswerError> {
        let signature = self.request_signature(key, digest.as_bytes())?;
        match key.verify(digest, &signature) {
            Ok(()) => Ok(signature),
            Err(_) => Err(AnswerError::WrongSignature),
        }
    }

    fn request_signature(&self, key: &PublicKey, bytes: &[u8]) -> Result<Signature, AnswerError> {
        let request = encode_sign_request(key, bytes).map_err(|_| AnswerError::Malformed)?;
        let answer = self.exchange(&request)?;
        parse_signature(expect_type(&answer, SIGN_RESPONSE)?).ok_or(AnswerError::Malformed)
    }

    /// Asks one question, on a connection of its own: agents close idle ones.
    fn exchange(&self, request: &[u8]) -> Result<Vec<u8>, AnswerError> {
        let mut stream = UnixStream::connect(&self.socket).map_err(AnswerError::Connection)?;
        let length = u32::try_from(request.len()).expect("requests are short");
        stream
            .set_write_timeout(Some(self.patience.give_up_after))
            .and_then(|()| stream.write_all(&[&length.to_be_bytes(), request].concat()))
            .map_err(AnswerError::Gone)?;
        let mut answer = Answer { stream, agent: self, asked: Instant::now(), noted: false };
        let mut length = [0; 4];
        answer.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length == 0 || length > MAX_ANSWER_BYTES {
            return Err(AnswerError::Malformed);
        }
        let mut message = vec![0; length];
        answer.read_exact(&mut message)?;
        Ok(message)
    }
}

/// An answer that is awaited: not for ever, and after a while not in silence.
struct Answer<'a> {
    stream: UnixStream,
    agent: &'a Agent,
    asked: Instant,
    noted: bool,
}

impl Answer<'_> {
    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), AnswerError> {
        let mut filled = 0;
        while filled < buffer.len() {
            let wait = self.next_wait()?;
            self.stream.set_read_timeout(Some(wait)).map_err(AnswerError::Gone)?;
            match self.stream.read(&mut buffer[filled..]) {
                Ok(0) => return Err(AnswerError::Gone(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => filled += read,
                Err(error) if is_temporary(&error) => {}
                Err(error) => return Err(AnswerError::Gone(error)),
            }
        }
        Ok(())
    }

    /// How long the next read may take.
    fn next_wait(&mut self) -> Result<Duration, AnswerError> {
        let (waited, AgentTimeouts { note_after, give_up_after }) =
            (self.asked.elapsed(), self.agent.patience);
        if waited >= give_up_after {
            return Err(AnswerError::TimedOut);
        }
        if !self.noted && waited < note_after {
            return Ok(note_after - waited);
        }
        if !self.noted {
            self.noted = true;
            self.agent.output.show("waiting for the agent: it may want a touch or a confirmation");
        }
        Ok(give_up_after - waited)
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// The content of an answer that must be of this type.
fn expect_type(message: &[u8], expected: u8) -> Result<&[u8], AnswerError> {
    match message.split_first() {
        Some((found, content)) if *found == expected => Ok(content),
        Some((&FAILURE, _)) => Err(AnswerError::Refused),
        Some(_) | None => Err(AnswerError::Malformed),
    }
}

fn parse_identities(content: &[u8]) -> encoding::Result<Vec<Vec<u8>>> {
    let mut reader = content;
    let count = u32::decode(&mut reader)?;
    let mut keys = Vec::new();
    // A count that is too high ends with the bytes that are there.
    for _ in 0..count {
        keys.push(Vec::decode(&mut reader)?);
        let _comment = Vec::<u8>::decode(&mut reader)?;
    }
    reader.finish(keys)
}

/// Parses a key; `None` if it is of another kind.
fn parse_ssh_blob(blob: &[u8]) -> Option<PublicKey> {
    let bytes = blob.last_chunk::<32>()?;
    PublicKey::from_bytes(*bytes).ok().filter(|key| key.to_ssh_blob() == blob)
}

fn encode_sign_request(key: &PublicKey, bytes: &[u8]) -> encoding::Result<Vec<u8>> {
    const NO_FLAGS: u32 = 0;
    let mut request = vec![SIGN_REQUEST];
    key.to_ssh_blob().encode(&mut request)?;
    // A slice: an array is encoded without its length.
    bytes.encode(&mut request)?;
    NO_FLAGS.encode(&mut request)?;
    Ok(request)
}

/// Parses a signature; `None` if it is not the encoding of an Ed25519 signature.
fn parse_signature(content: &[u8]) -> Option<Signature> {
    let mut reader = content;
    let encoded = Vec::<u8>::decode(&mut reader).ok()?;
    reader.finish(()).ok()?;
    let mut reader = encoded.as_slice();
    let (kind, bytes) = (String::decode(&mut reader).ok()?, Vec::<u8>::decode(&mut reader).ok()?);
    reader.finish(()).ok()?;
    let bytes: [u8; 64] = bytes.try_into().ok()?;
    (kind == wire::SSH_KEY_TYPE).then(|| Signature::from_bytes(bytes))
}
