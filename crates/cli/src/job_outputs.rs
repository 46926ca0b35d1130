//! Results as lines `COUNTERSIGN_NAME=VALUE`, for CI systems that read them back from a file (D107).

use std::path::{Path, PathBuf};
use std::{fs::OpenOptions, io::Write as _};

use clap::Args;

use crate::error::CliError;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OutputsArgs {
    /// Append results to this file as lines NAME=VALUE, as in "$GITHUB_OUTPUT" or a dotenv report of GitLab
    #[arg(long = "outputs", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

impl OutputsArgs {
    /// Names without their prefix, and values. All lines are written, or none.
    pub(crate) fn append(&self, results: &[(&str, &str)]) -> Result<(), CliError> {
        let Some(path) = &self.file else { return Ok(()) };
        let mut lines = String::new();
        for (name, value) in results {
            // A line end in a value would begin another result.
            if value.chars().any(char::is_control) {
                return Err(CliError::other(
                    format!("the result {name} has a control character, and is not written to --outputs"),
                    "check the name of the release",
                ));
            }
            lines.push_str(&format!("COUNTERSIGN_{name}={value}\n"));
        }
        write_lines(path, &lines).map_err(|error| CliError::file("written", path, error))
    }
}

fn write_lines(path: &Path, lines: &str) -> std::io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(lines.as_bytes())
}
