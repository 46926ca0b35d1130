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
    values::{
        key::PublicKey,
        path::RepoPath,
        shown::{plural, quoted},
        time::Timestamp,
    },
};
use countersign_explain::progress::Names;

use crate::{
    client::{ServerClient, now},
    error::CliError,
    people::{People, when_text},
};

/// How many releases are named that lose their signatures.
const MOST_NAMED: usize = 5;

#[derive(Default)]
pub(crate) struct Waiting {
    /// When signers take effect that have all signatures.
    pub(crate) until: Option<Timestamp>,
    pub(crate) veto: Option<PendingVeto>,
    pub(crate) drops: DroppedSignatures,
}

/// When signers take effect that have all signatures, in words. A block of the operator can hold them back (D173).
pub(crate) fn due_text(until: Timestamp) -> String {
    let is_past = now().is_ok_and(|now| until <= now);
    match is_past {
        true => format!(
            "was due on {}, and the server's operator holds it back; only `countersign admin drop` removes it before the \
             block ends",
            when_text(until)
        ),
        false => format!("takes effect on {}", when_text(until)),
    }
}

/// A proposal that the masters vetoed, the newest of its project. It is shown until the next activation (D136).
pub(crate) struct Vetoed {
    pub(crate) reason: String,
    pub(crate) signed: SignatureSet,
}

impl Vetoed {
    /// A veto that no key signed is none.
    pub(crate) async fn find(client: &ServerClient, project: &RepoPath) -> Result<Option<Self>, CliError> {
        let path = layout::newest_veto(project);
        let Some(text) = client.document(&path).await? else { return Ok(None) };
        let document = Veto::parse(text.as_bytes()).ok().filter(|veto| veto.project_id == *project);
        let set = client.parsed(&layout::signatures_of(&path), SignatureSet::parse).await?;
        let signed = set.unwrap_or_default().keep_verifying(text.as_bytes());
        Ok(document
            .filter(|_| !signed.entries.is_empty())
            .map(|document| Self { reason: document.veto, signed }))
    }

    pub(crate) fn vetoed_at(&self) -> Option<Timestamp> {
        self.signed.entries.values().map(|collected| collected.collected_at).max()
    }

    /// Who vetoed it, when and why.
    pub(crate) async fn describe(&self, client: &ServerClient, project: &RepoPath) -> String {
        let signers = client.signers_above(project).await.ok().flatten();
        let names = Names::of(&signers);
        let who = People { names: &names, you: None }.list(self.signed.signers());
        let at = self.vetoed_at().map(when_text).unwrap_or_default();
        format!("by {who}, {at}, for the reason {}", quoted(&self.reason))
    }
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
