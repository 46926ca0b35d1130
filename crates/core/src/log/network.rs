//! Lists of logs that a witness network publishes (`logs/v0`), and the logs that a witness knows from them. A list only
//! adds: its publisher can neither take a log away nor change what is known of one (D272).

use std::collections::{BTreeMap, btree_map::Entry};

use thiserror::Error;

use crate::log::note::parse_plain;
use crate::values::bounds::{LISTED_LOGS, LOG_CONTACT_BYTES, LOG_LIST_BYTES};
use crate::values::{
    shown::is_unseen, shown::quoted, verifier_key::VerifierKey, verifier_key::VerifierKeyError,
};

const FORM: &str = "logs/v0";
/// Requests a day are fewer than this.
const TOO_OFTEN: u32 = 1 << 31;

/// A log as a list has it. Its origin is the name of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedLog {
    pub key: VerifierKey,
    /// How many checkpoints the log can ask a witness to cosign in a day.
    pub per_day: u32,
    /// Where people reach its operator.
    pub contact: String,
}

/// What a list has, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogList {
    pub logs: Vec<ListedLog>,
    /// Logs that are of no use here, each with the line where it begins. The others count.
    pub skipped: Vec<(usize, SkippedLog)>,
}

/// Why a log of a list is passed over.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SkippedLog {
    #[error("{0}")]
    Key(#[from] VerifierKeyError),
    #[error("its origin {} is not the name of its key, which is not supported", quoted(.0))]
    OtherOrigin(String),
    #[error("its contact has more than {LOG_CONTACT_BYTES} bytes, or invisible characters")]
    Contact,
}

/// An error for which all of a list is refused. Line 0 stands for the whole list.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{fault}", if *.line == 0 { String::new() } else { format!("line {line}: ") })]
pub struct LogListError {
    pub line: usize,
    pub fault: LogListFault,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LogListFault {
    #[error("a list of logs has at most {LOG_LIST_BYTES} bytes")]
    TooLarge,
    #[error("a list has at most {LISTED_LOGS} logs")]
    TooMany,
    #[error("a list of logs is UTF-8")]
    NotText,
    #[error("a list of logs begins with the line `{FORM}`")]
    Header,
    #[error(
        "a log has the lines `vkey KEY`, maybe `origin ORIGIN`, `qpd COUNT` and `contact TEXT`, in this order"
    )]
    Form,
    #[error("a log asks 1 to 2147483647 times a day")]
    PerDay,
}

impl LogList {
    /// Parses a list as it was published.
    pub fn parse(bytes: &[u8]) -> Result<Self, LogListError> {
        if bytes.len() > LOG_LIST_BYTES {
            return Err(LogListFault::TooLarge.at(0));
        }
        Self::read(bytes)
    }

    fn read(bytes: &[u8]) -> Result<Self, LogListError> {
        let text = std::str::from_utf8(bytes).map_err(|_| LogListFault::NotText.at(0))?;
        let lines = (1..).zip(text.split('\n').map(str::trim));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
        if lines.next().is_none_or(|(_, line)| line != FORM) {
            return Err(LogListFault::Header.at(0));
        }
        let mut list = Self::default();
        while let Some((begin, line)) = lines.next() {
            let value_of = |word: &str, line: &'_ str| {
                let value = line.strip_prefix(word)?.strip_prefix(' ')?.trim();
                (!value.is_empty()).then(|| value.to_owned())
            };
            let key = value_of("vkey", line).ok_or(LogListFault::Form.at(begin))?;
            let origin = lines.next_if(|(_, line)| line.starts_with("origin "));
            let origin = origin.and_then(|(_, line)| value_of("origin", line));
            let mut next = |word| {
                let (number, line) = lines.next().ok_or(LogListFault::Form.at(begin))?;
                Ok((number, value_of(word, line).ok_or(LogListFault::Form.at(number))?))
            };
            let (number, per_day) = next("qpd")?;
            let per_day = parse_plain(&per_day).filter(|count| (1..TOO_OFTEN).contains(count));
            let per_day = per_day.ok_or(LogListFault::PerDay.at(number))?;
            let (_, contact) = next("contact")?;
            match ListedLog::of(&key, origin, per_day, contact) {
                Ok(log) => list.logs.push(log),
                Err(skipped) => list.skipped.push((begin, skipped)),
            }
            if list.logs.len() + list.skipped.len() > LISTED_LOGS {
                return Err(LogListFault::TooMany.at(0));
            }
        }
        Ok(list)
    }
}

