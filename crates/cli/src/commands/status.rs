//! `countersign status`: from what the server shows to everybody, so that nobody needs a key for it.

use std::collections::BTreeSet;

use countersign_core::{
    consent::Consent,
    key::PublicKey,
    layout::{self, Signable},
    path::RepoPath,
    quorum,
    revocation::Revocation,
    shown::quoted,
    signatures::SignatureSet,
    signers::{SignersFile, shown_signer},
};
use serde_json::json;

use crate::{args::StatusArgs, client::Client, error::CliError, session::Session};

/// Where a file stands. The server's word, except that signatures which do not verify are not counted.
struct Status {
    state: State,
    signed: BTreeSet<PublicKey>,
    missing: BTreeSet<PublicKey>,
    /// For the names, the newest first.
    signers: Vec<SignersFile>,
    /// Thresholds in words.
    needs: String,
    /// A revocation that waits for more signatures.
    begun: Option<Begun>,
}

struct Begun {
    reason: String,
    signed: BTreeSet<PublicKey>,
}

enum State {
    Collecting,
    Complete,
    Revoked { reason: String },
}

pub(crate) async fn run(session: &Session, args: &StatusArgs) -> Result<(), CliError> {
    let path = &args.path;
    let status = match layout::signable(path) {
        Some(Signable::Index) => index_status(&session.client, path).await?,
        Some(Signable::PendingSigners { project }) => {
            proposal_status(&session.client, path, &project).await?
        }
        None => {
            return Err(CliError::usage(
                format!("{path} collects no signatures"),
                "give the path of an index (…/svc.index.json) or of a pending signers file",
            ));
        }
    };
    let names = |keys: &BTreeSet<PublicKey>| keys.iter().map(|key| status.name(key)).collect::<Vec<_>>();
    let (signed, missing) = (names(&status.signed), names(&status.missing));
    let (state, color): (&str, fn(&crate::output::Output, &str) -> String) = match &status.state {
        State::Collecting => ("collecting signatures", crate::output::Output::strong),
        State::Complete => ("complete", crate::output::Output::good),
        State::Revoked { .. } => ("REVOKED", crate::output::Output::bad),
    };
    let mut lines = vec![format!("{path}: {}", color(&session.output, state))];
    if let State::Revoked { reason } = &status.state {
        lines.push(format!("  reason      {}", quoted(reason)));
    }
    lines.push(format!("  needs       {}", status.needs));
    lines.push(format!(
        "  signed      {}",
        if signed.is_empty() { "nobody".to_owned() } else { signed.join(", ") }
    ));
    if matches!(status.state, State::Collecting) {
        lines.push(format!("  not signed  {}", missing.join(", ")));
    }
    if let Some(Begun { reason, signed }) = &status.begun {
        lines.push(format!(
            "  revocation  begun by {}, for the reason {}; co-sign it with `countersign revoke PATH`",
            names(signed).join(", "),
            quoted(reason)
        ));
    }
    let keys = |keys: &BTreeSet<PublicKey>| keys.iter().map(PublicKey::to_string).collect::<Vec<_>>();
    let value = json!({
        "file_path": path.as_str(),
        "is_complete": matches!(status.state, State::Complete),
        "revoked": matches!(status.state, State::Revoked { .. }),
        "reason": match &status.state {
            State::Revoked { reason } => Some(reason),
            State::Collecting | State::Complete => None,
        },
        "signed_by": keys(&status.signed),
        "missing": keys(&status.missing),
        "pending_revocation": status.begun.as_ref().map(|begun| {
            json!({"reason": begun.reason, "signed_by": keys(&begun.signed)})
        }),
    });
    session.output.answer(&lines.join("\n"), &value)
}

impl Status {
    fn name(&self, key: &PublicKey) -> String {
        let known = self.signers.iter().find(|signers| signers.lists(key));
        known.map_or_else(|| key.to_string(), |signers| shown_signer(&signers.signer(*key)))
    }
}

