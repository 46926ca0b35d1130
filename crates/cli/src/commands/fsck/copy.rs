//! A copy of a running server's repository, made from its journal. Nothing that the server says is believed: every commit
//! is made again and must get the id that the server gave it, and the rules must give it.

use std::{path::Path, time::Duration};

use countersign_store::journal::read::{JournalError, JournalFault, JournalReader};
use countersign_store::journal::{copy::Copied, copy::JournalCopy, follow::FollowError};
use countersign_store::{ObjectId, OpenError, StoreError};
use indicatif::ProgressBar;

use crate::client::{ServerClient, log::JournalStream};
use crate::words::error::{CliError, shown_path};

/// A server that sends nothing for so long has gone.
const SILENCE: Duration = Duration::from_secs(60);
/// How often the journal can break off without a single new commit.
const MAX_BREAKS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// How a stream ended.
enum Ended {
    Complete,
    /// The stream ended with a commit that the rules do not give.
    Illegal(Copied),
    Broken(String),
}

/// Fetches what the copy at `dir` does not have yet, up to the first commit that the rules do not give. Returns what
/// became of the last one.
pub(super) async fn fetch(
    client: &ServerClient,
    dir: &Path,
    copy: &mut JournalCopy,
    bar: Option<&ProgressBar>,
) -> Result<Copied, CliError> {
    let mut breaks = 0;
    loop {
        let before = copy.newest();
        let stream = client.journal(before).await?;
        let stream = stream.ok_or_else(|| rewritten(client, dir, before))?;
        let ended = read(client, stream, copy, bar).await;
        // Also what came before an error: the next run goes on from there.
        copy.publish().map_err(|error| unwritable(dir, error))?;
        let reason = match ended? {
            Ended::Complete => return Ok(Copied::Added),
            Ended::Illegal(illegal) => return Ok(illegal),
            Ended::Broken(reason) => reason,
        };
        breaks = if copy.newest() == before { breaks + 1 } else { 1 };
        if breaks > MAX_BREAKS {
            let newest = copy.newest().map_or_else(|| "anything".to_owned(), |id| format!("the commit {id}"));
            return Err(CliError::unreachable(
                format!("the journal of {} breaks off again and again after {newest}", client.address()),
                "run it again later with --keep DIR: it then continues where it stopped",
            )
            .because(reason));
        }
        tokio::time::sleep(PAUSE * breaks).await;
    }
}

async fn read(
    client: &ServerClient,
    stream: JournalStream,
    copy: &mut JournalCopy,
    bar: Option<&ProgressBar>,
) -> Result<Ended, CliError> {
    let JournalStream { mut response, newest } = stream;
    let mut reader = JournalReader::default();
    let is_whole = |copy: &JournalCopy| copy.newest() == Some(newest);
    while !is_whole(copy) {
        let bytes = match tokio::time::timeout(SILENCE, response.chunk()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) => {
                return match reader.finish() {
                    Ok(()) => Ok(Ended::Broken(format!("it ends before the commit {newest}"))),
                    Err(error) if error.fault == JournalFault::Cut => Ok(Ended::Broken(error.to_string())),
                    Err(error) => Err(unreadable(client, error)),
                };
            }
            Ok(Err(error)) => return Ok(Ended::Broken(error.to_string())),
            Err(_) => return Ok(Ended::Broken("the server sends nothing more".to_owned())),
        };
        reader.push(&bytes);
        while let Some(entry) = reader.next().map_err(|error| unreadable(client, error))? {
            if is_whole(copy) {
                break;
            }
            match copy.add(&entry).map_err(|error| untrue(client, error))? {
                Copied::Added => {}
                illegal @ Copied::Illegal { .. } => return Ok(Ended::Illegal(illegal)),
            }
            if let Some(bar) = bar {
                bar.inc(1);
            }
        }
    }
    Ok(Ended::Complete)
}

fn unreadable(client: &ServerClient, error: JournalError) -> CliError {
    CliError::unverified(
        format!("the server {} sends a journal that no honest server sends", client.address()),
        "do not trust this server before that is explained",
    )
    .because(error)
}

fn untrue(client: &ServerClient, error: FollowError) -> CliError {
    match error {
        FollowError::Store(error @ (StoreError::Io(_) | StoreError::Busy | StoreError::Closed)) => {
            CliError::other("the copy of the repository cannot be written", "check the disk").because(error)
        }
        error => CliError::unverified(
            format!("the journal of {} is false", client.address()),
            "do not trust this server before that is explained",
        )
        .because(error),
    }
}

fn rewritten(client: &ServerClient, dir: &Path, newest: Option<ObjectId>) -> CliError {
    let newest = newest.map(|id| id.to_string()).unwrap_or_default();
    CliError::unverified(
        format!(
            "the server {} does not have the commit {newest}, which is the newest in {}",
            client.address(),
            shown_path(dir)
        ),
        "it is another server, an older copy, or its history was rewritten: compare it with the copy before you \
         trust it",
    )
}

pub(super) fn unusable_copy(dir: &Path, error: OpenError) -> CliError {
    CliError::other(
        format!("no copy of the server's repository can be made in {}", shown_path(dir)),
        "name a directory that does not exist yet, or the copy of an earlier check",
    )
    .because(error)
}

fn unwritable(dir: &Path, error: StoreError) -> CliError {
    CliError::other(format!("{} cannot be written", shown_path(dir)), "check the disk").because(error)
}
