//! The forge itself.

use std::{collections::HashMap, net::SocketAddr, net::TcpStream, sync::Arc, sync::Mutex};

use serde_json::{Value, json};

use self::answer::has_credentials;
pub(crate) use self::answer::{ForgeAnswer, GateKeeper};
use crate::support::{listening::Heard, listening::listen, signers::SignersFile};

mod answer;
mod documents;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    GitHub,
    GitLab,
    Forgejo,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::GitHub, Kind::GitLab, Kind::Forgejo];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Forgejo => "forgejo",
        }
    }

    /// Where the kind has its API on a host of its own.
    pub(crate) fn api_path(self) -> &'static str {
        match self {
            Self::GitHub => "/api/v3",
            Self::GitLab => "/api/v4",
            Self::Forgejo => "/api/v1",
        }
    }

    /// The path of a signers file on a branch, as a browser shows it.
    pub(crate) fn page_of(self, repository: &str, branch: &str, path: &str) -> String {
        match self {
            Self::GitHub => format!("/{repository}/blob/{branch}/{path}"),
            Self::GitLab => format!("/{repository}/-/blob/{branch}/{path}"),
            Self::Forgejo => format!("/{repository}/src/branch/{branch}/{path}"),
        }
    }

    /// The target that can only name a branch.
    pub(crate) fn branch_target(self, repository: &str, branch: &str, path: &str) -> String {
        match self {
            Self::GitHub => format!("/{repository}/raw/refs/heads/{branch}/{path}"),
            Self::GitLab => format!("/{repository}/-/raw/{branch}/{path}?ref_type=heads"),
            Self::Forgejo => format!("/{repository}/raw/branch/{branch}/{path}"),
        }
    }

    pub(crate) fn release_page(self, repository: &str, tag: &str) -> String {
        match self {
            Self::GitLab => format!("/{repository}/-/releases/{tag}"),
            Self::GitHub | Self::Forgejo => format!("/{repository}/releases/tag/{tag}"),
        }
    }

    pub(crate) fn release_target(self, repository: &str, tag: &str) -> String {
        let tag = tag.replace('/', "%2F");
        match self {
            Self::GitLab => format!("/projects/{}/releases/{tag}", repository.replace('/', "%2F")),
            Self::GitHub | Self::Forgejo => format!("/repos/{repository}/releases/tags/{tag}"),
        }
    }
}

#[derive(Default)]
struct Desk {
    answers: HashMap<String, ForgeAnswer>,
    seen: Vec<Heard>,
}

#[derive(Clone, Debug)]
pub(crate) struct Asset {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Asset {
    pub(crate) fn new(name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.to_owned(), bytes: bytes.into() }
    }
}

pub(crate) struct FakeForge {
    pub(crate) kind: Kind,
    address: SocketAddr,
    desk: Arc<Mutex<Desk>>,
}

impl FakeForge {
    pub(crate) fn start(kind: Kind) -> Self {
        Self::start_on("127.0.0.1", kind)
    }

    pub(crate) fn start_on(ip: &str, kind: Kind) -> Self {
        let desk = Arc::new(Mutex::new(Desk::default()));
        let shared = Arc::clone(&desk);
        let address = listen((ip, 0), move |seen, stream| answer(seen, stream, &shared));
        Self { kind, address, desk }
    }

    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn api_url(&self, path: &str) -> String {
        self.url(&format!("{}{path}", self.kind.api_path()))
    }

    /// The identifier of the project whose page is this repository.
    pub(crate) fn project(&self, repository: &str) -> String {
        format!("http/{}/{}/{repository}", self.address.ip(), self.address.port())
    }

    pub(crate) fn index_path(&self, repository: &str, tag: &str) -> String {
        format!("{}/releases/tag/{tag}/svc.index.json", self.project(repository))
    }

    pub(crate) fn release_url(&self, repository: &str, tag: &str) -> String {
        self.url(&self.kind.release_page(repository, tag))
    }

    pub(crate) fn set(&self, target: &str, answer: ForgeAnswer) {
        self.desk.lock().expect("no panic").answers.insert(lookup_key(target), answer);
    }

    pub(crate) fn seen(&self) -> Vec<Heard> {
        self.desk.lock().expect("no panic").seen.clone()
    }