async fn index_status(client: &Client, path: &RepoPath) -> Result<Status, CliError> {
    let index = client.document(path).await?.ok_or_else(|| not_found(path))?;
    let signers = client.parsed(&layout::signers_copy_of(path), SignersFile::parse).await?;
    let signers = signers.ok_or_else(|| not_found(path))?;
    let revocation = client.parsed(&layout::revocation_of(path), Revocation::parse).await?;
    let collecting = client.parsed(&layout::pending_signatures_of(path), SignatureSet::parse).await?;
    let (state, set) = match (revocation, collecting) {
        (Some(document), _) => {
            let set = client.parsed(&layout::revoked_signatures_of(path), SignatureSet::parse).await?;
            (State::Revoked { reason: document.reason }, set.unwrap_or_default())
        }
        (None, Some(set)) => (State::Collecting, set),
        (None, None) => {
            let set = client.parsed(&layout::signatures_of(path), SignatureSet::parse).await?;
            (State::Complete, set.unwrap_or_default())
        }
    };
    let signed = set.verifying_signers(index.as_bytes());
    let groups = signers.artifact_groups();
    if matches!(state, State::Complete) && !quorum::is_met(groups, &signed) {
        return Err(CliError::unverified(
            format!("the server shows {path} as complete, but the signatures are not enough"),
            "check --server: it lies or is broken",
        ));
    }
    let needs = groups.iter().map(|group| {
        let count = quorum::count(group, &signed);
        format!("{} of {} artifact signers, so far {count}", group.threshold, group.signers.len())
    });
    let needs = needs.collect::<Vec<_>>().join(", and ");
    // Whoever is in a group that has enough is asked for nothing more.
    let open = groups.iter().filter(|group| quorum::count(group, &signed) < group.threshold);
    let missing = open.flat_map(|group| group.signers.iter().map(|signer| signer.key));
    let missing = missing.filter(|key| !signed.contains(key)).collect();
    let begun = begun_revocation(client, path).await?;
    Ok(Status { state, signed, missing, needs, begun, signers: vec![signers] })
}

async fn begun_revocation(client: &Client, path: &RepoPath) -> Result<Option<Begun>, CliError> {
    let Some(text) = client.document(&layout::pending_revocation_of(path)).await? else { return Ok(None) };
    let signatures = layout::pending_signatures_of(&layout::revocation_of(path));
    let set = client.parsed(&signatures, SignatureSet::parse).await?.unwrap_or_default();
    let document = Revocation::parse(text.as_bytes()).ok();
    let signed = set.verifying_signers(text.as_bytes());
    Ok(document.map(|document| Begun { reason: document.reason, signed }))
}

async fn proposal_status(client: &Client, path: &RepoPath, project: &RepoPath) -> Result<Status, CliError> {
    let text = client.document(path).await?.ok_or_else(|| {
        CliError::other(
            format!("no signers file is pending at {path}"),
            "it may be in force already: `countersign chain PROJECT` shows the history",
        )
    })?;
    let proposed = SignersFile::parse(text.as_bytes()).map_err(|error| {
        CliError::unverified(format!("what the server shows as {path} is no signers file"), "check --server")
            .because(error)
    })?;
    let current = client.parsed(&layout::active_signers(project), SignersFile::parse).await?;
    let set = client.parsed(&layout::pending_signatures_of(path), SignatureSet::parse).await?;
    let signed = set.unwrap_or_default().verifying_signers(text.as_bytes());
    let consent = Consent { current: current.as_ref(), proposed: &proposed };
    let missing = consent.missing_signers(&signed);
    let needs = match &current {
        None => "everyone in the file",
        Some(_) => "enough of the current and of the new admins, and everyone who joins",
    };
    let signers = std::iter::once(proposed).chain(current).collect();
    Ok(Status { state: State::Collecting, signed, missing, needs: needs.to_owned(), begun: None, signers })
}

fn not_found(path: &RepoPath) -> CliError {
    CliError::other(
        format!("the server has no {path}"),
        "check the path: `countersign pending` lists what waits for you",
    )
}
