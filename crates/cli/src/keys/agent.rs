//! A key that an ssh-agent holds: a small part of draft-ietf-sshm-ssh-agent, strict and bounded.

use std::io::{Read as _, Write as _};
use std::{io, os::unix::net::UnixStream, path::Path, path::PathBuf, time::Duration, time::Instant};

use countersign_core::values::{
    digest::Sha512, key::KeyFormat, key::PublicKey, key::Signature, key::encode_base64,
};
use ssh_key::{encoding, encoding::Decode as _, encoding::Encode as _, encoding::Reader as _};
use thiserror::Error;

use crate::keys::key_file::PublicHalf;
use crate::words::{error::CliError, error::shown_path, output::Output};

const SOCKET_VARIABLE: &str = "SSH_AUTH_SOCK";

const FAILURE: u8 = 5;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;

const MAX_ANSWER_BYTES: usize = 256 * 1024;

/// How long to wait for an agent. Someone may have to find the device first, and touch it, or answer a question.
const TIMEOUTS: AgentTimeouts =
    AgentTimeouts { note_after: Duration::from_secs(2), give_up_after: Duration::from_secs(120) };

/// A public key whose private half the agent has said to hold.
#[derive(Debug)]
pub(crate) struct AgentKey {
    agent: Agent,
    pub(crate) key: PublicKey,
    /// What the agent holds it as: its signatures differ.
    pub(crate) format: KeyFormat,
}

#[derive(Debug)]
struct Agent {
    socket: PathBuf,
    timeouts: AgentTimeouts,
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
    /// Finds the key of this file in the agent.
    pub(crate) fn find(path: &Path, key: PublicKey, output: Output) -> Result<Self, CliError> {
        let agent = Agent::from_environment(output).ok_or_else(|| {
            CliError::usage(
                format!("a public key signs through an ssh-agent, and {SOCKET_VARIABLE} names none"),
                "start one (`eval $(ssh-agent)`) and give it the key (`ssh-add FILE`), or pass the private key as --key",
            )
        })?;
        let held = agent.list().map_err(|error| to_cli_error(error, "list its keys"))?;
        let is_held = |format: &KeyFormat| held.contains(&key.to_ssh_blob(*format));
        if let Some(format) = KeyFormat::ALL.into_iter().find(is_held) {
            return Ok(Self { agent, key, format });
        }
        let shown = shown_path(path);
        let held = match held.len() {
            0 => "it shows no key at all".to_owned(),
            1 => "it has another one".to_owned(),
            keys => format!("it has {keys} others"),
        };
        let private = shown.strip_suffix(".pub").unwrap_or("FILE");
        Err(CliError::other(
            format!("the ssh-agent does not have the key {key} of {shown}: {held}"),
            format!(
                "`ssh-add {private}` gives it the private key; `ssh-add -X` unlocks an agent that is locked"
            ),
        ))
    }

    /// The keys that the agent holds and that can sign here; none where no agent answers.
    pub(crate) fn list_held(output: Output) -> Vec<PublicHalf> {
        let held = Agent::from_environment(output).and_then(|agent| agent.list().ok()).unwrap_or_default();
        held.iter().filter_map(|blob| parse_blob(blob)).collect()
    }

    /// Signs the digest (D3), or what a FIDO key signs for it (D255).
    pub(crate) fn sign_digest(&self, digest: &Sha512) -> Result<Signature, CliError> {
        self.sign(&self.format.message(digest), |signature| self.key.verify(digest, signature).is_ok())
    }

