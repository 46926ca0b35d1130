//! `countersign sign`: shows what it is, asks, signs.

mod request;

use std::collections::BTreeMap;

use countersign_api::{answers::SignedResponse, catalogue::WaitingKind, state::DroppedReleases};
use countersign_core::documents::signatures::{OtherFormatsFile, SignatureSet};
use countersign_core::documents::{layout, layout::Signable, signers::SignersFile, statement::Revocation};
use countersign_core::values::{key::PublicKey, path::RepoPath};
use countersign_core::{proof::to_sign::SigningRequest, rules::stored, rules::stored::ReleaseState};
use countersign_explain::reproduction::{is_reproducible, lack_text, reproduction_text};
use countersign_explain::{describe::Description, describe::describe};
use serde_json::{Value, json};

use crate::client::session::{KeyRing, Reader, Session};
use crate::client::state::{Shown, dropped_text, find_due, find_vetoed, vetoed_text};
use crate::client::{ServerClient, targets::ReleaseName, targets::Target};
pub(super) use crate::commands::sign::request::check_trusted;
use crate::commands::sign::request::{Gathered, Signing, check, check_asked, find_signed, state_text};
use crate::commands::{download::name_newest, pending};
use crate::evidence::{comparison::Comparison, proof, proof::Network, release::withdrawn};
use crate::words::{error::CliError, error::ErrorKind, output::Several, output::without_empty};
use crate::{args::SignArgs, keys::PublicHalf};

pub(crate) async fn run(session: &Session, args: &SignArgs) -> Result<(), CliError> {
    if let Some(file) = &args.carried.submit {
        return request::submit(session, file).await;
    }
    if let (Some(file), Some(output)) = (&args.carried.detached, &args.carried.output) {
        return request::sign(session, args, file, output);
    }
    let mut several = Several::new(session.output);
    let targets = match args.all {
        true => list_pending(session, &mut several).await?,
        false => find_named(session, args, &mut several).await?,
    };
    if targets.is_empty() && !several.has_failed() {
        let key = session.public_key()?;
        return session.output.result(&pending::say_nothing(&key), &Outcome::default().json());
    }
    let mut gathered = Vec::new();
    for target in targets {
        let found = match gather(&target) {
            Err(error) if error.kind() == ErrorKind::Revoked => {
                Err(name_newest(session, &target.shown, error).await)
            }
            found => found,
        };
        let found = several.keep(target.path.as_str(), found);
        gathered.extend(found.map(|found| (target, found)));
    }
    if let Some(file) = &args.carried.export {
        return request::export(&gathered, several, file);
    }
    let mut keys = KeyRing::new(session);
    let mut outcome = Outcome::default();
    for (target, gathered) in &gathered {
        let signed = outcome.sign_next(&mut keys, args, target, gathered).await;
        several.keep_later(target.path.as_str(), signed);
    }
    outcome.finish(several)
}

/// What became of the files of this run.
#[derive(Default)]
struct Outcome<'a> {
    /// What was signed in this run, and with which key first.
    done: Vec<Value>,
    done_by: Option<PublicKey>,
    /// What the user had signed earlier.
    before: Vec<Value>,
    before_by: Option<PublicKey>,
    /// The answer was no.
    declined: Vec<&'a str>,
    /// The files that are complete without the user's signature.
    complete: Vec<&'a str>,
}

