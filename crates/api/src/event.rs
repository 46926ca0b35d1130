//! Events: what happened, as the message of a commit tells it. They prove nothing.

use std::collections::BTreeSet;

use countersign_core::values::json::{Json, ParseError};
use countersign_core::values::key::{KeyError, PublicKey};
use countersign_core::values::{bounds::EVENT_BYTES, path::RepoPath, time::Timestamp};
use countersign_core::{documents::layout, json_words, rules::snapshot};
use serde::Serialize;

/// The kinds of events, in the order of a project's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// A project was registered and collects its first signatures.
    Registration,
    /// Other signers were proposed for a project, or proposed ones replaced.
    Proposal,
    /// A signature was collected.
    Signature,
    /// The signatures on a release are enough.
    Complete,
    /// Proposed signers have all consent, and wait until they take effect.
    Agreed,
    /// One of several signatures that a veto needs was recorded.
    Veto,
    /// The masters vetoed proposed signers.
    Vetoed,
    /// Proposed signers are those in force now.
    Activated,
    /// A release was registered, or corrected while it collected signatures.
    Release,
    /// A release that collected signatures was taken back.
    Withdrawn,
    /// A signer objected to a release.
    Objection,
    /// A signer took an objection back.
    ObjectionWithdrawn,
    /// A builder got the same files from the source.
    Rebuild,
    /// A builder got other files from the source.
    RebuildDiffers,
    /// One of several signatures that a revocation needs was recorded.
    Revocation,
    /// A release was revoked.
    Revoked,
    /// The operator dropped a pending registration or proposal.
    Dropped,
}

/// One thing that happened to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    pub path: RepoPath,
    /// The key whose request it was, if the commit says so.
    pub key: Option<PublicKey>,
    /// The time at which agreed signers take effect.
    pub due: Option<Timestamp>,
}

/// Which events a listener wants: those that pass every condition that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Wants events at this path, or below it.
    pub prefix: Option<RepoPath>,
    pub kinds: Option<BTreeSet<EventKind>>,
    /// Wants events on what waits for this key's signature.
    pub key: Option<PublicKey>,
}

impl EventFilter {
    /// A key to filter by. Bytes that are no valid key are fine: nothing waits for them.
    pub fn parse_key(text: &str) -> Result<PublicKey, KeyError> {
        PublicKey::parse(text).or_else(|error| PublicKey::parse_recorded(text).map_err(|_| error))
    }

    /// Whether an event passes, as far as it alone can tell.
    pub fn matches(&self, event: &Event) -> bool {
        let is_there = |prefix: &RepoPath| event.path == *prefix || event.path.is_inside(prefix);
        self.prefix.as_ref().is_none_or(is_there)
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.kind))
    }
}

impl Event {
    /// Whether it is about one of these files, which are sorted. Signers that take effect are about all that
    /// collects signatures under them.
    pub fn concerns(&self, waiting: &[RepoPath]) -> bool {
        match layout::project_of_active_signers(&self.path) {
            Some(project) => waiting.iter().any(|file| file.is_inside(&project)),
            None => waiting.binary_search(&self.path).is_ok(),
        }
    }
}

json_words!(EventKind {
    Registration = "registration",
    Proposal = "proposal",
    Signature = "signature",
    Complete = "complete",
    Agreed = "agreed",
    Veto = "veto",
    Vetoed = "vetoed",
    Activated = "activated",
    Release = "release",
    Withdrawn = "withdrawn",
    Objection = "objection",
    ObjectionWithdrawn = "objection-withdrawn",
    Rebuild = "rebuild",
    RebuildDiffers = "rebuild-differs",
    Revocation = "revocation",
    Revoked = "revoked",
    Dropped = "dropped",
} "must be a kind of event");

