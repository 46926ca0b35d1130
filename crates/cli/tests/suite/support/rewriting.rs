//! Rewriting a history with Git's own tools: `git fast-export`, a change, `git fast-import`.

use std::{collections::BTreeMap, path::Path};

use super::git::Git;

#[derive(Clone, Debug)]
pub(crate) struct Commit {
    /// `NAME <ADDRESS> SECONDS ZONE`
    pub(crate) who: String,
    pub(crate) message: String,
    /// What it writes, and what it removes.
    pub(crate) files: BTreeMap<String, Option<Entry>>,
    /// Another parent, by its position.
    pub(crate) merges: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) mode: String,
    pub(crate) content: Vec<u8>,
}

impl Commit {
    pub(crate) fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    pub(crate) fn write(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.write_as("100644", path, content);
    }

    pub(crate) fn write_as(&mut self, mode: &str, path: &str, content: impl Into<Vec<u8>>) {
        let entry = Entry { mode: mode.to_owned(), content: content.into() };
        self.files.insert(path.to_owned(), Some(entry));
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.files.insert(path.to_owned(), None);
    }

    /// Changes the text of a file that it writes; `from` must be there.
    #[track_caller]
    pub(crate) fn edit(&mut self, path: &str, from: &str, to: &str) {
        let entry = self.files.get_mut(path).unwrap_or_else(|| panic!("{path} is touched"));
        let entry = entry.as_mut().expect("it is written");
        let text = String::from_utf8(entry.content.clone()).expect("text");
        assert!(text.contains(from), "{from:?} is not in {text}");
        entry.content = text.replacen(from, to, 1).into_bytes();
    }

    /// Moves its time.
    pub(crate) fn delay(&mut self, seconds: i64) {
        let mut words: Vec<String> = self.who.split(' ').map(str::to_owned).collect();
        let at = words.len() - 2;
        words[at] = (words[at].parse::<i64>().expect("seconds") + seconds).to_string();
        self.who = words.join(" ");
    }
}

/// The commits of `main`, oldest first.
pub(crate) fn export(git: &Git) -> Vec<Commit> {
    let stream = git.bytes(&["fast-export", "--no-renames", "main"], b"");
    let mut reader = Reader { rest: &stream };
    let mut blobs: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut commits: Vec<Commit> = Vec::new();
    while let Some(line) = reader.line() {
        if line == "blob" {
            let mark = reader.line().expect("a mark").replace("mark ", "");
            let size = reader.line().expect("a size");
            blobs.insert(mark, reader.data(&size));
        } else if line.starts_with("commit ") {
            commits.push(read_commit(&mut reader, &blobs));
        }
    }
    commits
}

fn read_commit(reader: &mut Reader<'_>, blobs: &BTreeMap<String, Vec<u8>>) -> Commit {
    let (mut who, mut message, mut files) = (String::new(), String::new(), BTreeMap::new());
    while let Some(line) = reader.line().filter(|line| !line.is_empty()) {
        if let Some(committer) = line.strip_prefix("committer ") {
            who = committer.to_owned();
        } else if line.starts_with("data ") {
            message = String::from_utf8(reader.data(&line)).expect("a message");
        } else if let Some(change) = line.strip_prefix("M ") {
            let [mode, mark, path] = change.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("not a change: {line}")
            };
            let entry = Entry { mode: mode.to_owned(), content: blobs[mark].clone() };
            files.insert(path.to_owned(), Some(entry));
        } else if let Some(path) = line.strip_prefix("D ") {
            files.insert(path.to_owned(), None);
        }
    }
    Commit { who, message, files, merges: None }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn line(&mut self) -> Option<String> {
        let end = self.rest.iter().position(|byte| *byte == b'\n')?;
        let line = String::from_utf8(self.rest[..end].to_vec()).expect("text");
        self.rest = &self.rest[end + 1..];
        Some(line)
    }

    /// Reads content as long as a line `data LENGTH` says.
    fn data(&mut self, announced: &str) -> Vec<u8> {
        let length = announced.strip_prefix("data ").and_then(|length| length.parse().ok());
        let (data, rest) = self.rest.split_at(length.expect("a length"));
        self.rest = rest;
        data.to_vec()
    }
}

/// A bare repository with these commits on `main`, and their ids.
pub(crate) fn import(dir: &Path, commits: &[Commit]) -> Vec<String> {
    let git = Git::init_bare(dir);
    let mut stream = Vec::new();
    for (position, commit) in commits.iter().enumerate() {
        let Commit { who, message, files, merges } = commit;
        let mark = position + 1;
        let length = message.len();
        stream.extend(format!("commit refs/heads/main\nmark :{mark}\n").bytes());
        stream.extend(format!("author {who}\ncommitter {who}\ndata {length}\n{message}").bytes());
        if position > 0 {
            stream.extend(format!("from :{position}\n").bytes());
        }
        if let Some(other) = merges {
            stream.extend(format!("merge :{}\n", other + 1).bytes());
        }
        // What goes away first, so that a directory makes room for a file.
        for path in files.iter().filter(|(_, entry)| entry.is_none()).map(|(path, _)| path) {
            stream.extend(format!("D {path}\n").bytes());
        }
        for (path, entry) in files.iter().filter_map(|(path, entry)| Some((path, entry.as_ref()?))) {
            let Entry { mode, content } = entry;
            stream.extend(format!("M {mode} inline {path}\ndata {}\n", content.len()).bytes());
            stream.extend(content);
            stream.push(b'\n');
        }
        stream.push(b'\n');
    }
    let marks = dir.join("marks");
    let marks_arg = format!("--export-marks={}", marks.to_str().expect("a plain name"));
    git.bytes(&["fast-import", "--quiet", &marks_arg], &stream);
    let listed = std::fs::read_to_string(&marks).expect("the marks");
    let mut ids: Vec<(usize, String)> = listed
        .lines()
        .filter_map(|line| line.strip_prefix(':')?.split_once(' '))
        .map(|(mark, id)| (mark.parse().expect("a number"), id.to_owned()))
        .collect();
    ids.sort();
    ids.into_iter().map(|(_, id)| id).collect()
}
