//! `countersign watch`

use countersign_api::event::{EventBody, EventFilter};
use serde_json::Value;

use crate::client::{ListenQuery, events::EventFeed, events::Gaps, events::Next, session::Session};
use crate::{args::WatchArgs, keys, words::error::CliError};

/// Ends with Ctrl-C, or when the reader of its output is gone.
pub(crate) async fn run(session: &Session, args: &WatchArgs) -> Result<(), CliError> {
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
    let value: Value = serde_json::to_value(event)
        .map_err(|error| CliError::other("an event cannot be written", "report this").because(error))?;
    session.output.item(&text, &value)
}
