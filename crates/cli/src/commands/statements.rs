//! What the commands that state something share: a statement that others began is joined, and one that is signed on a
//! computer without a network is prepared, carried there, signed, carried back and submitted (D176).

use std::{path::Path, time::Duration};

use countersign_api::requests;
use countersign_core::documents::signers::Group;
use countersign_core::documents::statement::{SignedStatement, StatementKind};
use countersign_core::documents::{index::ReleaseIndex, layout, signatures::SignatureSet};
use countersign_core::proof::{to_sign::SigningRequest, to_state::StatementRequest, to_state::ToState};
use countersign_core::values::{key::PublicKey, path::RepoPath, shown::shown_text, time::Timestamp};
use countersign_explain::describe::describe;
use countersign_explain::progress::{Names, describe_groups, groups_text};
use serde_json::{Value, json};

use crate::client::session::{KeyRing, Session};
use crate::client::{ServerClient, now, state::Shown, submission::Submitted, targets::Target};
use crate::evidence::carried::{SignedFile, check_output, mark_done, read, submit_all};
use crate::words::{error::CliError, error::shown_path, output::Several, table::People};
use crate::{args::CarriedArgs, keys::SigningKey, settings::config_dir::write};

/// A command for one kind of statement: what is its own.
pub(super) struct StatementCommand {
    pub(super) kind: StatementKind,
    pub(super) name: &'static str,
    /// What the command is called with to prepare a statement.
    pub(super) names: &'static str,
    /// What a signer without a network is asked.
    pub(super) question: &'static str,
    /// Reads a carried request as what it must be.
    pub(super) check: fn(&StatementRequest) -> Result<ToState, CliError>,
    /// Says that the server would not accept a signature of this key.
    pub(super) not_yours: fn(&ToState, &PublicKey) -> CliError,
    /// What a signer without a network is shown.
    pub(super) describe: fn(&Session, &StatementRequest, &ToState, PublicKey) -> Vec<String>,
    /// The name that people use for the subject of a statement.
    pub(super) subject: fn(&Session, &RepoPath) -> Result<String, CliError>,
    /// What became of a statement about this subject, on this server.
    pub(super) say_submitted: fn(&str, &str, Submitted<bool>) -> String,
}

/// A statement that was handed in.
pub(super) struct SubmittedStatement {
    pub(super) statement: SignedStatement,
    pub(super) client: ServerClient,
    pub(super) submitted: Submitted<bool>,
}

impl SubmittedStatement {
    /// What became of it. `answer` is the name of what the server said.
    pub(super) fn json(&self, answer: &str) -> Value {
        let SignedStatement { file_path, public_key, .. } = &self.statement;
        let mut value = json!({"public_key": public_key, answer: self.submitted.answer});
        match layout::project_with_signers_at(file_path) {
            Some(project) => value["project_id"] = json!(project),
            None => value["file_path"] = json!(file_path),
        }
        mark_done(value, self.submitted.was_done)
    }
}

/// Shows what is to be stated and asks. Then signs it with the user's key, which must be `you`.
pub(super) fn sign(
    session: &Session,
    Target { path, shown, .. }: &Target,
    to_state: &ToState,
    you: PublicKey,
    about: &[String],
    question: &str,
) -> Result<(SigningKey, SignedStatement), CliError> {
    session.confirm(&about.join("\n"), question)?;
    let key = session.key(Some(path), &shown.listed_keys()?).map_err(|error| shown.naming_keys(error))?;
    let statement = to_state.sign(you, |digest| key.sign(digest))?;
    Ok((key, statement))
}

/// The time of a statement that replaces one of the same key: the server takes a later one only, so that no one can
/// replay an earlier one.
pub(super) fn time_after(earlier: Option<Timestamp>) -> Result<Timestamp, CliError> {
    const STEP: Duration = Duration::from_millis(1);
    let now = now()?.to_whole_milliseconds();
    Ok(earlier.map_or(now, |earlier| now.max(earlier.later(STEP))))
}

/// The names of the files of a release, in one line.
pub(super) fn files_text(index: &ReleaseIndex) -> String {
    let names: Vec<&str> = index.published_files.iter().map(|file| file.file_name.as_str()).collect();
    shown_text(&names.join(", "))
}

impl StatementCommand {
    /// Refuses a key whose signature the server would not accept.
    pub(super) fn check_key(&self, to_state: &ToState, you: &PublicKey) -> Result<(), CliError> {
        match to_state.accepted_signers().contains(you) {
            true => Ok(()),
            false => Err((self.not_yours)(to_state, you)),
        }
    }

    /// Signs a carried file if the arguments ask for it. `None` if they do not.
    pub(super) fn sign_carried(&self, session: &Session, args: &CarriedArgs) -> Option<Result<(), CliError>> {
        let (file, output) = (args.detached.as_ref()?, args.output.as_ref()?);
        Some(self.sign(session, file, output))
    }

    /// A statement that others began, as the server shows it.
    pub(super) fn find_begun(
        &self,
        state: &Shown,
        subject: &SigningRequest,
    ) -> Result<Option<StatementRequest>, CliError> {
        let statement_path = self.kind.path_of(&subject.path);
        let Some(text) = state.document(&layout::pending_of(&statement_path)) else { return Ok(None) };
        let collected = state.parsed(&layout::pending_signatures_of(&statement_path), SignatureSet::parse)?;
        let (subject, collected) = (subject.clone(), collected.unwrap_or_default());
        Ok(Some(StatementRequest { kind: self.kind, subject, text, collected, waits_until: None }))
    }