impl ListedLog {
    fn of(key: &str, origin: Option<String>, per_day: u32, contact: String) -> Result<Self, SkippedLog> {
        let key = VerifierKey::parse_log(key)?;
        if let Some(other) = origin.filter(|origin| origin != key.name()) {
            return Err(SkippedLog::OtherOrigin(other));
        }
        if contact.len() > LOG_CONTACT_BYTES || contact.chars().any(is_unseen) {
            return Err(SkippedLog::Contact);
        }
        Ok(Self { key, per_day, contact })
    }

    /// A list has this log with another key than the known one.
    pub fn instead_of(&self, known: &VerifierKey) -> NotTaken {
        NotTaken::OtherKey { listed: self.key.clone().into(), known: known.clone().into() }
    }
}

impl LogListFault {
    fn at(self, line: usize) -> LogListError {
        LogListError { line, fault: self }
    }
}

// What a witness knows from lists.

/// All logs that a witness has ever seen on a list, by their origins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownLogs {
    logs: BTreeMap<String, ListedLog>,
}

/// Why a log of a list does not become known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotTaken {
    #[error(
        "the list has the key {listed} for it, and this witness knows it with the key {known}. A log with another key is \
         another log: the key stays, and only the operator of this witness can change it"
    )]
    OtherKey { listed: Box<VerifierKey>, known: Box<VerifierKey> },
    #[error(
        "this witness has cosigned a log of this name with another key before. Only its operator can serve it, with that key: \
         see `--policy`"
    )]
    OtherRecord,
    #[error("this witness knows {LISTED_LOGS} logs from lists, which is the most")]
    Full,
}

impl KnownLogs {
    /// The most bytes of what [`KnownLogs::write`] makes.
    pub const MAX_BYTES: usize = 2 * LOG_LIST_BYTES;

    /// Reads what [`KnownLogs::write`] has written. Nothing of it can be passed over.
    pub fn parse(bytes: &[u8]) -> Result<Self, LogListError> {
        let LogList { logs, skipped } = LogList::read(bytes)?;
        if let Some((line, _)) = skipped.first() {
            return Err(LogListFault::Form.at(*line));
        }
        Ok(Self { logs: logs.into_iter().map(|log| (log.key.name().to_owned(), log)).collect() })
    }

    /// Writes them as a list, which people can read as well.
    pub fn write(&self) -> String {
        let logs = self.logs.values().map(|ListedLog { key, per_day, contact }| {
            format!("\nvkey {key}\nqpd {per_day}\ncontact {contact}\n")
        });
        format!("{FORM}\n{}", logs.collect::<String>())
    }

    /// Takes a log from a list. Returns whether it is new; one that is known stays as it is.
    pub fn take(&mut self, listed: &ListedLog) -> Result<bool, NotTaken> {
        let count = self.logs.len();
        match self.logs.entry(listed.key.name().to_owned()) {
            Entry::Occupied(known) if known.get().key == listed.key => Ok(false),
            Entry::Occupied(known) => Err(listed.instead_of(&known.get().key)),
            Entry::Vacant(_) if count >= LISTED_LOGS => Err(NotTaken::Full),
            Entry::Vacant(place) => {
                place.insert(listed.clone());
                Ok(true)
            }
        }
    }

    /// Takes back what was just taken, which nothing relies on yet.
    pub fn forget_new(&mut self, listed: &ListedLog) {
        self.logs.remove(listed.key.name());
    }

    pub fn logs(&self) -> impl ExactSizeIterator<Item = &ListedLog> {
        self.logs.values()
    }
}