impl<'a> Outcome<'a> {
    async fn sign_next(
        &mut self,
        keys: &mut KeyRing<'_>,
        args: &SignArgs,
        target: &'a Target,
        gathered: &'a Gathered,
    ) -> Result<(), CliError> {
        let (session, Target { client, path, shown }) = (keys.session, target);
        let listed = shown.listed_keys()?;
        let PublicHalf { key: you, format } = session.public_half_of(Some(path), &listed)?;
        let signing = Signing { session, args, you, format, shown: Some(shown) };
        if let Some(at) = find_signed(&gathered.request, &you) {
            let is_complete = gathered.is_complete;
            let state = state_text(is_complete, find_due(shown)?);
            let state = say_progress(shown, path).unwrap_or(state);
            let formats = shown.parsed(&layout::other_formats_of(path), OtherFormatsFile::parse)?;
            let stored = formats.unwrap_or_default().entries.remove(&you).unwrap_or_default();
            let comparison = signing.look_again(&gathered.request, at, &state, Some(&stored), is_complete)?;
            self.before_by.get_or_insert(you);
            self.before.push(without_empty(json!({
                "file_path": path,
                "signed_at": at,
                "is_complete": is_complete,
                "comparison": comparison.as_ref().map(Comparison::json),
            })));
            return Ok(());
        }
        if gathered.is_complete {
            check_asked(&check(&gathered.request)?, &you)?;
            signing.compare_again(&gathered.request)?;
            signing.check_formats(&format!("{path} is complete without your signature"), path, None, true)?;
            let address = client.address();
            session.output.line(&format!(
                "{address} shows {path} as complete without your signature: nothing is left to sign"
            ));
            self.complete.push(path.as_str());
            return Ok(());
        }
        match sign_one(keys, &signing, target, gathered).await? {
            None => self.declined.push(path.as_str()),
            Some(signed) => {
                self.done_by.get_or_insert(you);
                self.done.push(signed);
            }
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let you = self.done_by.or(self.before_by);
        json!({"public_key": you, "signed": self.done, "signed_before": self.before})
    }

    fn finish(self, several: Several) -> Result<(), CliError> {
        let mut value = self.json();
        value["already_complete"] = json!(self.complete);
        if self.declined.is_empty() || several.has_failed() {
            value["declined"] = json!(self.declined);
            return several.finish("", value);
        }
        let message = format!("not signed, because the answer was no: {}", self.declined.join(", "));
        Err(CliError::other(message, "run it again to be asked again").with_details(value))
    }
}

/// Lists everything that waits for the user's key, on every server that they use.
async fn list_pending(session: &Session, several: &mut Several) -> Result<Vec<Target>, CliError> {
    let (clients, key) = (session.each_client(Reader::Signer)?, session.public_key()?);
    let (mut targets, is_one) = (Vec::new(), clients.len() == 1);
    for (address, client) in clients {
        let Some(client) = several.keep_found(&address, client) else { continue };
        let listed = pending::list(session, &client, &key).await;
        let Some(waiting) = several.keep_found(&address, listed) else { continue };
        if waiting.pending.is_empty() && !is_one {
            session.output.note(&format!("{address}: nothing waits for your key."));
            several.keep(&address, Ok(()));
        }
        let is_signable = |kind| matches!(kind, WaitingKind::Signers | WaitingKind::Release);
        for file in waiting.pending.into_iter().filter(|file| is_signable(file.kind)) {
            let found = Target::at(client.clone(), file.file_path.clone()).await;
            targets.extend(several.keep_found(file.file_path.as_str(), found));
        }
    }
    Ok(targets)
}

async fn find_named(
    session: &Session,
    args: &SignArgs,
    several: &mut Several,
) -> Result<Vec<Target>, CliError> {
    let mut targets = Vec::new();
    for name in ReleaseName::parse_all(&args.names)? {
        let found = session.find_signable(&name, Reader::Signer).await;
        targets.extend(several.keep_found(&name.to_string(), found));
    }
    Ok(targets)
}

/// Signs one file after the user has reviewed it, and says so. Returns `None` if the user says no.
async fn sign_one(
    keys: &mut KeyRing<'_>,
    signing: &Signing<'_>,
    Target { client, shown, .. }: &Target,
    gathered: &Gathered,
) -> Result<Option<Value>, CliError> {
    let request = gathered.open()?;
    let session = keys.session;
    keys.check(&signing.you)?;
    let Some(reviewed) = signing.review(request, Network::Online)? else { return Ok(None) };
    let key = keys.unlock(&request.path, &shown.listed_keys()?, request.is_first());
    let key = key.map_err(|error| shown.naming_keys(error))?;
    let body = reviewed.sign(key)?;
    let submitted = match client.submit_signatures(key, &body).await {
        Ok(submitted) => submitted,
        Err(error) => return Err(explain_change(client, request, error).await),
    };
    let SignedResponse { is_complete, waits_until } = submitted.answer;
    let formats = request::check_stored(session, client, &body).await;
    if let Ok(to_sign) = request.check() {
        session.remember(to_sign.project(), client);
    }
    let path = &request.path;
    let is_in_force = is_complete && waits_until.is_none();
    let drops = if is_in_force { shown.drops() } else { DroppedReleases::default() };
    let server = client.address();
    let current = shown.signers()?;
    let asks_builders = current.as_ref().and_then(SignersFile::rebuilds).is_some_and(|asked| asked.required);
    let progress = match is_complete && !asks_builders {
        true => None,
        false => client.state_at(path).await.ok().and_then(|shown| say_progress(&shown, path)),
    };
    let state = progress.unwrap_or_else(|| state_text(is_complete, waits_until));
    session.output.line(&format!("Signed {} on {server}: {state}", session.name_of(path, None)));
    if let Some(dropped) = dropped_text(&drops) {
        let text = format!("The new signers are in force. These need their signatures again: {dropped}");
        session.output.line(&text);
    }
    Ok(Some(without_empty(json!({
        "file_path": path,
        "server": server,
        "is_complete": is_complete,
        "waits_until": waits_until,
        "comparison": reviewed.comparison.as_ref().map(Comparison::json),
        "formats": formats,
        "dropped_signatures_on": drops.releases,
    }))))
}

/// Says what is missing, and from whom: signatures, or builders without whom no one can use a complete release.
fn say_progress(shown: &Shown, path: &RepoPath) -> Option<String> {
    let description = describe(&shown.files, path).ok().flatten()?;
    if let Description::Release(release) = &description
        && release.state == ReleaseState::Complete
        && let Some(lacking) = release.reproduction.as_ref().filter(|reproduction| reproduction.is_lacking())
    {
        return Some(match is_reproducible(lacking, release.state) {
            true => {
                let text = reproduction_text(lacking, &release.names);
                format!("complete, but no one can use it before builders have reproduced it: {text}")
            }
            false => {
                let text = lack_text(lacking);
                format!("complete, but no one can use it, and no builder can change that: {text}")
            }
        });
    }
    (!description.missing().is_empty()).then(|| format!("it {}", description.progress()))
}

/// A signature that the server refuses can be one on what was there a moment ago.
async fn explain_change(client: &ServerClient, request: &SigningRequest, error: CliError) -> CliError {
    let path = &request.path;
    let Ok(shown) = client.state_at(path).await else { return error };
    match shown.document(path) {
        None => absent(&shown, path).unwrap_or(error),
        Some(text) if request.files.get(path) == Some(&text) => error,
        Some(_) => CliError::new(
            ErrorKind::Replaced,
            format!("another file replaced {path} while you looked at it, and nothing was signed"),
            "run this again, and look at the new one",
        )
        .with_details(error.details)
        .with_request_id(error.request_id.as_deref()),
    }
}

/// What the server wants to have signed, and what is needed to understand it: all of it is public, and none is
/// believed.
pub(super) fn gather(Target { path, shown, .. }: &Target) -> Result<Gathered, CliError> {
    let complete = find_complete(shown, path)?;
    let is_complete = complete.is_some();
    // A signers file is signed together with what is said about it.
    let is_proposal = matches!(layout::signable(path), Some(Signable::PendingSigners { .. }));
    let metadata = is_proposal.then(|| layout::metadata_of(path));
    let mut files = BTreeMap::new();
    for path in std::iter::once(path.clone()).chain(metadata) {
        let Some(text) = shown.document(&path) else { return Err(absent(shown, &path)?) };
        files.insert(path, text);
    }
    let collected = match complete {
        Some(set) => Some(set),
        None => shown.parsed(&layout::pending_signatures_of(path), SignatureSet::parse)?,
    };
    let request = SigningRequest {
        path: path.clone(),
        files,
        history: shown.history().clone(),
        collected: collected.unwrap_or_default(),
        objections: shown.read(|files| stored::objections(files, path))?,
        rebuilds: shown.read(|files| stored::rebuilds(files, path))?,
        earlier: shown.read(|files| stored::earlier_objections(files, path))?,
    };
    Ok(Gathered { request, is_complete })
}

fn absent(shown: &Shown, path: &RepoPath) -> Result<CliError, CliError> {
    if let Some(project) = layout::project_with_signers_at(path)
        && let Some(vetoed) = find_vetoed(shown)?
    {
        return Ok(CliError::usage(
            format!("the signers proposed for {project} were vetoed {}", vetoed_text(&vetoed)),
            "nothing is pending now; ask the masters",
        ));
    }
    Ok(match shown.read(|files| stored::withdrawal(files, path))? {
        Some(withdrawal) => withdrawn(shown, &withdrawal),
        None => CliError::other(
            format!("the server {} has no {path}", shown.client.address()),
            "check the name; `countersign pending` lists what waits for you",
        ),
    })
}

/// The signatures of a complete release. What is revoked asks for none, and shows none.
fn find_complete(shown: &Shown, path: &RepoPath) -> Result<Option<SignatureSet>, CliError> {
    if let Some(document) = shown.parsed(&layout::revocation_of(path), Revocation::parse)? {
        return Err(proof::revoked_error(path, shown.project(), &document.reason, document.timestamp, ""));
    }
    shown.parsed(&layout::signatures_of(path), SignatureSet::parse)
}
