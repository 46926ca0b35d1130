//! Proposed signers beyond their signatures: until when they wait, and a veto that a master began (D131, D135). The server's
//! word, except that signatures which do not verify are not counted.

use std::collections::BTreeSet;

use countersign_core::{
    documents::{agreement::Agreement, layout, signatures::SignatureSet, veto::Veto},
    values::{key::PublicKey, path::RepoPath, time::Timestamp},
};

use crate::{client::ServerClient, error::CliError};

#[derive(Default)]
pub(crate) struct Waiting {
    /// When signers take effect that have all signatures.
    pub(crate) until: Option<Timestamp>,
    pub(crate) veto: Option<PendingVeto>,
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
        Ok(Self { until: agreement.map(|agreement| agreement.due_at), veto })
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
