//! Where a file stands, as the server shows it to everybody.

use std::collections::BTreeSet;

use countersign_core::{
    documents::{layout, revocation::Revocation, signatures::SignatureSet, signers::SignersFile},
    proof::verify::{GroupCount, count_groups},
    rules::{consent::Consent, quorum},
    values::{digest::Sha512, key::PublicKey, path::RepoPath, shown::quoted},
};
use serde_json::{Value, json};

use crate::{client::ServerClient, error::CliError, output::Output, review::names};

/// Where a file stands. The server's word, except that signatures which do not verify are not counted.
pub(super) struct Status {
    pub(super) state: SigningState,
    /// Of the file itself.
    pub(super) digest: Sha512,
    pub(super) signed: BTreeSet<PublicKey>,
    pub(super) missing: BTreeSet<PublicKey>,
    /// For the names, the newest first.
    pub(super) signers: Vec<SignersFile>,
    /// Thresholds in words.
    pub(super) needs: String,
    /// A revocation that waits for more signatures.
    pub(super) begun: Option<Begun>,
}

pub(super) struct Begun {
    reason: String,
    signed: BTreeSet<PublicKey>,
}

pub(super) enum SigningState {
    Collecting,
    Complete,
    Revoked { reason: String },
}

impl Status {
    pub(super) fn text(&self, path: &RepoPath, output: Output) -> String {
        let files: Vec<&SignersFile> = self.signers.iter().collect();
        let names = |keys: &BTreeSet<PublicKey>| names(keys, &files);
        let state = match &self.state {
            SigningState::Collecting => output.strong("collecting signatures"),
            SigningState::Complete => output.good("complete"),
            SigningState::Revoked { .. } => output.bad("REVOKED"),
        };
        let mut lines = vec![format!("{path}: {state}")];
        if let SigningState::Revoked { reason } = &self.state {
            lines.push(format!("  reason      {}", quoted(reason)));
        }
        lines.push(format!("  needs       {}", self.needs));
        let signed = if self.signed.is_empty() { "no one".to_owned() } else { names(&self.signed) };
        lines.push(format!("  signed      {signed}"));
        if matches!(self.state, SigningState::Collecting) {
            lines.push(format!("  not signed  {}", names(&self.missing)));
        }
        if let Some(Begun { reason, signed }) = &self.begun {
            lines.push(format!(
                "  revocation  begun by {}, for the reason {}; co-sign it with `countersign revoke PATH`",
                names(signed),
                quoted(reason)
            ));
        }
        lines.join("\n")
    }

    pub(super) fn json(&self, path: &RepoPath) -> Value {
        let keys = |keys: &BTreeSet<PublicKey>| keys.iter().map(PublicKey::to_string).collect::<Vec<_>>();
        json!({
            "file_path": path.as_str(),
            "is_complete": matches!(self.state, SigningState::Complete),
            "revoked": matches!(self.state, SigningState::Revoked { .. }),
            "reason": match &self.state {
                SigningState::Revoked { reason } => Some(reason),
                SigningState::Collecting | SigningState::Complete => None,
            },
            "signed_by": keys(&self.signed),
            "missing": keys(&self.missing),
            "pending_revocation": self.begun.as_ref().map(|begun| {
                json!({"reason": begun.reason, "signed_by": keys(&begun.signed)})
            }),
        })
    }
}

pub(super) async fn index_status(client: &ServerClient, path: &RepoPath) -> Result<Status, CliError> {
    let index = client.document(path).await?.ok_or_else(|| not_found(path))?;
    let signers = client.parsed(&layout::signers_copy_of(path), SignersFile::parse).await?;
    let signers = signers.ok_or_else(|| not_found(path))?;
    let revocation = client.parsed(&layout::revocation_of(path), Revocation::parse).await?;
    let collecting = client.parsed(&layout::pending_signatures_of(path), SignatureSet::parse).await?;
    let (state, set) = match (revocation, collecting) {
        (Some(document), _) => {
            let set = client.parsed(&layout::revoked_signatures_of(path), SignatureSet::parse).await?;
            (SigningState::Revoked { reason: document.reason }, set.unwrap_or_default())
        }
        (None, Some(set)) => (SigningState::Collecting, set),
        (None, None) => {
            let set = client.parsed(&layout::signatures_of(path), SignatureSet::parse).await?;
            (SigningState::Complete, set.unwrap_or_default())
        }
    };
    let signed = set.verifying_signers(index.as_bytes());
    let groups = signers.artifact_groups();
    if matches!(state, SigningState::Complete) && !quorum::is_met(groups, &signed) {
        return Err(CliError::unverified(
            format!("the server shows {path} as complete, but the signatures are not enough"),
            "check --server: it lies or is broken",
        ));
    }
    let counts = count_groups(&signers, &signed);
    let needs = counts.iter().map(GroupCount::to_string).collect::<Vec<_>>().join(", and ");
    // A group that has enough signatures asks its members for nothing more.
    let open = groups.iter().filter(|group| quorum::count(group, &signed) < group.threshold);
    let missing = open.flat_map(|group| group.signers.iter().map(|signer| signer.key));
    let missing = missing.filter(|key| !signed.contains(key)).collect();
    let begun = begun_revocation(client, path).await?;
    let digest = Sha512::of(index.as_bytes());
    Ok(Status { state, digest, signed, missing, needs, begun, signers: vec![signers] })
}

async fn begun_revocation(client: &ServerClient, path: &RepoPath) -> Result<Option<Begun>, CliError> {
    let Some(text) = client.document(&layout::pending_revocation_of(path)).await? else { return Ok(None) };
    let signatures = layout::pending_signatures_of(&layout::revocation_of(path));
    let set = client.parsed(&signatures, SignatureSet::parse).await?.unwrap_or_default();
    let document = Revocation::parse(text.as_bytes()).ok();
    let signed = set.verifying_signers(text.as_bytes());
    Ok(document.map(|document| Begun { reason: document.reason, signed }))
}

/// `None` where nothing is pending.
pub(super) async fn proposal_status(
    client: &ServerClient,
    path: &RepoPath,
    project: &RepoPath,
) -> Result<Option<Status>, CliError> {
    let Some(text) = client.document(path).await? else { return Ok(None) };
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
    let (digest, needs) = (Sha512::of(text.as_bytes()), needs.to_owned());
    Ok(Some(Status { state: SigningState::Collecting, digest, signed, missing, needs, begun: None, signers }))
}

pub(super) fn not_pending(path: &RepoPath) -> CliError {
    CliError::other(
        format!("no signers file is pending at {path}"),
        "it may be in force already: `countersign chain PROJECT` shows the history",
    )
}

fn not_found(path: &RepoPath) -> CliError {
    CliError::other(
        format!("the server has no {path}"),
        "check the path: `countersign pending` lists what waits for you",
    )
}