    /// Signs these bytes. An agent may be at the other end of a network, so what it returns is verified with
    /// `is_right`.
    pub(crate) fn sign(
        &self,
        bytes: &[u8],
        is_right: impl FnOnce(&Signature) -> bool,
    ) -> Result<Signature, CliError> {
        if self.format == KeyFormat::Fido {
            self.agent.output.show("Touch your key to sign.");
        }
        let signed =
            self.agent.sign(&self.key, self.format, bytes).and_then(|signature| match is_right(&signature) {
                true => Ok(signature),
                false => Err(AnswerError::WrongSignature),
            });
        signed.map_err(|error| to_cli_error(error, &format!("sign with the key {}", self.key)))
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
    /// The agent at SSH_AUTH_SOCK, if that names one.
    fn from_environment(output: Output) -> Option<Self> {
        let socket = std::env::var_os(SOCKET_VARIABLE).filter(|socket| !socket.is_empty())?;
        Some(Self { socket: socket.into(), timeouts: TIMEOUTS, output })
    }

    /// The keys that it holds, in OpenSSH's binary encoding.
    fn list(&self) -> Result<Vec<Vec<u8>>, AnswerError> {
        let answer = self.exchange(&[REQUEST_IDENTITIES])?;
        parse_identities(expect_type(&answer, IDENTITIES_ANSWER)?).map_err(|_| AnswerError::Malformed)
    }

    fn sign(&self, key: &PublicKey, format: KeyFormat, bytes: &[u8]) -> Result<Signature, AnswerError> {
        let blob = key.to_ssh_blob(format);
        let request = encode_sign_request(&blob, bytes).map_err(|_| AnswerError::Malformed)?;
        let answer = self.exchange(&request)?;
        parse_signature(format, expect_type(&answer, SIGN_RESPONSE)?).ok_or(AnswerError::Malformed)
    }

    /// Asks one question, on a connection of its own: agents close idle ones.
    fn exchange(&self, request: &[u8]) -> Result<Vec<u8>, AnswerError> {
        let mut stream = UnixStream::connect(&self.socket).map_err(AnswerError::Connection)?;
        let length = u32::try_from(request.len()).expect("requests are short");
        stream
            .set_write_timeout(Some(self.timeouts.give_up_after))
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
            (self.asked.elapsed(), self.agent.timeouts);
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

/// A key that can sign here. Keys of other types have other blobs.
fn parse_blob(blob: &[u8]) -> Option<PublicHalf> {
    let name = String::decode(&mut &*blob).ok()?;
    let (key, format) = PublicKey::parse_with_format(&format!("{name} {}", encode_base64(blob))).ok()?;
    Some(PublicHalf { key, format })
}

fn encode_sign_request(key: &[u8], bytes: &[u8]) -> encoding::Result<Vec<u8>> {
    const NO_FLAGS: u32 = 0;
    let mut request = vec![SIGN_REQUEST];
    key.encode(&mut request)?;
    // A slice: an array is encoded without its length.
    bytes.encode(&mut request)?;
    NO_FLAGS.encode(&mut request)?;
    Ok(request)
}

/// Parses a signature; `None` if it is not the encoding of a signature in this format.
fn parse_signature(format: KeyFormat, content: &[u8]) -> Option<Signature> {
    let mut reader = content;
    let encoded = Vec::<u8>::decode(&mut reader).ok()?;
    reader.finish(()).ok()?;
    let mut reader = encoded.as_slice();
    let (name, bytes) = (String::decode(&mut reader).ok()?, Vec::<u8>::decode(&mut reader).ok()?);
    if name != format.ssh_type() {
        return None;
    }
    let bytes: [u8; 64] = bytes.try_into().ok()?;
    match format {
        KeyFormat::Ed25519 => reader.is_empty().then(|| Signature::from_bytes(bytes)),
        KeyFormat::Fido => {
            let all = [&bytes[..], reader].concat();
            all.try_into().ok().map(Signature::from_fido_bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, thread};

    use tempfile::TempDir;

    use crate::keys::agent::*;

    /// An agent that does this with every question.
    fn agent(act: impl Fn(&mut UnixStream) + Send + 'static) -> (TempDir, Agent) {
        let dir = TempDir::new().expect("a directory");
        let socket = dir.path().join("agent");
        let listener = UnixListener::bind(&socket).expect("a socket");
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut length = [0; 4];
                if stream.read_exact(&mut length).is_ok() {
                    let mut request = vec![0; u32::from_be_bytes(length) as usize];
                    stream.read_exact(&mut request).expect("a whole request");
                    act(&mut stream);
                }
            }
        });
        let give_up_after = Duration::from_secs(60);
        let timeouts = AgentTimeouts { note_after: Duration::from_millis(20), give_up_after };
        (dir, Agent { socket, timeouts, output: Output::silent() })
    }

    /// An agent that answers with these bytes, and then waits for the other side to leave.
    fn answering(answer: Vec<u8>) -> (TempDir, Agent) {
        agent(move |stream| {
            let _ = stream.write_all(&answer);
            let _ = stream.read(&mut [0]);
        })
    }

    fn sign((_dir, agent): &(TempDir, Agent)) -> Result<Signature, AnswerError> {
        agent.sign(&key(), KeyFormat::Ed25519, b"content")
    }

    fn key() -> PublicKey {
        countersign_core::values::key::SecretKey::from_seed(&[7; 32]).public_key()
    }

    fn string(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len()).expect("it is short").to_be_bytes(), bytes].concat()
    }

