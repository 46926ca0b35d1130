//! Proposed signers beyond their signatures: until when they wait, and a veto that a master began (D131, D135). The server's
//! word, except that signatures which do not verify are not counted.

use std::collections::BTreeSet;

use countersign_api::catalogue::{ListedRelease, ReleaseState};
use countersign_core::{
    documents::{
        agreement::Agreement,
        layout::{self, Signable},
        signatures::SignatureSet,
        veto::Veto,
    },
    values::{key::PublicKey, path::RepoPath, shown::plural, time::Timestamp},
};

use crate::{client::ServerClient, error::CliError};

/// How many releases are named that lose their signatures.
const MOST_NAMED: usize = 5;

#[derive(Default)]
pub(crate) struct Waiting {
    /// When signers take effect that have all signatures.
    pub(crate) until: Option<Timestamp>,
    pub(crate) veto: Option<PendingVeto>,
    pub(crate) drops: DroppedSignatures,
}

/// A veto that needs more signatures.
pub(crate) struct PendingVeto {
    pub(crate) text: String,
    pub(crate) collected: SignatureSet,
}

impl Waiting {
    /// Of the signers that are pending at this path.
    pub(crate) async fn find(client: &ServerClient, path: &RepoPath) -> Result<Self, CliError> {
        let agreement = client.parsed(&layout::agreement_of(path), Agreement::parse).await?;
        let veto = PendingVeto::find(client, path).await?;
        let drops = match layout::signable(path) {
            Some(Signable::PendingSigners { project }) => DroppedSignatures::find(client, &project).await,
            Some(Signable::Index) | None => DroppedSignatures::default(),
        };
        Ok(Self { until: agreement.map(|agreement| agreement.due_at), veto, drops })
    }
}

/// The collecting releases of a project that have signatures. New signers drop these signatures (D16).
#[derive(Default)]
pub(crate) struct DroppedSignatures {
    pub(crate) releases: Vec<RepoPath>,
    /// Whether the server lists only a part.
    more: bool,
}

impl DroppedSignatures {
    /// It is for information, so a server that cannot tell is no reason to fail.
    pub(crate) async fn find(client: &ServerClient, project: &RepoPath) -> Self {
        let asked = client.releases(&[("project", project.as_str()), ("state", "collecting")]).await;
        let Ok(answer) = asked else { return Self::default() };
        let is_signed = |release: &ListedRelease| {
            release.state == ReleaseState::Collecting
                && release.signatures.collected > 0
                && release.index_path.is_inside(project)
        };
        let releases = answer.releases.into_iter().filter(is_signed);
        Self { releases: releases.map(|release| release.index_path).collect(), more: answer.more }
    }

    /// As in `2 collecting releases: …`; `None` if there are none.
    pub(crate) fn text(&self) -> Option<String> {
        let count = self.releases.len();
        if count == 0 {
            return None;
        }
        let named = self.releases.iter().take(MOST_NAMED).map(RepoPath::as_str).collect::<Vec<_>>();
        let (least, rest) = (if self.more { "at least " } else { "" }, count.saturating_sub(MOST_NAMED));
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        Some(format!("{least}{count} collecting release{}: {}{rest}", plural(count), named.join(", ")))
    }
}

impl PendingVeto {
    async fn find(client: &ServerClient, path: &RepoPath) -> Result<Option<Self>, CliError> {
        let Some(text) = client.document(&layout::pending_veto_of(path)).await? else { return Ok(None) };
        let signatures = layout::pending_signatures_of(&layout::veto_of(path));
        let collected = client.parsed(&signatures, SignatureSet::parse).await?.unwrap_or_default();
        Ok(Some(Self { text, collected }))
    }

    /// `None` if it is no veto.
    pub(crate) fn reason(&self) -> Option<String> {
        Veto::parse(self.text.as_bytes()).ok().map(|document| document.veto)
    }

    pub(crate) fn signed(&self) -> BTreeSet<PublicKey> {
        self.collected.verifying_signers(self.text.as_bytes())
    }
}
