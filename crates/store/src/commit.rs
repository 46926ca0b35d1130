//! Reading a commit in the one form that the store writes.

use countersign_core::values::time::Timestamp;
use gix::ObjectId;

use crate::{
    author::Author,
    repository::batch::{CommitStamp, commit_text},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) tree: ObjectId,
    pub(crate) parents: Vec<ObjectId>,
    /// When it was committed. Who did it is the operator's choice, and proves nothing.
    pub(crate) time: Timestamp,
    pub(crate) message: String,
    /// The names of its headers, where they are not those that the store writes, in its order.
    pub(crate) odd_headers: Option<String>,
    /// Whether its bytes are those that the store writes for what it says.
    pub(crate) is_ours: bool,
}

impl Commit {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
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
        let rewritten = parse_author(committer).map(|author| {
            let signature = CommitStamp { author: &author, time };
            commit_text(tree, parents.first().copied(), &message, &signature)
        });
        Ok(Self {
            tree,
            time,
            odd_headers: has_odd_headers.then(|| names.join(", ")),
            is_ours: rewritten.is_some_and(|rewritten| rewritten == bytes),
            parents,
            message,
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

fn parse_author(who: &str) -> Option<Author> {
    let (name, rest) = who.split_once(" <")?;
    let (email, _) = rest.split_once("> ")?;
    Author::new(name, email).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "\
tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904
parent 0123456789abcdef0123456789abcdef01234567
author Countersign <countersign@localhost> 1700000000 +0000
committer Countersign <countersign@localhost> 1700000000 +0000

Sign x\u{fffd}
";

    fn is_ours(bytes: &[u8]) -> bool {
        Commit::parse(bytes).is_ok_and(|commit| commit.is_ours)
    }

    #[test]
    fn a_commit_is_ours_byte_for_byte() {
        assert!(is_ours(OURS.as_bytes()));
        assert!(is_ours(OURS.replace("Countersign <", "Some Body <").as_bytes()));
        for (from, to) in [
            ("author Countersign", "author Somebody"),
            ("author Countersign <countersign@localhost> 1700000000", "author nonsense"),
            (
                "author Countersign <countersign@localhost> 17",
                "author Countersign <countersign@localhost> 16",
            ),
            ("+0000", "+0200"),
            ("0 +0000\n\n", "0 +0000\r\n\n"),
            (
                "committer Countersign <countersign@localhost> 17",
                "committer Countersign <countersign@localhost> +17",
            ),
            (" 1700000000 +0000", " 1600000000 +0000 1700000000 +0000"),
            ("Countersign <countersign@localhost>", "<countersign@localhost>"),
            ("Countersign", "Counter\0sign"),
            ("4b825dc642cb", "4B825DC642CB"),
            ("parent 0123456789abcdef", "parent 0123456789ABCDEF"),
            ("\nauthor", "\nparent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor"),
        ] {
            assert!(OURS.contains(from), "{from}");
            assert!(!is_ours(OURS.replace(from, to).as_bytes()), "{to}");
        }
        let mut bytes = OURS.as_bytes().to_vec();
        let at = bytes.windows(3).position(|window| window == "\u{fffd}".as_bytes()).unwrap();
        bytes.splice(at..at + 3, [0xff]);
        assert!(!is_ours(&bytes), "a message that is not UTF-8");
    }
}
