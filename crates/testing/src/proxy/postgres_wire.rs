//! The framing of PostgreSQL's protocol, as far as it takes to tell which answer belongs to which statement.
//!
//! PostgreSQL's documentation has it in the chapter "Message Formats".

use std::collections::{HashMap, VecDeque};

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// One connection.
#[derive(Debug, Default)]
pub(super) struct PostgresWire {
    phase: Phase,
    /// Unfinished messages.
    from_client: Vec<u8>,
    from_server: Vec<u8>,
    /// SQL by the name of a prepared statement, and of what was bound to its parameters.
    prepared: HashMap<Vec<u8>, String>,
    bound: HashMap<Vec<u8>, String>,
    expected: VecDeque<Expected>,
    /// The rest of the answer is swallowed too.
    is_losing: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client begins with messages that have no type.
    #[default]
    Start,
    /// The server answers a question about encryption with one byte.
    Asked,
    Messages,
    /// An encrypted connection, or a request to cancel.
    Opaque,
}

#[derive(Debug)]
enum Expected {
    Answer { statement: String, is_simple: bool },
    Ready,
}

/// The bytes that go on to the other side.
#[derive(Debug, Default)]
pub(super) struct Passed {
    pub(super) data: Vec<u8>,
    /// The connection is to be closed after it.
    pub(super) is_last: bool,
}

impl PostgresWire {
    pub(super) fn pass_request(&mut self, data: &[u8], is_lost: impl Fn(&str) -> bool) -> Passed {
        self.from_client.extend(data);
        let mut passed = Passed::default();
        loop {
            match self.phase {
                Phase::Opaque => passed.data.append(&mut self.from_client),
                Phase::Start => {
                    if let Some(message) = take_message(&mut self.from_client, 0) {
                        self.phase = phase_after(&message);
                        passed.data.extend(message);
                        continue;
                    }
                }
                Phase::Asked => {}
                Phase::Messages => {
                    if let Some(message) = take_message(&mut self.from_client, 1) {
                        if self.note_request(&message).is_some_and(|statement| is_lost(&statement)) {
                            passed.is_last = true;
                            return passed;
                        }
                        passed.data.extend(message);
                        continue;
                    }
                }
            }
            return passed;
        }
    }

    pub(super) fn pass_answer(&mut self, data: &[u8], is_lost: impl Fn(&str) -> bool) -> Passed {
        self.from_server.extend(data);
        let mut passed = Passed::default();
        if self.phase == Phase::Asked && !self.from_server.is_empty() {
            let answer = self.from_server.remove(0);
            passed.data.push(answer);
            self.phase = if answer == b'N' { Phase::Start } else { Phase::Opaque };
        }
        if self.phase == Phase::Opaque {
            passed.data.append(&mut self.from_server);
            return passed;
        }
        while let Some(message) = take_message(&mut self.from_server, 1) {
            let completed = self.note_answer(&message);
            self.is_losing |= completed.is_some_and(|statement| is_lost(&statement));
            if !self.is_losing {
                passed.data.extend(message);
            } else if message[0] == b'Z' {
                // Only now has the transaction ended.
                passed.is_last = true;
                return passed;
            }
        }
        passed
    }

    /// The statement that this message runs.
    fn note_request(&mut self, message: &[u8]) -> Option<String> {
        let mut texts = message[5..].split(|byte| *byte == 0);
        let mut next = || texts.next().unwrap_or_default().to_vec();
        let (statement, is_simple) = match message[0] {
            b'Q' => (String::from_utf8_lossy(&next()).into_owned(), true),
            b'E' => (self.bound.get(&next()).cloned().unwrap_or_default(), false),
            b'P' => {
                let (name, sql) = (next(), next());
                self.prepared.insert(name, String::from_utf8_lossy(&sql).into_owned());
                return None;
            }
            b'B' => {
                let (portal, name) = (next(), next());
                self.bound.insert(portal, self.prepared.get(&name).cloned().unwrap_or_default());
                return None;
            }
            b'S' => {
                self.expected.push_back(Expected::Ready);
                return None;
            }
            _ => return None,
        };
        self.expected.push_back(Expected::Answer { statement: statement.clone(), is_simple });
        if is_simple {
            self.expected.push_back(Expected::Ready);
        }
        Some(statement)
    }

    /// The statement that this message completes.
    fn note_answer(&mut self, message: &[u8]) -> Option<String> {
        match message[0] {
            // CommandComplete, EmptyQueryResponse, PortalSuspended.
            b'C' | b'I' | b's' => {
                let Some(Expected::Answer { statement, is_simple }) = self.expected.front() else {
                    return None;
                };
                let statement = statement.clone();
                // A simple query may have several statements: its answer ends with ReadyForQuery.
                if !is_simple {
                    self.expected.pop_front();
                }
                (message[0] == b'C').then_some(statement)
            }
            b'Z' => {
                // After an error the server skips what is before the end.
                while let Some(Expected::Answer { .. }) = self.expected.pop_front() {}
                None
            }
            _ => None,
        }
    }
}

fn phase_after(start: &[u8]) -> Phase {
    let code = start.get(4..8).map_or(0, number);
    match code {
        SSL_REQUEST | GSS_REQUEST => Phase::Asked,
        CANCEL_REQUEST => Phase::Opaque,
        _ => Phase::Messages,
    }
}

/// A whole message, whose length stands behind its type.
fn take_message(data: &mut Vec<u8>, type_length: usize) -> Option<Vec<u8>> {
    let length = data.get(type_length..type_length + 4).map(number)?;
    let length = type_length + usize::try_from(length).ok()?.max(4);
    (data.len() >= length).then(|| data.drain(..length).collect())
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}
