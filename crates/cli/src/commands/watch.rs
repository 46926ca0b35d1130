//! `countersign ping` and `countersign watch`: whether a server is there, and what happens there.

use countersign_api::answers::{PingAuth, PingResponse};
use countersign_api::event::{EventBody, EventFilter};
use countersign_core::values::shown::shown_text;
use serde_json::json;

use crate::args::{PingArgs, WatchArgs};
use crate::client::events::{EventFeed, Gaps, Next};
use crate::client::{ListenQuery, ServerCall, session::Session};
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
                "check this computer's clock, and run it again",
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
        let mut events = EventFeed::open(&client, session.output, query, Gaps::Filled).await?;
        session.output.note(&format!("Watching {}.", client.address()));
        loop {
            match events.next().await? {
                Next::Event(event) if show(session, &event)? => {}
                Next::Event(_) => return Ok(()),
                Next::Again => session.output.note("Connected again."),
            }
        }
    };
    until_interrupted(watching).await
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

/// False once the reader is gone.
fn show(session: &Session, event: &EventBody) -> Result<bool, CliError> {
    let by = event.key.map(|key| format!("  by {key}")).unwrap_or_default();
    let due = event.due.map(|due| format!("  due {due}")).unwrap_or_default();
    let text = format!("{}  {:<12}  {}{by}{due}", event.time, event.kind.name(), event.path);
    session.output.item(&session.output.list(&text), &json!(event))
}
