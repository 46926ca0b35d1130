//! A command over several things goes through all of them, and reports each (D218).

use countersign_core::values::shown::shown_text;
use serde_json::{Value, json};

use crate::error::{CliError, ErrorKind};
use crate::output::Output;

/// What became of several things. What is done already counts as done.
pub(crate) struct Several {
    output: Output,
    tried: usize,
    failed: Vec<Failure>,
}

struct Failure {
    name: String,
    error: CliError,
}

impl Several {
    pub(crate) fn new(output: Output) -> Self {
        Self { output, tried: 0, failed: Vec::new() }
    }

    /// Counts one thing, and remembers why it failed. `None` if it did: the next one is tried all the same.
    pub(crate) fn keep<T>(&mut self, name: &str, outcome: Result<T, CliError>) -> Option<T> {
        self.tried += 1;
        self.keep_later(name, outcome)
    }

    /// Counts one thing only if it failed: a later step counts the others.
    pub(crate) fn keep_found<T>(&mut self, name: &str, outcome: Result<T, CliError>) -> Option<T> {
        self.tried += usize::from(outcome.is_err());
        self.keep_later(name, outcome)
    }

    /// Remembers why a later step failed of a thing that is counted already.
    pub(crate) fn keep_later<T>(&mut self, name: &str, outcome: Result<T, CliError>) -> Option<T> {
        outcome.map_err(|error| self.failed.push(Failure { name: name.to_owned(), error })).ok()
    }

    pub(crate) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Reports all: `text` and `value` tell what was done. The error of a single thing is its own.
    pub(crate) fn finish(mut self, text: &str, mut value: Value) -> Result<(), CliError> {
        let output = self.output;
        if self.failed.is_empty() {
            return output.result(text, &value);
        }
        output.line(text);
        if self.tried == 1
            && let Some(failure) = self.failed.pop()
        {
            return Err(failure.error);
        }
        for Failure { name, error } in &self.failed {
            output.warn(&format!("{}: {}", shown_text(name), output.describe_error(error)));
        }
        value["failed"] = self.failed.iter().map(Failure::to_json).collect();
        Err(self.summary().with_details(value))
    }

    /// Where nothing at all was done, and for one kind of reason, the exit code is the one of this kind.
    fn summary(&self) -> CliError {
        let failed = self.failed.len();
        let mut kinds = self.failed.iter().map(|failure| failure.error.kind());
        let first = kinds.next().unwrap_or(ErrorKind::Other);
        let kind = match failed == self.tried && kinds.all(|kind| kind == first) {
            true => first,
            false => ErrorKind::Incomplete,
        };
        let names: Vec<&str> = self.failed.iter().map(|failure| failure.name.as_str()).collect();
        CliError::new(
            kind,
            format!("{failed} of {} could not be done: {}", self.tried, shown_text(&names.join(", "))),
            "each of them says above what to do about it; then run this again: what is done already counts as done",
        )
    }
}

impl Failure {
    fn to_json(&self) -> Value {
        let mut value = Output::error_to_json(&self.error);
        value["name"] = json!(self.name);
        value
    }
}
