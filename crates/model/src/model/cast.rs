//! People with fixed keys.

use std::{convert::Infallible, sync::LazyLock};

use countersign_core::values::key::{PublicKey, SecretKey};
use countersign_core::values::other_format::{OtherFormat, ReleaseSums};
use countersign_core::values::time::Timestamp;
use countersign_core::values::{digest::Sha512, path::RepoPath};
use serde_json::Value;

/// A person, by number.
pub(crate) type Person = usize;

/// The last one signs under no generated signers file. Some name it as their registrar or as a builder.
pub(crate) const PEOPLE: usize = 7;
pub(crate) const STRANGER: Person = PEOPLE - 1;
/// The person who is mostly a master, and then in no other role.
pub(crate) const MASTER: Person = 5;

static KEYS: LazyLock<Vec<(SecretKey, PublicKey)>> = LazyLock::new(|| {
    let keys = (0..PEOPLE).map(|person| SecretKey::from_seed(&[person as u8 + 1; 32]));
    keys.map(|key| {
        let public = key.public_key();
        (key, public)
    })
    .collect()
});

pub(crate) fn secret(person: Person) -> &'static SecretKey {
    &KEYS[person].0
}

pub(crate) fn public(person: Person) -> PublicKey {
    KEYS[person].1
}

/// The key as `svc-pub:` and unpadded base64.
pub(crate) fn canonical(person: Person) -> String {
    KEYS[person].1.to_string()
}

/// The key as padded base64.
pub(crate) fn base64(person: Person) -> String {
    KEYS[person].1.to_base64()
}

pub(crate) fn openssh(person: Person) -> String {
    KEYS[person].1.to_ssh_line("of a person")
}

/// This person's signature in another format on the `SHA256SUMS` of the release at `index` (D101).
pub(crate) fn format_text(
    person: Person,
    format: OtherFormat,
    index: &str,
    mirrored_on: i64,
    sums: &str,
) -> String {
    let index = RepoPath::parse(index).expect("the path of an index");
    let mirrored_on = Timestamp::from_unix_seconds(mirrored_on).expect("a time");
    let sums = ReleaseSums { index: &index, mirrored_on, text: sums };
    let Ok(text) = format
        .sign(&KEYS[person].1, &sums, &[], |message| Ok::<_, Infallible>(message.sign_with(secret(person))));
    text
}

/// This person's signature on these bytes (D3), in padded base64.
pub(crate) fn signature(person: Person, bytes: &[u8]) -> String {
    secret(person).sign(&Sha512::of(bytes)).to_base64()
}

// Decisions of a generator, taken from bytes. Each byte decides one thing, so a fuzzer that changes one byte changes
// one decision. Zeros and missing bytes select the ordinary case.

#[derive(Debug, Clone)]
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// True about once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    pub fn of<T: Clone>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())].clone()
    }
}

// Writes documents as D5 demands: two spaces, fixed order, a line end.

#[derive(Debug, Clone)]
pub(crate) enum JsonNode {
    Null,
    Number(u64),
    Text(String),
    List(Vec<JsonNode>),
    Object(Vec<(String, JsonNode)>),
}

pub(crate) fn text(text: impl Into<String>) -> JsonNode {
    JsonNode::Text(text.into())
}

pub(crate) fn object<const N: usize>(members: [(&str, JsonNode); N]) -> JsonNode {
    JsonNode::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

impl JsonNode {
    pub(crate) fn document(&self) -> String {
        self.write(0) + "\n"
    }

    pub(crate) fn to_value(&self) -> Value {
        serde_json::from_str(&self.document()).expect("a document is JSON")
    }

    fn write(&self, depth: usize) -> String {
        let quote = |text: &str| Value::from(text).to_string();
        let lines = |open: &str, items: Vec<String>, close: &str| {
            let (inner, outer) = ("  ".repeat(depth + 1), "  ".repeat(depth));
            match items.is_empty() {
                true => format!("{open}{close}"),
                false => format!("{open}\n{inner}{}\n{outer}{close}", items.join(&format!(",\n{inner}"))),
            }
        };
        match self {
            Self::Null => "null".to_owned(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => quote(text),
            Self::List(items) => lines("[", items.iter().map(|item| item.write(depth + 1)).collect(), "]"),
            Self::Object(members) => {
                let member = |(name, value): &(String, JsonNode)| {
                    format!("{}: {}", quote(name), value.write(depth + 1))
                };
                lines("{", members.iter().map(member).collect(), "}")
            }
        }
    }
}

// The projects, directories and files of a run, and the spellings of their paths.

/// The part of the server that belongs to one sequence.
#[derive(Debug, Clone)]
pub(crate) struct RunBase {
    pub(crate) port: u16,
    pub(crate) run: String,
}

/// Projects: two unrelated ones, one that differs only in letter case, one inside another, and one around all.
const PROJECTS: [&str; 10] =
    ["/alpha", "/alpha", "/beta", "/alpha", "/beta", "/alpha", "/Alpha", "/alpha/inner", "", "/alpha"];
/// Directories below a project.
const DIRS: [&str; 6] = ["/v1", "/v1", "/v2", "", "/v1/sub", "/v2"];

impl RunBase {
    pub(crate) fn root(&self) -> String {
        format!("http/127.0.0.1/{}/{}", self.port, self.run)
    }

    pub(crate) fn choose_project(&self, choices: &mut Choices<'_>) -> String {
        format!("{}{}", self.root(), choices.of(&PROJECTS))
    }

    pub(crate) fn choose_dir(&self, choices: &mut Choices<'_>) -> String {
        self.choose_project(choices) + choices.of(&DIRS)
    }

    /// The URL that maps to this path.
    pub(crate) fn url_of(&self, path: &str) -> String {
        let below = path.splitn(4, '/').nth(3).expect("a path of a server");
        format!("http://127.0.0.1:{}/{below}", self.port)
    }
}

pub(crate) fn pending_signers(project: &str) -> String {
    format!("{project}/svc.signers.pending/svc.signers.json")
}

pub(crate) fn active_signers(project: &str) -> String {
    format!("{project}/svc.signers/svc.signers.json")
}

pub(crate) fn index_in(dir: &str) -> String {
    format!("{dir}/svc.index.json")
}

/// A spelling of a path that means the same (D6), or one that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Spelling {
    Same(String),
    Refused(String),
}

pub(crate) fn choose_spelling(choices: &mut Choices<'_>, path: &str) -> Spelling {
    match choices.byte() {
        0..=219 => Spelling::Same(path.to_owned()),
        220..=229 => Spelling::Same(path.replacen("http/", "HTTP/", 1)),
        230..=239 => Spelling::Same(format!("{path}/")),
        240..=243 => Spelling::Refused(path.replacen("http/", "http/./", 1)),
        244..=247 => Spelling::Refused(format!("{path}/../svc.index.json")),
        248..=249 => Spelling::Refused(path.replacen('/', "//", 1)),
        250..=251 => Spelling::Refused(format!("{path}/.GIT")),
        252..=253 => Spelling::Refused(format!("{path}/a\\b")),
        254..=255 => Spelling::Refused(String::new()),
    }
}

/// Encodes a path for the target of a request.
pub(crate) fn encode(path: &str) -> String {
    path.replace('%', "%25").replace('\\', "%5C").replace("svc.index", "svc%2Eindex")
}
