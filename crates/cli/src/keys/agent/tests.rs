#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{os::unix::net::UnixListener, thread};

use countersign_core::values::key::SecretKey;
use ssh_key::encoding::base64::{Base64, Encoding as _};
use tempfile::TempDir;

use crate::{keys::agent::*, words::output::ColorChoice};

const PATIENT: AgentTimeouts =
    AgentTimeouts { note_after: Duration::from_millis(20), give_up_after: Duration::from_secs(60) };
const HASTY: AgentTimeouts = AgentTimeouts { give_up_after: Duration::from_millis(300), ..PATIENT };

/// An agent that answers every question with these bytes, and then waits for the other side to leave.
struct FakeAgent {
    dir: TempDir,
}

impl FakeAgent {
    fn answering(answer: Vec<u8>) -> Self {
        Self::acting(move |stream| {
            let _ = stream.write_all(&answer);
            let _ = stream.read(&mut [0]);
        })
    }

    fn acting(act: impl Fn(&mut UnixStream) + Send + 'static) -> Self {
        let dir = TempDir::new().unwrap();
        let listener = UnixListener::bind(dir.path().join("agent")).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut length = [0; 4];
                if stream.read_exact(&mut length).is_ok() {
                    let mut request = vec![0; u32::from_be_bytes(length) as usize];
                    stream.read_exact(&mut request).unwrap();
                    act(&mut stream);
                }
            }
        });
        Self { dir }
    }

    fn agent(&self, patience: AgentTimeouts) -> Agent {
        let output = Output::new(true, false, ColorChoice::Never);
        Agent { socket: self.dir.path().join("agent"), patience, output }
    }

    fn sign(&self) -> Result<Signature, AnswerError> {
        self.agent(PATIENT).sign(&secret().public_key(), &digest())
    }

    fn sign_hastily(&self) -> Result<Signature, AnswerError> {
        self.agent(HASTY).sign(&secret().public_key(), &digest())
    }
}

fn secret() -> SecretKey {
    SecretKey::from_seed(&[7; 32])
}

fn digest() -> Sha512 {
    Sha512::of(b"content")
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

fn signature_bytes(signature: Signature) -> Vec<u8> {
    Base64::decode_vec(&signature.to_base64()).unwrap()
}

fn sign_response(kind: &[u8], signature: &[u8]) -> Vec<u8> {
    let inner = [string(kind), string(signature)].concat();
    string(&[vec![SIGN_RESPONSE], string(&inner)].concat())
}

fn right_signature() -> Vec<u8> {
    signature_bytes(secret().sign(&digest()))
}

#[test]
fn the_agent_is_asked_to_sign_the_raw_bytes_of_the_digest() {
    let request = encode_sign_request(&secret().public_key(), digest().as_bytes()).unwrap();
    let (blob, content) = (string(&secret().public_key().to_ssh_blob()), string(digest().as_bytes()));
    assert_eq!(request, [vec![13], blob, content, vec![0; 4]].concat());
}

#[test]
fn a_right_signature_is_returned() {
    let agent = FakeAgent::answering(sign_response(b"ssh-ed25519", &right_signature()));
    assert_eq!(agent.sign().unwrap(), secret().sign(&digest()));
}

#[test]
fn an_answer_may_come_in_pieces() {
    let answer = sign_response(b"ssh-ed25519", &right_signature());
    let agent = FakeAgent::acting(move |stream| {
        for piece in answer.chunks(40) {
            stream.write_all(piece).unwrap();
            thread::sleep(Duration::from_millis(30));
        }
    });
    agent.sign().unwrap();
}

#[test]
fn a_signature_by_another_key_or_over_other_bytes_is_refused() {
    for wrong in [SecretKey::from_seed(&[8; 32]).sign(&digest()), secret().sign(&Sha512::of(b"other"))] {
        let agent = FakeAgent::answering(sign_response(b"ssh-ed25519", &signature_bytes(wrong)));
        assert!(matches!(agent.sign(), Err(AnswerError::WrongSignature)));
    }
}

#[test]
fn answers_that_are_not_of_the_protocol_are_refused() {
    let right = right_signature();
    let message = sign_response(b"ssh-ed25519", &right)[4..].to_vec();
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
        ("another type of signature", sign_response(b"ssh-rsa", &right)),
        ("the signature of a FIDO key", sign_response(b"sk-ssh-ed25519@openssh.com", &right)),
        ("a signature of 63 bytes", sign_response(b"ssh-ed25519", &right[..63])),
        ("a signature of 65 bytes", sign_response(b"ssh-ed25519", &[right.as_slice(), &[0]].concat())),
    ] {
        let found = FakeAgent::answering(answer).sign();
        assert!(matches!(found, Err(AnswerError::Malformed)), "{what}: {found:?}");
    }
}

