//! Reading a commit in the one form that the store writes.

use countersign_core::time::Timestamp;
use gix::ObjectId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) tree: ObjectId,
    pub(super) parents: Vec<ObjectId>,
    /// When it was committed. Who did it is the operator's choice, and proves nothing.
    pub(super) time: Timestamp,
    pub(super) message: String,
    /// The names of its headers, where they are not those that the store writes, in its order.
    pub(super) odd_headers: Option<String>,
}

impl Commit {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").ok_or("it has no message")?;
        let head = String::from_utf8_lossy(&bytes[..end]);
        let message = String::from_utf8_lossy(&bytes[end + 2..]).into_owned();
        let (mut tree, mut parents, mut time, mut names) = (None, Vec::new(), None, Vec::new());
        for line in head.lines() {
            // A line that continues another one begins with a space, and has no name.
            let (name, value) = line.split_once(' ').ok_or("a header has no value")?;
            match name {
                "tree" => drop(tree.get_or_insert(parse_id(value)?)),
                "parent" => parents.push(parse_id(value)?),
                "committer" => time = Some(parse_time(value).ok_or("its time cannot be read")?),
                _ => {}
            }
            names.push(name);
        }
        let parent_names = parents.iter().map(|_| "parent");
        let usual = ["tree"].into_iter().chain(parent_names).chain(["author", "committer"]);
        let has_odd_headers = !usual.eq(names.iter().copied());
        Ok(Self {
            tree: tree.ok_or("it names no tree")?,
            parents,
            time: time.ok_or("it has no committer")?,
            message,
            odd_headers: has_odd_headers.then(|| names.join(", ")),
        })
    }
}

fn parse_id(text: &str) -> Result<ObjectId, &'static str> {
    ObjectId::from_hex(text.as_bytes()).map_err(|_| "it names no object by its id")
}

/// `NAME <ADDRESS> SECONDS ZONE`
fn parse_time(who: &str) -> Option<Timestamp> {
    let seconds = who.rsplit(' ').nth(1)?.parse().ok()?;
    Timestamp::from_unix_seconds(seconds).ok()
}
