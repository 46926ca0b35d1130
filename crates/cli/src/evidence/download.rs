//! Streams a file to a temporary name while hashing it. Only what matches the index gets the final name.

use std::{fs::File, io, io::Read as _, io::Write as _, path::Path, path::PathBuf, thread::JoinHandle};

use bytes::Bytes;
use countersign_core::documents::index::{Digests, PublishedFile};
use countersign_core::values::digest::{HexDigest, Sha256, Sha512};
use countersign_forge::{fetch::FetchError, fetch::Fetcher, fetch::Timeouts, url::SourceUrl};
use indicatif::{ProgressBar, ProgressStyle};
use ring::digest::{Context, SHA256, SHA512};
use tokio::sync::mpsc;

use crate::evidence::release::shown_name;
use crate::settings::config_dir::{check_replaceable, create_part, finish};
use crate::words::{error::CliError, error::ErrorKind, error::shown_path, output::Output};

/// The most chunks that wait for the hash: enough to keep all busy, and little memory.
const CHUNKS_AHEAD: usize = 32;
const READ_BYTES: usize = 256 << 10;

/// The digest that a file is checked by. Both in an index are of the same file, and either is enough; SHA-256 is the
/// faster one on processors that have instructions for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Expected {
    pub(crate) fn of(file: &PublishedFile) -> Result<Self, CliError> {
        match file.digests {
            Digests { sha256: Some(digest), .. } => Ok(Self::Sha256(digest)),
            Digests { sha256: None, sha512: Some(digest) } => Ok(Self::Sha512(digest)),
            Digests { sha256: None, sha512: None } => {
                Err(CliError::unverified("the index has no digest for the file", "ask the project"))
            }
        }
    }

    /// The digest of what was hashed, of the kind that is expected.
    fn of_received(self, hasher: Context) -> Option<Self> {
        let digest = hasher.finish();
        let bytes = digest.as_ref();
        match self {
            Self::Sha256(_) => bytes.try_into().ok().map(|bytes| Self::Sha256(HexDigest::from_bytes(bytes))),
            Self::Sha512(_) => bytes.try_into().ok().map(|bytes| Self::Sha512(HexDigest::from_bytes(bytes))),
        }
    }

    /// A file is hashed by the library that TLS brings along: its SHA-256 is the faster one.
    fn hasher(self) -> Context {
        Context::new(match self {
            Self::Sha256(_) => &SHA256,
            Self::Sha512(_) => &SHA512,
        })
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sha256(digest) => write!(f, "sha256:{digest}"),
            Self::Sha512(digest) => write!(f, "sha512:{digest}"),
        }
    }
}

/// A file to download: from where, what it must be, and to where.
pub(crate) struct WantedFile<'a> {
    pub(crate) url: SourceUrl,
    pub(crate) file: &'a PublishedFile,
    pub(crate) max_bytes: u64,
    pub(crate) target: PathBuf,
    /// Whether it takes the place of another file that is there.
    pub(crate) replaces: bool,
}

/// The size of the file, if it is here already.
pub(crate) fn find_existing(wanted: &WantedFile<'_>, output: Output) -> Option<u64> {
    check_local(&wanted.target, wanted.file, output).ok()
}

/// Downloads a file, if it is the one that the index lists. Gives its size.
pub(crate) async fn download(wanted: &WantedFile<'_>, output: Output) -> Result<u64, CliError> {
    let WantedFile { url, file, max_bytes, target, replaces } = wanted;
    let expected = Expected::of(file)?;
    check_replaceable(target)?;
    if target.exists() && !replaces && find_existing(wanted, output).is_none() {
        return Err(CliError::other(
            format!("{} is there already, and is another file", shown_path(target)),
            "nothing was overwritten: pass --force to replace it, or -o to choose another name",
        ));
    }
    let fetcher = Fetcher::for_user(Timeouts::default()).map_err(CliError::no_https)?;
    let opened = fetcher.open_download(url.request_url(), Some(*max_bytes)).await.map_err(failed)?;
    let mut opened = opened.ok_or_else(|| {
        CliError::unreachable(
            format!("{url} was not found"),
            "check the URL: the release lists a file that is gone",
        )
    })?;
    let progress = start_progress(output, &shown_name(&file.file_name), file.size.or(opened.length()));
    let mut part = create_part(target)?;
    let hash = HashLane::start(expected);
    let mut size = 0;
    while let Some(chunk) = opened.chunk().await.map_err(failed)? {
        size += chunk.len() as u64;
        progress.inc(chunk.len() as u64);
        // If the thread has failed, the digest is missing at the end.
        let _ = hash.chunks.send(chunk.clone()).await;
        part.write_all(&chunk).map_err(|error| CliError::file("written", target, error))?;
    }
    let received = hash.finish();
    progress.finish_and_clear();
    check(file, size, received, expected).map_err(|error| {
        // Where a login is needed, forges send their page for it as if it were the file.
        let hint = "the server sent a web page: is the file public?";
        if opened.is_html() { error.with_hint(hint) } else { error }
    })?;
    finish(part, target)?;
    Ok(size)
}

fn failed(error: FetchError) -> CliError {
    let (kind, hint) = match error {
        FetchError::TooLarge { .. } => (
            ErrorKind::Verification,
            "it is not the file that was signed; where the index lists no size, --max-size sets the limit",
        ),
        _ => (ErrorKind::Unreachable, "check the network and the URL, and try again"),
    };
    CliError::new(kind, "the file could not be downloaded", hint).because(error)
}