    /// The begun statement, byte for byte, or a new one where the reason is another. `begin` writes its document.
    pub(super) fn choose_request(
        &self,
        subject: SigningRequest,
        reason: Option<&String>,
        begun: Option<&StatementRequest>,
        begin: impl FnOnce(String) -> Result<Vec<u8>, CliError>,
    ) -> Result<StatementRequest, CliError> {
        if let Some(begun) = begun.filter(|begun| is_meant(begun, reason)) {
            return Ok(begun.clone());
        }
        let reason = reason.cloned().ok_or_else(|| {
            CliError::usage(
                format!("{} needs a reason", self.kind.title()),
                "say why with --reason TEXT; everyone can read it",
            )
        })?;
        let (kind, collected) = (self.kind, SignatureSet::default());
        let text = String::from_utf8_lossy(&begin(reason)?).into_owned();
        Ok(StatementRequest { kind, subject, text, collected, waits_until: None })
    }

    /// Writes a request for a computer without a network. Needs no key.
    pub(super) fn export(
        &self,
        session: &Session,
        request: StatementRequest,
        subject: &str,
        file: &Path,
    ) -> Result<(), CliError> {
        // What would be refused offline is refused here already.
        (self.check)(&request)?;
        let (shown, path) = (shown_path(file), request.path().clone());
        write(file, &requests::write_statement_requests(self.kind, &[request]))?;
        let Self { kind, name, .. } = self;
        let noun = kind.noun();
        let text = format!(
            "Wrote {} of {subject} to {shown}\nWhere the key is: countersign {name} --detached {shown} -o {noun}.json",
            kind.title()
        );
        session.output.result(&text, &json!({"export": file.display().to_string(), "file_paths": [path]}))
    }

    fn sign(&self, session: &Session, file: &Path, output: &Path) -> Result<(), CliError> {
        check_output(file, output)?;
        let made_by = format!("countersign {} {} --export FILE", self.name, self.names);
        let parse = |bytes: &[u8]| requests::parse_statement_requests(self.kind, bytes);
        let requests = read(file, parse, &made_by)?;
        let mut several = Several::new(session.output);
        let checked = requests.iter().filter_map(|request| {
            Some((request, several.keep(request.path().as_str(), (self.check)(request))?))
        });
        let checked: Vec<(&StatementRequest, ToState)> = checked.collect();
        let Some((first, _)) = checked.first() else { return several.finish("", json!({})) };
        let accepted: Vec<PublicKey> =
            checked.iter().flat_map(|(_, to_state)| to_state.accepted_signers()).collect();
        let you = session.public_key_of(Some(first.path()), &accepted)?;
        let mut keys = KeyRing::new(session);
        let mut sign_one = |request: &StatementRequest, to_state: &ToState| {
            keys.check(&you)?;
            self.check_key(to_state, &you)?;
            let lines = (self.describe)(session, request, to_state, you);
            session.output.show_question(&lines.join("\n"));
            match session.output.ask(self.question)? {
                true => {
                    let key = keys.unlock(first.path(), &accepted, false)?;
                    to_state.sign(you, |digest| key.sign(digest)).map(Some)
                }
                false => Ok(None),
            }
        };
        let signed = checked.iter().filter_map(|(request, to_state)| {
            several.keep_later(request.path().as_str(), sign_one(request, to_state)).flatten()
        });
        let signed: Vec<SignedStatement> = signed.collect();
        let paths = signed.iter().map(|statement| &statement.file_path).collect();
        let bytes = requests::write_statements(self.kind, &signed);
        SignedFile { command: self.name, by: you, paths, bytes }.hand_over(several, output)
    }

    /// Hands in what was signed elsewhere, and says of each what became of it.
    pub(super) async fn submit(
        &self,
        session: &Session,
        file: &Path,
    ) -> Result<(Several, Vec<SubmittedStatement>), CliError> {
        let made_by = format!("countersign {} --detached FILE -o SIGNATURES", self.name);
        let parse = |bytes: &[u8]| requests::parse_statements(self.kind, bytes);
        let statements = read(file, parse, &made_by)?;
        let (several, done) = submit_all(
            session,
            &statements,
            |statement| &statement.file_path,
            async |client, key, statement: &SignedStatement| {
                let subject = (self.subject)(session, &statement.file_path)?;
                let submitted = client.submit_statement(key, statement).await?;
                session.output.line(&(self.say_submitted)(&subject, &client.address(), submitted));
                Ok(SubmittedStatement { statement: statement.clone(), client: client.clone(), submitted })
            },
        )
        .await;
        Ok((several, done.into_iter().map(|(_, _, submitted)| submitted).collect()))
    }
}

/// Says how far a begun statement is, behind what was said of it: `: it has 1 of 2; 1 more from bob or carol`.
pub(super) fn say_begun(state: &Shown, path: &RepoPath) -> Option<String> {
    let progress = describe(&state.files, path).ok()??.begun_progress()?;
    Some(format!(": it {progress}"))
}

/// Says who has signed a statement so far, and what is missing: `rita (svc-pub:…); it has 1 of 2; 1 more from ron`.
pub(super) fn describe_signed(
    request: &StatementRequest,
    to_state: &ToState,
    groups: &[Group],
    you: Option<PublicKey>,
) -> String {
    let names = Names::of([to_state.signers()]);
    let mut collected = request.collected.clone();
    collected.entries.retain(|key, _| to_state.signed.contains(key));
    let progress = groups_text(&describe_groups(groups, &collected, &names));
    let people = People { names: &names, you };
    format!("{}; it {progress}", people.list_or(to_state.signed.iter().copied(), "no one yet"))
}

/// Whether a person who gives this reason, or none, means the statement that others began.
pub(super) fn is_meant(begun: &StatementRequest, reason: Option<&String>) -> bool {
    reason.is_none_or(|reason| begun.reason().as_ref() == Some(reason))
}