    pub(crate) fn targets(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.target).collect()
    }

    /// How often this target was asked for, however it was escaped.
    pub(crate) fn count(&self, target: &str) -> usize {
        self.targets().iter().filter(|seen| lookup_key(seen) == lookup_key(target)).count()
    }

    /// Whether any request carried the token, or a header that could hold it in another spelling.
    pub(crate) fn has_seen_token(&self, token: &str) -> bool {
        self.seen().iter().any(|seen| format!("{seen:?}").contains(token) || has_credentials(seen))
    }

    /// Puts a signers file on a branch, where only a form that names a branch finds it.
    pub(crate) fn put_signers(&self, repository: &str, branch: &str, path: &str, file: &SignersFile) {
        let answer = ForgeAnswer::bytes(file.bytes()).with_header("content-type", "text/plain");
        self.set(&self.kind.branch_target(repository, branch, path), answer.clone());
        self.set(&self.file_target(repository, branch, path), answer);
        self.put_branch(repository, branch);
    }

    /// What the kind's API says about a branch.
    fn put_branch(&self, repository: &str, branch: &str) {
        let api = self.kind.api_path();
        let hash = "f8d3d94cbd347e924aa7b715845e439d00e80ca4";
        match self.kind {
            Kind::GitHub => {
                let repository = format!("{api}/repos/{repository}");
                let commit = json!({ "sha": hash, "url": self.url(&format!("{repository}/commits/{hash}")) });
                let document = json!({ "name": branch, "commit": commit, "protected": false });
                self.set(&format!("{repository}/branches/{branch}"), ForgeAnswer::json(&document));
                let object = json!({ "type": "commit", "sha": hash });
                let document = json!({ "ref": format!("refs/heads/{branch}"), "object": object });
                self.set(&format!("{repository}/git/ref/heads/{branch}"), ForgeAnswer::json(&document));
            }
            Kind::GitLab => {
                let (id, name) = (repository.replace('/', "%2F"), branch.replace('/', "%2F"));
                let commit = json!({ "id": hash, "short_id": &hash[..8], "title": "Initial commit" });
                let document = json!({ "name": branch, "merged": false, "default": false, "commit": commit });
                let target = format!("{api}/projects/{id}/repository/branches/{name}");
                self.set(&target, ForgeAnswer::json(&document));
            }
            Kind::Forgejo => {
                let commit = json!({ "id": hash, "message": "Initial commit" });
                let document = json!({ "name": branch, "commit": commit, "protected": false });
                let target = format!("{api}/repos/{repository}/branches/{branch}");
                self.set(&target, ForgeAnswer::json(&document));
            }
        }
    }

    /// The target of the API that reads a file of a branch.
    pub(crate) fn file_target(&self, repository: &str, branch: &str, path: &str) -> String {
        let api = self.kind.api_path();
        let reference = format!("refs/heads/{branch}");
        match self.kind {
            Kind::GitHub => format!("{api}/repos/{repository}/contents/{path}?ref={reference}"),
            Kind::GitLab => {
                let (id, path) = (repository.replace('/', "%2F"), path.replace('/', "%2F"));
                format!("{api}/projects/{id}/repository/files/{path}/raw?ref={reference}")
            }
            Kind::Forgejo => format!("{api}/repos/{repository}/raw/{path}?ref={reference}"),
        }
    }

    pub(crate) fn release_target(&self, repository: &str, tag: &str) -> String {
        format!("{}{}", self.kind.api_path(), self.kind.release_target(repository, tag))
    }

    /// Where the public downloads an asset.
    pub(crate) fn asset_target(&self, repository: &str, tag: &str, name: &str) -> String {
        let (tag, name) = (escape(tag), escape(name));
        match self.kind {
            Kind::GitLab => format!("/{repository}/-/releases/{tag}/downloads/{name}"),
            Kind::GitHub | Kind::Forgejo => format!("/{repository}/releases/download/{tag}/{name}"),
        }
    }

    /// Publishes a release and its assets; its URL.
    pub(crate) fn put_release(&self, repository: &str, tag: &str, assets: &[Asset]) -> String {
        for asset in assets {
            let target = self.asset_target(repository, tag, &asset.name);
            self.set(&target, ForgeAnswer::bytes(asset.bytes.clone()));
        }
        self.put_document(repository, tag, &self.document(repository, tag, assets));
        self.release_url(repository, &tag.replace('/', "%2F"))
    }

    pub(crate) fn put_document(&self, repository: &str, tag: &str, document: &Value) {
        self.set(&self.release_target(repository, tag), ForgeAnswer::json(document));
    }
}

fn answer(seen: Heard, mut stream: TcpStream, desk: &Mutex<Desk>) -> std::io::Result<()> {
    let found = {
        let mut desk = desk.lock().expect("no panic");
        let found = desk.answers.get(&lookup_key(&seen.target)).cloned();
        desk.seen.push(seen.clone());
        found
    };
    found.unwrap_or_else(ForgeAnswer::missing).send(&mut stream, &seen)
}

/// Targets that a forge takes for the same: escapes do not matter, except for a `/` in a
/// parameter of GitLab's and Forgejo's APIs.
fn lookup_key(target: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let forgejo_tag = path.starts_with(Kind::Forgejo.api_path()) && path.contains("/releases/tags/");
    let strict = path.contains("/projects/") || forgejo_tag;
    let path = if strict { path.replace("%2f", "%2F").replace("%2F", "%252F") } else { path.to_owned() };
    format!("{}?{}", decode(&path), decode(query))
}

/// Escapes what may not stand in a URL, and leaves escapes alone.
fn escape(text: &str) -> String {
    text.bytes()
        .map(
            |byte| {
                if byte.is_ascii_graphic() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
            },
        )
        .collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