    fn sign_response(kind: &[u8], signature: &[u8]) -> Vec<u8> {
        let inner = [string(kind), string(signature)].concat();
        string(&[vec![SIGN_RESPONSE], string(&inner)].concat())
    }

    #[test]
    fn answers_that_are_not_of_the_protocol_are_refused() {
        let message = sign_response(b"ssh-ed25519", &[1; 64])[4..].to_vec();
        for (what, answer) in [
            ("an empty message", 0_u32.to_be_bytes().to_vec()),
            ("a message that is too long", (256 * 1024 + 1_u32).to_be_bytes().to_vec()),
            ("a message of 4 GiB", u32::MAX.to_be_bytes().to_vec()),
            ("another protocol", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
            ("another type of message", string(&[IDENTITIES_ANSWER, 0, 0, 0, 0])),
            ("success without a signature", string(&[6])),
            ("a type without content", string(&[SIGN_RESPONSE])),
            ("bytes after the signature", string(&[message.as_slice(), b"x"].concat())),
            ("a signature that is cut", string(&message[..message.len() - 1])),
            ("another type of signature", sign_response(b"ssh-rsa", &[1; 64])),
            ("the signature of a FIDO key", sign_response(b"sk-ssh-ed25519@openssh.com", &[1; 64])),
            ("a signature of 63 bytes", sign_response(b"ssh-ed25519", &[1; 63])),
            ("a signature of 65 bytes", sign_response(b"ssh-ed25519", &[1; 65])),
        ] {
            let found = sign(&answering(answer));
            assert!(matches!(found, Err(AnswerError::Malformed)), "{what}: {found:?}");
        }
    }

    #[test]
    fn an_agent_is_heard_out_but_not_for_ever() {
        let answer = sign_response(b"ssh-ed25519", &[1; 64]);
        let in_pieces = agent(move |stream| {
            for piece in answer.chunks(40) {
                let _ = stream.write_all(piece);
                thread::sleep(Duration::from_millis(30));
            }
        });
        assert!(sign(&in_pieces).is_ok());
        let leaves_in_the_middle = agent(|stream| drop(stream.write_all(&[0, 0, 0, 100, SIGN_RESPONSE])));
        for leaves in [agent(|_| {}), leaves_in_the_middle] {
            assert!(matches!(sign(&leaves), Err(AnswerError::Gone(_))));
        }
        let drop_by_drop = agent(|stream| {
            let _ = stream.write_all(&[0, 1, 0, 0]);
            while stream.write_all(&[SIGN_RESPONSE]).is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        });
        for mut slow in [answering(Vec::new()), drop_by_drop] {
            slow.1.timeouts.give_up_after = Duration::from_millis(300);
            let asked = Instant::now();
            assert!(matches!(sign(&slow), Err(AnswerError::TimedOut)));
            assert!(asked.elapsed() < Duration::from_secs(10));
        }
    }

    #[test]
    fn the_list_of_keys_is_read_strictly() {
        let (key, other) = (key().to_ssh_blob(KeyFormat::Ed25519), b"some other key".to_vec());
        let list = |count: u32, tail: &[u8]| {
            let entries = [string(&other), string(b"a comment"), string(&key), string(b"\xff\x1b")].concat();
            string(&[&[IDENTITIES_ANSWER], count.to_be_bytes().as_slice(), &entries, tail].concat())
        };
        let read = |answer| {
            let (_dir, agent) = answering(answer);
            agent.list()
        };
        assert_eq!(read(list(2, b"")).ok(), Some(vec![other.clone(), key.clone()]));
        for wrong in [list(1, b""), list(3, b""), list(u32::MAX, b""), list(2, b"x")] {
            assert!(matches!(read(wrong), Err(AnswerError::Malformed)));
        }
    }
}
