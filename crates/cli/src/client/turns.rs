//! The servers of a project, asked one after the other (D268). What each shows is verified in the same way, so that it
//! does not matter which of them answers.

use countersign_core::documents::signers::SignersFile;
use countersign_core::values::{path::RepoPath, shown::shown_text};
use serde_json::{Value, json};

use crate::client::session::Session;
use crate::client::targets::{NamedSubject, ReleaseName, choose_fitting};
use crate::settings::{client_config::KnownServer, trust::TrustFile};
use crate::words::{error::CliError, error::ErrorKind};

/// A server that did not serve, or whose answer was refused, and why.
#[derive(Debug)]
pub(crate) struct PassedOver {
    server: String,
    error: CliError,
}

impl PassedOver {
    pub(crate) fn json(&self) -> Value {
        json!({ "server": shown_text(&self.server), "kind": self.error.kind(), "error": self.error.describe() })
    }

    /// A server that is away is told; one whose answer does not verify is a reason for caution.
    fn say(&self, session: &Session) {
        let (server, error) = (shown_text(&self.server), &self.error);
        match error.kind() {
            ErrorKind::Verification => {
                let warning = session.output.bad("warning:");
                session
                    .output
                    .warn(&format!("{warning} what {server} shows is refused: {}", error.describe()));
            }
            _ => session.output.note(&format!("{server} does not serve: {error}.")),
        }
    }
}

impl Session {
    /// Asks the server of a project; if it is away, is behind, or shows what is refused, the others that the project's
    /// signers file names. `ask` gives what was found, if that verifies. A server that the user chose stays the only
    /// one. Says which servers were passed over.
    pub(crate) async fn ask_in_turn<T>(
        &self,
        path: Option<&RepoPath>,
        ask: impl AsyncFn(&Session) -> Result<Result<T, CliError>, CliError>,
    ) -> Result<(T, Vec<PassedOver>), CliError> {
        let first = match judge(ask(self).await)? {
            Ok(done) => return Ok((done, Vec::new())),
            Err(error) => error,
        };
        let Some((asked, others)) = path.and_then(|path| self.find_turns(path)) else {
            return Err(first);
        };
        let mut passed = vec![PassedOver { server: asked, error: first }];
        for server in others {
            if let Some(last) = passed.last() {
                last.say(self);
            }
            let shown = shown_text(&server.address);
            self.output.note(&format!("Asking {shown}, which the project's signers file names."));
            match judge(ask(&Session { turn: Some(server.clone()), ..self.clone() }).await)? {
                Ok(done) => {
                    self.output.note(&format!("This is from {shown}."));
                    return Ok((done, passed));
                }
                Err(error) => passed.push(PassedOver { server: server.address, error }),
            }
        }
        Err(conclude(passed))
    }

    /// The server that is asked first for a project, and those after it. `None` if no other can be asked.
    fn find_turns(&self, path: &RepoPath) -> Option<(String, Vec<KnownServer>)> {
        let (asked, named) = match self.chosen_server(Some(path)) {
            // The user's word.
            Some(KnownServer { named_by: None, .. }) => return None,
            Some(server) => (server.address, self.find_named_servers(path)),
            None => self.discovered.borrow().clone()?,
        };
        let named_by = Some(path.clone());
        let named = named.into_iter().map(|address| KnownServer { address, named_by: named_by.clone() });
        let others: Vec<KnownServer> = named.filter(|server| !server.is_at(&asked)).collect();
        (!others.is_empty()).then_some((asked, others))
    }

    /// The servers that the newest signers file names that this computer has accepted.
    fn find_named_servers(&self, path: &RepoPath) -> Vec<String> {
        let past = TrustFile::locate().map(|trust| trust.find_past(path)).unwrap_or_default();
        let newest = past.history.entries.last();
        let newest = newest.and_then(|entry| SignersFile::parse(entry.signers_config.as_bytes()).ok());
        newest.map(|file| file.servers().to_vec()).unwrap_or_default()
    }

    /// The path by which the servers for a name are known.
    pub(crate) fn place_of(&self, name: &ReleaseName) -> Option<RepoPath> {
        match &name.subject {
            NamedSubject::Short(short) => choose_fitting(short, &self.known_projects()).ok().flatten(),
            NamedSubject::Url(_) | NamedSubject::Path(_) => name.written_path(),
        }
    }
}

/// The inner error is one that another server can make good: this one is away, or what it shows is refused. What a
/// server does not have, others do not have either, and what is revoked stays revoked.
fn judge<T>(answered: Result<Result<T, CliError>, CliError>) -> Result<Result<T, CliError>, CliError> {
    match answered {
        Ok(Ok(done)) => Ok(Ok(done)),
        Err(error) | Ok(Err(error)) if error.kind() == ErrorKind::Unreachable => Ok(Err(error)),
        // The key of a log that contradicts itself has signed both. That is no server's lie.
        Ok(Err(error)) if error.kind() == ErrorKind::Verification && !error.is_log_fork() => Ok(Err(error)),
        Err(error) | Ok(Err(error)) => Err(error),
    }
}

/// The error of all servers together. A lie weighs more than silence.
fn conclude(mut passed: Vec<PassedOver>) -> CliError {
    let all = passed.iter().map(PassedOver::json).collect::<Vec<_>>();
    let worst = passed.iter().rposition(|passed| passed.error.kind() == ErrorKind::Verification);
    let PassedOver { server, error } = passed.remove(worst.unwrap_or(passed.len() - 1));
    error.prefixed(&shown_text(&server)).with_detail("servers_passed_over", json!(all))
}
