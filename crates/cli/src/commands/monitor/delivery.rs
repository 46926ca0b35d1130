//! Where a monitor sends what it finds: a webhook, a command.

use std::process::{Command, Stdio};
use std::{io::Write as _, time::Duration};

use countersign_forge::http_url::parse_http_url;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use url::Url;

use crate::{args::MonitorArgs, error::CliError};

const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Delivery {
    webhook: Option<(Url, reqwest::Client)>,
    command: Option<String>,
}

impl Delivery {
    pub(super) fn new(args: &MonitorArgs) -> Result<Self, CliError> {
        let webhook = args.webhook.as_deref().map(open_webhook).transpose()?;
        Ok(Self { webhook, command: args.exec.clone() })
    }

    pub(super) async fn send(&self, text: &str, value: &Value) -> Result<(), CliError> {
        if let Some((url, http)) = &self.webhook {
            let request = http.post(url.clone()).header(CONTENT_TYPE, "application/json").timeout(TIMEOUT);
            let sent = request.body(value.to_string()).send().await;
            // The URL may hold a secret.
            sent.and_then(reqwest::Response::error_for_status)
                .map_err(|error| undelivered("the webhook did not take it").because(error.without_url()))?;
        }
        if let Some(command) = &self.command {
            run(command, text, value).map_err(|error| undelivered("--exec failed").because(error))?;
        }
        Ok(())
    }
}

fn open_webhook(text: &str) -> Result<(Url, reqwest::Client), CliError> {
    let url = parse_http_url(text).map_err(|problem| {
        CliError::usage(format!("--webhook {problem}"), "write it as https://HOST/PATH")
    })?;
    let http =
        countersign_forge::https::https_client(|builder| builder.redirect(reqwest::redirect::Policy::none()));
    Ok((url, http.map_err(CliError::no_https)?))
}

fn run(command: &str, text: &str, value: &Value) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("COUNTERSIGN_CHANGE", value.to_string()).stdin(Stdio::piped());
    let mut child = shell.spawn().map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // A command that reads nothing is no failure.
        let _ = writeln!(input, "{text}");
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

fn undelivered(what: &str) -> CliError {
    CliError::unreachable(
        format!("a change could not be reported: {what}"),
        "correct it, and run it again: what was not reported is reported then",
    )
}