/// What a commit with this message made happen, in order: a signature may also complete what it signs. Nothing for the
/// first commit, nor for one that is not ours.
pub fn events_of(message: &str) -> Vec<Event> {
    let event = |kind, path, key| Event { kind, path, key, due: None };
    let agreed = |project: &RepoPath, key, due| Event {
        due: Some(due),
        ..event(EventKind::Agreed, layout::pending_signers(project), Some(key))
    };
    match Claim::parse(message) {
        None | Some(Claim::Create) => Vec::new(),
        Some(Claim::Register { project, submitter }) => {
            vec![event(EventKind::Registration, layout::pending_signers(&project), submitter)]
        }
        Some(Claim::Update { project, submitter, url: _, due }) => {
            let proposed = event(EventKind::Proposal, layout::pending_signers(&project), Some(submitter));
            let waits = due.map(|due| agreed(&project, submitter, due));
            [proposed].into_iter().chain(waits).collect()
        }
        Some(Claim::Agree { project, signer, due }) => {
            let signed = event(EventKind::Signature, layout::pending_signers(&project), Some(signer));
            vec![signed, agreed(&project, signer, due)]
        }
        Some(Claim::Activate { project }) => {
            vec![event(EventKind::Activated, layout::active_signers(&project), None)]
        }
        Some(Claim::Veto { project, master, completes }) => {
            let kind = if completes { EventKind::Vetoed } else { EventKind::Veto };
            vec![event(kind, layout::pending_signers(&project), Some(master))]
        }
        Some(Claim::Sign { file, signer, completes }) => {
            let completed = completes.then(|| match layout::project_with_signers_at(&file) {
                Some(project) => event(EventKind::Activated, layout::active_signers(&project), Some(signer)),
                None => event(EventKind::Complete, file.clone(), Some(signer)),
            });
            let signed = event(EventKind::Signature, file, Some(signer));
            [signed].into_iter().chain(completed).collect()
        }
        Some(Claim::Assets { index, caller }) => {
            vec![event(EventKind::Release, index, Some(caller))]
        }
        Some(Claim::Withdraw { index, caller }) => {
            vec![event(EventKind::Withdrawn, index, Some(caller))]
        }
        Some(Claim::Object { index, objector, stands }) => {
            let kind = if stands { EventKind::Objection } else { EventKind::ObjectionWithdrawn };
            vec![event(kind, index, Some(objector))]
        }
        Some(Claim::Rebuild { index, builder, is_same }) => {
            let kind = if is_same { EventKind::Rebuild } else { EventKind::RebuildDiffers };
            vec![event(kind, index, Some(builder))]
        }
        Some(Claim::Revoke { file, revoker, completes }) => {
            let kind = if completes { EventKind::Revoked } else { EventKind::Revocation };
            vec![event(kind, file, Some(revoker))]
        }
        Some(Claim::Drop { project }) => {
            vec![event(EventKind::Dropped, layout::pending_signers(&project), None)]
        }
    }
}

/// One event with its commit, as the stream and webhooks tell it. It proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EventBody {
    #[schema(value_type = String)]
    #[serde(rename = "type")]
    pub kind: EventKind,
    #[schema(value_type = String)]
    pub path: RepoPath,
    /// The key whose request it was, if the commit says so.
    #[schema(value_type = Option<String>, required)]
    pub key: Option<PublicKey>,
    #[schema(value_type = String)]
    pub time: Timestamp,
    pub commit: String,
    /// The time at which agreed signers take effect, unless they are vetoed.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}

impl EventBody {
    /// An event of a commit. `commit` is its id, in hexadecimal digits.
    pub fn new(event: &Event, time: Timestamp, commit: String) -> Self {
        Self { kind: event.kind, path: event.path.clone(), key: event.key, time, commit, due: event.due }
    }

    /// Reads an event; `None` if it is of a kind that only a newer server knows.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let Ok(kind) = EventKind::parse(object.required("type")?.string()?) else { return Ok(None) };
        let commit_id = |text: &str| is_commit_id(text).then(|| text.to_owned());
        Ok(Some(Self {
            kind,
            commit: object.text("commit", |text| commit_id(text).ok_or("must be the id of a commit"))?,
            path: object.get("path")?,
            key: object.maybe("key")?.flatten(),
            time: object.get("time")?,
            due: object.maybe("due")?,
        }))
    }

    /// Writes the event on one line, without its end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("our documents have string keys only")
    }
}

/// Whether a text is the id of a commit, as events have it.
pub fn is_commit_id(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

// What a commit claims to be, by its message alone. A claim proves nothing: it says which decision to run again.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    Create,
    Register {
        project: RepoPath,
        submitter: Option<PublicKey>,
    },
    /// An update. With `due`, the proposal comes back with all consent, and waits.
    Update {
        project: RepoPath,
        submitter: PublicKey,
        url: String,
        due: Option<Timestamp>,
    },
    Sign {
        file: RepoPath,
        signer: PublicKey,
        completes: bool,
    },
    /// The signature completes the consent to signers, which wait.
    Agree {
        project: RepoPath,
        signer: PublicKey,
        due: Timestamp,
    },
    /// Signers have waited long enough; no one asked.
    Activate {
        project: RepoPath,
    },
    Veto {
        project: RepoPath,
        master: PublicKey,
        completes: bool,
    },
    Assets {
        index: RepoPath,
        caller: PublicKey,
    },
    Withdraw {
        index: RepoPath,
        caller: PublicKey,
    },
    /// An objection. `stands` is false if it is taken back.
    Object {
        index: RepoPath,
        objector: PublicKey,
        stands: bool,
    },
    /// A statement of a builder. `is_same` is false if it got something else than the index lists.
    Rebuild {
        index: RepoPath,
        builder: PublicKey,
        is_same: bool,
    },
    Revoke {
        file: RepoPath,
        revoker: PublicKey,
        completes: bool,
    },
    Drop {
        project: RepoPath,
    },
}

