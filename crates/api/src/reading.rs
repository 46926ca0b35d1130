//! A server's answers, as its client reads them. Only what the client uses; other fields may be there.

use std::collections::BTreeMap;

use crate::event::{Event, EventKind};
use countersign_core::{
    documents::history::History,
    rules::query::WaitingList,
    values::{
        json::{Field, Json, ParseError},
        key::{PublicKey, decode_base64},
        path::RepoPath,
        time::Timestamp,
    },
};

/// Answer of `register_repo` and `update_signers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    pub project_id: RepoPath,
    pub required_signers: Vec<PublicKey>,
}

/// What a server says that happened. It proves nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    pub event: Event,
    pub time: Timestamp,
    /// The id of the commit, in hexadecimal digits.
    pub commit: String,
}

/// How the server sees the caller of `ping`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PingAuth {
    Unauthenticated,
    Success { public_key: PublicKey },
    Failed { reason: String },
}

pub fn parse_proposed(bytes: &[u8]) -> Result<Proposed, ParseError> {
    let json = Json::parse(bytes)?;
    let object = json.root().open_object()?;
    let signers = object.required("required_signers")?.array()?;
    Ok(Proposed {
        project_id: object.required("project_id")?.parsed(RepoPath::parse)?,
        required_signers: signers.iter().map(|key| key.parsed(PublicKey::parse)).collect::<Result<_, _>>()?,
    })
}

/// Whether a file is complete with the signature that was just submitted.
pub fn parse_signed(bytes: &[u8]) -> Result<bool, ParseError> {
    Json::parse(bytes)?.root().open_object()?.required("is_complete")?.boolean()
}

/// Files are signed as text: whatever is not UTF-8 is none of our documents.
pub fn parse_files_to_sign(bytes: &[u8]) -> Result<BTreeMap<RepoPath, String>, ParseError> {
    let json = Json::parse(bytes)?;
    let mut files = BTreeMap::new();
    for (name, content) in json.root().open_object()?.required("files")?.entries()? {
        let path = RepoPath::parse(name).map_err(|error| content.error(error))?;
        let text = decode_base64(content.string()?).and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| content.error("must be base64 of UTF-8 text"))?;
        if files.insert(path, text).is_some() {
            return Err(content.error("two spellings of one path"));
        }
    }
    Ok(files)
}

pub fn parse_chain(bytes: &[u8]) -> Result<History, ParseError> {
    History::parse_field(&Json::parse(bytes)?.root().open_object()?.required("history")?)
}

/// What waits for the caller, and how many more files do that the answer had no room for.
pub fn parse_pending(bytes: &[u8]) -> Result<WaitingList, ParseError> {
    let json = Json::parse(bytes)?;
    let object = json.root().open_object()?;
    let paths = object.required("file_paths")?.array()?;
    let left_out = object.optional("left_out").map(|count| count.integer()).transpose()?;
    Ok(WaitingList {
        paths: paths.iter().map(|path| path.parsed(RepoPath::parse)).collect::<Result<_, _>>()?,
        left_out: left_out.map_or(0, |count| usize::try_from(count).unwrap_or(usize::MAX)),
    })
}

/// The path of the index that was made of a release.
pub fn parse_registered_release(bytes: &[u8]) -> Result<RepoPath, ParseError> {
    Json::parse(bytes)?.root().open_object()?.required("index_file_path")?.parsed(RepoPath::parse)
}

/// Whether the revocation is in force, or waits for more signatures.
pub fn parse_revoked(bytes: &[u8]) -> Result<bool, ParseError> {
    Json::parse(bytes)?.root().open_object()?.required("revoked")?.boolean()
}

pub fn parse_ping(bytes: &[u8]) -> Result<PingAuth, ParseError> {
    let json = Json::parse(bytes)?;
    let object = json.root().open_object()?;
    let message = object.required("message")?;
    if message.string()? != "pong" {
        return Err(message.error("must be \"pong\""));
    }
    let auth = object.required("auth")?.open_object()?;
    let status = auth.required("status")?;
    match status.string()? {
        "unauthenticated" => Ok(PingAuth::Unauthenticated),
        "success" => {
            Ok(PingAuth::Success { public_key: auth.required("public_key")?.parsed(PublicKey::parse)? })
        }
        "failed" => Ok(PingAuth::Failed { reason: auth.required("reason")?.string()?.to_owned() }),
        _ => Err(status.error("must be unauthenticated, success or failed")),
    }
}

/// Whether a text is the id of a commit, as our events have it.
pub fn is_commit_id(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// `None` where it is of a kind that only a newer server knows.
pub fn parse_event(bytes: &[u8]) -> Result<Option<Announced>, ParseError> {
    let json = Json::parse(bytes)?;
    let object = json.root().open_object()?;
    let Some(kind) = EventKind::parse(object.required("type")?.string()?) else { return Ok(None) };
    let commit = object.required("commit")?;
    if !is_commit_id(commit.string()?) {
        return Err(commit.error("must be the id of a commit"));
    }
    let key = object.optional("key").filter(|key| !key.is_null());
    let event = Event {
        kind,
        path: object.required("path")?.parsed(RepoPath::parse)?,
        key: key.map(|key| key.parsed(PublicKey::parse)).transpose()?,
    };
    let time = object.required("time")?.parsed(Timestamp::parse)?;
    Ok(Some(Announced { event, time, commit: commit.string()?.to_owned() }))
}

/// The text of an error, if the answer has one.
pub fn parse_error(bytes: &[u8]) -> Option<String> {
    let json = Json::parse(bytes).ok()?;
    let message = json.root().open_object().ok()?.required("error").ok()?;
    Field::string(&message).ok().map(str::to_owned)
}
