//! Commits in the one form that the store writes, and who makes them.

use countersign_core::values::time::Timestamp;
use gix::ObjectId;
use thiserror::Error;

/// The longest name of an author, and the longest address.
const MAX_BYTES: usize = 1_024;

/// A name and an address that Git accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    name: String,
    email: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the author's {field} is empty, longer than {MAX_BYTES} bytes, or has a control character, `<` or `>`"
)]
pub struct AuthorError {
    field: &'static str,
}

impl Author {
    pub fn new(name: &str, email: &str) -> Result<Self, AuthorError> {
        for (field, text) in [("name", name), ("email", email)] {
            // Git would drop these silently, or write a commit that its own fsck rejects.
            let forbidden = text.contains(|c: char| c.is_control() || matches!(c, '<' | '>'));
            if forbidden || text.trim() != text || text.is_empty() || text.len() > MAX_BYTES {
                return Err(AuthorError { field });
            }
        }
        Ok(Self { name: name.to_owned(), email: email.to_owned() })
    }

    /// The line in which a commit of this time names the author: `NAME <ADDRESS> SECONDS ZONE`.
    pub(crate) fn at(&self, time: Timestamp) -> String {
        // `git fsck` refuses times before 1970.
        format!("{} <{}> {} +0000", self.name, self.email, time.unix_seconds().max(0))
    }

    /// Reads [`Author::at`] back; `None` for any other spelling.
    pub(crate) fn parse_at(who: &str) -> Option<(Self, Timestamp)> {
        let (author, time) = (parse_author(who)?, parse_time(who)?);
        (author.at(time) == who).then_some((author, time))
    }
}

/// The text of a commit as it is stored. `who` made it, and when.
pub(crate) fn commit_text(tree: ObjectId, parent: Option<ObjectId>, message: &str, who: &str) -> Vec<u8> {
    let parent = parent.map(|id| format!("parent {id}\n")).unwrap_or_default();
    format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}").into_bytes()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    /// The time of the commit. Who did it is the operator's choice, and proves nothing.
    pub time: Timestamp,
    pub message: String,
    /// The names of its headers, where they are not those that the store writes, in its order.
    pub odd_headers: Option<String>,
    /// Who made it, if its bytes are those that the store writes for what it says.
    pub author: Option<Author>,
}

impl Commit {
    pub fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").ok_or("it has no message")?;
        let head = String::from_utf8_lossy(&bytes[..end]);
        let message = String::from_utf8_lossy(&bytes[end + 2..]).into_owned();
        let (mut tree, mut parents, mut committer, mut names) = (None, Vec::new(), None, Vec::new());
        for line in head.lines() {
            // A line that continues another one begins with a space, and has no name.
            let (name, value) = line.split_once(' ').ok_or("a header has no value")?;
            match name {
                "tree" => drop(tree.get_or_insert(parse_id(value)?)),
                "parent" => parents.push(parse_id(value)?),
                "committer" => committer = Some(value),
                _ => {}
            }
            names.push(name);
        }
        let parent_names = parents.iter().map(|_| "parent");
        let usual = ["tree"].into_iter().chain(parent_names).chain(["author", "committer"]);
        let has_odd_headers = !usual.eq(names.iter().copied());
        let tree = tree.ok_or("it names no tree")?;
        let committer = committer.ok_or("it has no committer")?;
        let time = parse_time(committer).ok_or("its time cannot be read")?;
        let author = parse_author(committer).filter(|author| {
            commit_text(tree, parents.first().copied(), &message, &author.at(time)) == bytes
        });
        Ok(Self {
            tree,
            time,
            odd_headers: has_odd_headers.then(|| names.join(", ")),
            author,
            parents,
            message,
        })
    }
}

fn parse_id(text: &str) -> Result<ObjectId, &'static str> {
    ObjectId::from_hex(text.as_bytes()).map_err(|_| "it names no object by its id")
}

fn parse_time(who: &str) -> Option<Timestamp> {
    let seconds = who.rsplit(' ').nth(1)?.parse().ok()?;
    Timestamp::from_unix_seconds(seconds).ok()
}

fn parse_author(who: &str) -> Option<Author> {
    let (name, rest) = who.split_once(" <")?;
    let (email, _) = rest.split_once("> ")?;
    Author::new(name, email).ok()
}