fn check(
    file: &PublishedFile,
    size: u64,
    received: Option<Expected>,
    expected: Expected,
) -> Result<(), CliError> {
    let name = shown_name(&file.file_name);
    if let Some(listed) = file.size.filter(|listed| *listed != size) {
        return Err(CliError::unverified(
            format!("{name} has {size} bytes, but the signed index lists {listed}"),
            "do not use it: it is not the file that was signed",
        ));
    }
    if received != Some(expected) {
        let received = received.map(|received| received.to_string()).unwrap_or_default();
        return Err(CliError::unverified(
            format!("{name} is not the file that was signed: it has {received}, the signed index {expected}"),
            "do not use it; try again, and if it stays so, tell the project",
        ));
    }
    Ok(())
}

/// Hashes a file that is already here, and compares it with the index.
pub(crate) fn check_local(path: &Path, listed: &PublishedFile, output: Output) -> Result<u64, CliError> {
    let expected = Expected::of(listed)?;
    let mut hasher = expected.hasher();
    let size = read_file(path, &shown_name(&listed.file_name), output, |block| hasher.update(block))?;
    check(listed, size, expected.of_received(hasher), expected)?;
    Ok(size)
}

/// What a file of the user's is, by both digests that an index can have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnFile {
    pub(crate) size: u64,
    pub(crate) digests: Digests,
}

impl OwnFile {
    /// Hashes what `read` reads.
    pub(crate) fn hash<E>(read: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<u64, E>) -> Result<Self, E> {
        let (mut sha256, mut sha512) = (Context::new(&SHA256), Context::new(&SHA512));
        let size = read(&mut |block| {
            sha256.update(block);
            sha512.update(block);
        })?;
        let digests = Digests {
            sha256: sha256.finish().as_ref().try_into().ok().map(Sha256::from_bytes),
            sha512: sha512.finish().as_ref().try_into().ok().map(Sha512::from_bytes),
        };
        Ok(Self { size, digests })
    }

    /// Whether this is the file that an index lists.
    pub(crate) fn is(&self, file: &PublishedFile) -> bool {
        match Expected::of(file) {
            Ok(Expected::Sha256(digest)) => self.digests.sha256 == Some(digest),
            Ok(Expected::Sha512(digest)) => self.digests.sha512 == Some(digest),
            Err(_) => false,
        }
    }
}

pub(crate) fn hash_file(path: &Path, output: Output) -> Result<OwnFile, CliError> {
    OwnFile::hash(|block| read_file(path, &shown_path(path), output, block))
}

/// Reads a file to its end, and says how long it is. `name`: for the progress bar.
fn read_file(path: &Path, name: &str, output: Output, mut block: impl FnMut(&[u8])) -> Result<u64, CliError> {
    let unreadable = |error| CliError::file("read", path, error);
    let mut file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    let progress = start_progress(output, name, Some(length));
    let size = for_each_block(&mut file, |bytes| {
        block(bytes);
        progress.inc(bytes.len() as u64);
    });
    progress.finish_and_clear();
    size.map_err(unreadable)
}

/// Reads a file to its end. Gives its size.
pub(crate) fn for_each_block(file: &mut File, mut block: impl FnMut(&[u8])) -> io::Result<u64> {
    let (mut buffer, mut size) = (vec![0; READ_BYTES], 0);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(size),
            Ok(count) => {
                block(&buffer[..count]);
                size += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Chooses where a download goes: as the user says, or under the file's own name.
pub(crate) fn choose_target(given: Option<&Path>, file: &PublishedFile) -> Result<PathBuf, CliError> {
    let name = file.file_name.as_str().rsplit('/').next().unwrap_or_default();
    let target = match given {
        Some(path) if path.as_os_str() == "-" => {
            return Err(CliError::usage(
                "a download cannot go to standard output: nothing may be used before all of it is verified",
                "name a file with -o FILE",
            ));
        }
        Some(path) if path.is_dir() => path.join(name),
        Some(path) => path.to_owned(),
        None => PathBuf::from(name),
    };
    Ok(target)
}

/// A hash on a thread of its own beside the network and the disk, because it bounds a fast download.
struct HashLane {
    chunks: mpsc::Sender<Bytes>,
    hash: JoinHandle<Option<Expected>>,
}

impl HashLane {
    fn start(expected: Expected) -> Self {
        let (chunks, mut hashed) = mpsc::channel::<Bytes>(CHUNKS_AHEAD);
        let hash = std::thread::spawn(move || {
            let mut hasher = expected.hasher();
            while let Some(chunk) = hashed.blocking_recv() {
                hasher.update(&chunk);
            }
            expected.of_received(hasher)
        });
        Self { chunks, hash }
    }

    /// The digest of all chunks; `None` if the thread has failed. The queue is short, so that it is nearly done.
    fn finish(self) -> Option<Expected> {
        drop(self.chunks);
        self.hash.join().ok().flatten()
    }
}

/// A bar on a terminal; a hidden one elsewhere.
fn start_progress(output: Output, name: &str, size: Option<u64>) -> ProgressBar {
    if !output.shows_progress() {
        return ProgressBar::hidden();
    }
    let bar = size.map_or_else(ProgressBar::no_length, ProgressBar::new);
    let template = match size {
        Some(_) => "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        None => "{msg} {spinner} {bytes} {bytes_per_sec}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.with_message(name.to_owned())
}

// Patterns with `*` for any characters and `?` for one, as in a shell. They match across directories as well.

/// Whether a name fits one of the patterns. Without patterns, everything fits.
pub(crate) fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, name))
}

fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star stands, and up to where it has taken the name: it takes one more wherever the rest fails.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            Some(_) | None => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                n = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}