#[test]
fn a_refusal_is_told_from_nonsense() {
    assert!(matches!(FakeAgent::answering(string(&[FAILURE])).sign(), Err(AnswerError::Refused)));
}

#[test]
fn an_agent_that_leaves_or_is_not_there_is_an_error() {
    let leaves = FakeAgent::acting(|_| {});
    assert!(matches!(leaves.sign(), Err(AnswerError::Gone(_))));
    let in_the_middle = FakeAgent::acting(|stream| stream.write_all(&[0, 0, 0, 100, SIGN_RESPONSE]).unwrap());
    assert!(matches!(in_the_middle.sign(), Err(AnswerError::Gone(_))));
    std::fs::remove_file(leaves.dir.path().join("agent")).unwrap();
    assert!(matches!(leaves.sign(), Err(AnswerError::Connection(_))));
}

#[test]
fn an_agent_that_is_silent_or_answers_drop_by_drop_is_given_up() {
    let silent = FakeAgent::answering(Vec::new());
    assert!(matches!(silent.sign_hastily(), Err(AnswerError::TimedOut)));
    let slow = FakeAgent::acting(|stream| {
        let _ = stream.write_all(&[0, 1, 0, 0]);
        while stream.write_all(&[SIGN_RESPONSE]).is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    });
    let asked = Instant::now();
    assert!(matches!(slow.sign_hastily(), Err(AnswerError::TimedOut)));
    assert!(asked.elapsed() < Duration::from_secs(10));
}

#[test]
fn the_list_of_keys_is_read_strictly() {
    let (key, other) = (secret().public_key().to_ssh_blob(), b"some other key".to_vec());
    let list = |count: u32, tail: &[u8]| {
        let entries = [string(&other), string(b"a comment"), string(&key), string(b"\xff\x1b")].concat();
        string(&[&[IDENTITIES_ANSWER], count.to_be_bytes().as_slice(), &entries, tail].concat())
    };
    let read = |answer| FakeAgent::answering(answer).agent(PATIENT).list();
    assert_eq!(read(list(2, b"")).unwrap(), vec![other.clone(), key.clone()]);
    assert_eq!(read(string(&[IDENTITIES_ANSWER, 0, 0, 0, 0])).unwrap(), Vec::<Vec<u8>>::new());
    for wrong in [list(1, b""), list(3, b""), list(u32::MAX, b""), list(2, b"x")] {
        assert!(matches!(read(wrong), Err(AnswerError::Malformed)));
    }
    assert!(matches!(read(string(&[FAILURE])), Err(AnswerError::Refused)));
}

#[test]
fn a_key_needs_an_agent_that_holds_it() {
    let output = Output::new(true, false, ColorChoice::Never);
    let key = secret().public_key();
    for socket in [None, Some(OsString::new())] {
        let Err(AgentError::Failed(error)) = AgentKey::find(socket, key, output) else {
            panic!("it is found")
        };
        assert!(error.to_string().contains(SOCKET_VARIABLE) && error.hint().contains("ssh-add"), "{error}");
    }
    let list = [&[IDENTITIES_ANSWER, 0, 0, 0, 1], string(b"other").as_slice(), &string(b"")].concat();
    let agent = FakeAgent::answering(string(&list));
    let found = AgentKey::find(Some(agent.dir.path().join("agent").into()), key, output);
    assert!(matches!(found, Err(AgentError::UnknownKey { keys: 1 })));
}
