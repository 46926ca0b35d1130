//! Log lines: readable on a terminal, JSON for machines. Always on standard error.
//!
//! Requests never wait for the log (D48). Lines are short (`fields`, `line`), few (`flow`), and written by their own
//! thread (`writer`). What does not fit is counted, not written.

pub(crate) mod line;
pub mod writer;

use std::io::{IsTerminal as _, Write};
use std::{fmt::Display, io, panic, panic::PanicHookInfo, sync::Arc, sync::LazyLock, thread, time::Instant};

use countersign_store::machine::clock::uptime_nanos;
use tracing::{Event, Span, Subscriber, span};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{Layer, registry::LookupSpan, util::SubscriberInitExt as _};

use crate::metrics::named;
use crate::operate::config::{LogFormat, LogLevel};
use crate::operate::observe::line::Fields;
use crate::operate::observe::writer::{Flow, LineKind, LogQueue, start_writer};
pub use crate::operate::observe::{line::Style, writer::LogStats, writer::Logging};

pub fn stats() -> &'static LogStats {
    &STATS
}

static STATS: LazyLock<Arc<LogStats>> = LazyLock::new(Arc::default);

/// Starts logging for this process. A second call changes nothing. Dropping the result writes the lines that wait.
pub fn start_logging(format: LogFormat, level: LogLevel) -> io::Result<Logging> {
    let style = match format {
        LogFormat::Text if io::stderr().is_terminal() => Style::Coloured,
        LogFormat::Text => Style::Text,
        LogFormat::Json => Style::Json,
    };
    let (lines, logging) = log_to(io::stderr(), style, Arc::clone(&STATS))?;
    if let Err(error) = tracing_subscriber::registry().with(level.0).with(lines).try_init() {
        tracing::debug!(%error, "logging was started before");
        return Ok(logging);
    }
    // The default hook writes to standard error from the panicking thread, which would wait for the log.
    panic::set_hook(Box::new(log_panic));
    Ok(logging)
}

/// Writes the events of a subscriber to `sink`.
pub fn log_to(
    sink: impl Write + Send + 'static,
    style: Style,
    stats: Arc<LogStats>,
) -> io::Result<(LogLines, Logging)> {
    let flow = Arc::new(Flow::default());
    let (queue, logging) = start_writer(sink, style, Arc::clone(&flow), stats)?;
    Ok((LogLines { style, flow, queue }, logging))
}

named! {
    /// What is learnt about a request on the way, for its log line.
    pub enum RequestFact {
        /// The key whose signature verified.
        Key = "key",
        /// The key that the headers name.
        ClaimedKey = "claimed_key",
        Project = "project",
        File = "file",
    }
}

/// Notes it for the line of the request under way.
pub fn note(fact: RequestFact, value: &dyn Display) {
    Span::current().record(fact.name(), tracing::field::display(value));
}

fn log_panic(info: &PanicHookInfo<'_>) {
    let thread = thread::current();
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let message =
        text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    let location = info.location().map(tracing::field::display);
    tracing::error!(error = message, place = location, thread = thread.name(), "a thread panicked");
}

/// Makes a line of each event, if there is room for it.
#[derive(Debug)]
pub struct LogLines {
    style: Style,
    flow: Arc<Flow>,
    queue: LogQueue,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLines {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let (kind, now) = (LineKind::of(event), uptime_nanos(Instant::now()));
        if !self.flow.admits(&kind, now) {
            self.queue.stats.left_out.add(1);
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        // Our spans are never nested: the innermost span is the request.
        let span = context.event_span(event);
        let extensions = span.as_ref().map(|span| span.extensions());
        let around = span.as_ref().zip(extensions.as_ref().and_then(|extensions| extensions.get::<Fields>()));
        let around = around.map(|(span, fields)| (span.name(), fields));
        let text = line::write(self.style, *event.metadata().level(), around, &fields);
        self.flow.charge(&kind, text.len(), &fields.message, now);
        self.queue.put(text);
    }
}
