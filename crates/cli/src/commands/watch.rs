//! `countersign ping` and `countersign watch`: whether a server is there, and what happens there.

use countersign_api::answers::{PingAuth, PingResponse};
use countersign_api::event::{EventBody, EventFilter, EventKind};
use countersign_core::values::shown::shown_text;
use countersign_explain::describe::describe;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::json;

use crate::args::{PingArgs, WatchArgs};
use crate::client::events::{EventFeed, Gaps, Next};
use crate::client::{ListenQuery, ServerCall, ServerClient, session::Session};
use crate::{keys, words::error::CliError};

pub(crate) async fn ping(session: &Session, args: &PingArgs) -> Result<(), CliError> {
    let client = session.client_of(None)?;
    if args.ready {
        client.check_ready().await?;
    }
    // A server that is not there is no reason to ask for a passphrase.
    let mut answer = client.ping().await?;
    if session.key_path(None).is_some() {
        answer = client.ask(&session.key(None, &[])?, ServerCall::ping(), PingResponse::parse).await?;
    }
    let server = client.address();
    let (text, value) = match answer.auth {
        PingAuth::Unauthenticated => (
            format!(
                "{server} is there. (With --key it is also asked whether your key's signature is right.)"
            ),
            json!({"status": "unauthenticated"}),
        ),
        PingAuth::Success { public_key } => (
            format!("{server} is there, and accepts the signature of {public_key}."),
            json!({"status": "success", "public_key": public_key.to_string()}),
        ),
        PingAuth::Failed { reason, public_key: _ } => {
            return Err(CliError::other(
                format!("{server} is there, but refuses your key's signature: {}", shown_text(&reason)),
                "the reason says what to do; if it is about the time, check this computer's clock",
            ));
        }
    };
    session.output.result(&text, &json!({"server": server, "message": "pong", "auth": value}))
}

/// Ends with Ctrl-C, or when the reader of its output is gone.
pub(crate) async fn watch(session: &Session, args: &WatchArgs) -> Result<(), CliError> {
    let key = match &args.waiting_for {
        Some(key) => Some(keys::parse_key(key)?),
        None => args.mine.then(|| session.public_key()).transpose()?,
    };
    let kinds = (!args.kinds.is_empty()).then(|| args.kinds.iter().copied().collect());
    let filter = EventFilter { prefix: args.prefix.clone(), kinds, key };
    let query = ListenQuery { filter, after: args.since.clone() };
    let client = session.client_of(args.prefix.as_ref())?;
    let watching = async {
        let mut events = EventFeed::open(&client, query, Gaps::Filled).await?;
        session.output.note(&format!("Watching {}.", client.address()));
        loop {
            match events.next().await? {
                Next::Event(event) => {
                    let progress = if events.is_newest(&event) { ask(&client, &event).await } else { None };
                    if !show(session, &event, progress)? {
                        return Ok(());
                    }
                }
                Next::Again => session.output.note("Connected again."),
            }
        }
    };
    tokio::select! {
        ended = until_interrupted(watching) => ended,
        () = reader_gone() => Ok(()),
    }
}

/// Returns when no process reads standard output any more, which a program that seldom writes would not notice
/// otherwise.
async fn reader_gone() {
    let (gone, noticed) = tokio::sync::oneshot::channel();
    // A thread that waits, until the process ends. It asks for nothing, since errors are always told.
    std::thread::spawn(move || {
        let stdout = std::io::stdout();
        while poll(&mut [PollFd::new(&stdout, PollFlags::empty())], None) == Err(Errno::INTR) {}
        gone.send(())
    });
    let _ = noticed.await;
}

/// Ends with Ctrl-C what does not end by itself.
pub(super) async fn until_interrupted(
    work: impl Future<Output = Result<(), CliError>>,
) -> Result<(), CliError> {
    tokio::select! {
        ended = work => ended,
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(|error| {
            CliError::other("Ctrl-C cannot be handled", "end it with another signal").because(error)
        }),
    }
}

/// How far the collection is that an event is about, as in `has 1 of 2; 1 more from bob or carol` (D251). `None` if it
/// has ended by now, or cannot be read.
async fn ask(client: &ServerClient, event: &EventBody) -> Option<String> {
    let is_about_file = match event.kind {
        EventKind::Registration | EventKind::Proposal | EventKind::Signature | EventKind::Release => true,
        EventKind::Revocation | EventKind::Veto => false,
        _ => return None,
    };
    let shown = client.state_at(&event.path).await.ok()?;
    match describe(&shown.files, &event.path).ok()?? {
        description if is_about_file => (!description.missing().is_empty()).then(|| description.progress()),
        description => description.begun_progress(),
    }
}

/// False once the reader is gone.
fn show(session: &Session, event: &EventBody, progress: Option<String>) -> Result<bool, CliError> {
    let by = event.key.map(|key| format!("  by {key}")).unwrap_or_default();
    let due = event.due.map(|due| format!("  due {due}")).unwrap_or_default();
    let mut text = format!("{}  {:<12}  {}{by}{due}", event.time, event.kind.name(), event.path);
    let mut value = json!(event);
    if let Some(progress) = progress {
        text.push_str(&format!("  {progress}"));
        value["progress"] = json!(progress);
    }
    session.output.item(&session.output.list(&text), &value)
}