impl Claim {
    pub fn parse(message: &str) -> Option<Self> {
        let mut lines = message.lines();
        let first = lines.next()?;
        let field = |name: &str| lines.clone().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let by = field(snapshot::BY).and_then(|key| PublicKey::parse_prefixed(&key).ok());
        let from = field(snapshot::FROM);
        let due = field(snapshot::DUE).and_then(|time| Timestamp::parse(&time).ok());
        if first == snapshot::CREATE {
            return Some(Self::Create);
        }
        let titled = |title: &'static str| Some((title, subject_of(first, title)?));
        let (title, path) = snapshot::TITLES.into_iter().find_map(titled)?;
        let sign = |file, completes| Some(Self::Sign { file, signer: by?, completes });
        let veto = |project, completes| Some(Self::Veto { project, master: by?, completes });
        let object = |index, stands| Some(Self::Object { index, objector: by?, stands });
        let rebuild = |index, is_same| Some(Self::Rebuild { index, builder: by?, is_same });
        let revoke = |file, completes| Some(Self::Revoke { file, revoker: by?, completes });
        match title {
            snapshot::REGISTER => Some(Self::Register { project: path, submitter: by }),
            snapshot::PROPOSE | snapshot::REPLACE => {
                Some(Self::Update { project: path, submitter: by?, url: from?, due })
            }
            snapshot::ACTIVATE if field(snapshot::BY).is_some() => sign(layout::pending_signers(&path), true),
            snapshot::ACTIVATE => Some(Self::Activate { project: path }),
            snapshot::AGREE => Some(Self::Agree { project: path, signer: by?, due: due? }),
            snapshot::RECORD_VETO => veto(path, false),
            snapshot::VETO => veto(path, true),
            snapshot::COMPLETE => sign(path, true),
            snapshot::SIGN => sign(path, false),
            snapshot::ADD | snapshot::CORRECT => Some(Self::Assets { index: path, caller: by? }),
            snapshot::WITHDRAW => Some(Self::Withdraw { index: path, caller: by? }),
            snapshot::OBJECT => object(path, true),
            snapshot::TAKE_BACK_OBJECTION => object(path, false),
            snapshot::REBUILD => rebuild(path, true),
            snapshot::REBUILD_OTHERWISE => rebuild(path, false),
            snapshot::RECORD_REVOCATION => revoke(path, false),
            snapshot::REVOKE => revoke(path, true),
            _ => Some(Self::Drop { project: path }),
        }
    }
}

/// The path behind a title.
fn subject_of(line: &str, title: &str) -> Option<RepoPath> {
    let text = line.strip_prefix(title)?.strip_prefix(' ')?;
    RepoPath::parse(text).ok().filter(|path| path.as_str() == text)
}

// Server-Sent Events, read from bytes as they come. What one event may weigh is bounded: the server is not believed.

/// What stands between two empty lines, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventBlock {
    pub data: Option<String>,
    /// The id from which to go on, after being cut off.
    pub id: Option<String>,
}

#[derive(Debug, Default)]
pub struct EventStreamReader {
    line: Vec<u8>,
    block: EventBlock,
    /// The bytes of all lines of the block.
    bytes: usize,
    /// A line feed that follows a carriage return ends no line of its own.
    after_return: bool,
    has_begun: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl EventStreamReader {
    /// The blocks that end within these bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<EventBlock>, TooLong> {
        let mut blocks = Vec::new();
        for byte in bytes {
            let follows_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if follows_return => {}
                b'\n' | b'\r' => blocks.extend(self.end_line()),
                _ => {
                    self.bytes += 1;
                    if self.bytes > EVENT_BYTES {
                        return Err(TooLong);
                    }
                    self.line.push(*byte);
                }
            }
        }
        Ok(blocks)
    }

    /// The block that the line ends, if it is an empty one.
    fn end_line(&mut self) -> Option<EventBlock> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let line = line.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(&line);
        if line.is_empty() {
            self.bytes = 0;
            let block = std::mem::take(&mut self.block);
            return (block != EventBlock::default()).then_some(block);
        }
        // A comment is a field without a name.
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => match &mut self.block.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.block.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.block.id = Some(value.to_owned()),
            _ => {}
        }
        None
    }
}
