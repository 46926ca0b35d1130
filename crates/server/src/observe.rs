//! Log lines: readable on a terminal, JSON where a machine reads them. Always on standard error.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;

use crate::config::{LogFormat, LogLevel};

/// Starts logging for this process. A second call changes nothing.
pub fn start_logging(format: LogFormat, level: LogLevel) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let builder = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).with_target(false);
    let started = match format {
        LogFormat::Text => builder.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).with_span_list(false).try_init(),
    };
    if let Err(error) = started {
        tracing::debug!(%error, "logging was started before");
    }
}
