//! Proposed signers beyond their signatures: until when they wait (D131), what masters vetoed last (D135), and which
//! signatures a rotation drops. The server's word, except that signatures which do not verify are not counted.

use countersign_api::state::DroppedReleases;
use countersign_core::documents::{history::Agreement, layout, signatures::SignatureSet, statement::Veto};
use countersign_core::rules::decide::statement::{VetoRecord, list_records};
use countersign_core::values::shown::{plural, quoted};
use countersign_core::values::{digest::Sha512, path::RepoPath, time::Timestamp};
use countersign_explain::progress::Names;

use crate::client::{now, state::Shown};
use crate::words::{error::CliError, table::People, table::when_text};

/// How many releases are named that lose their signatures.
const MOST_NAMED: usize = 5;

/// When proposed signers take effect that have all signatures. `None` while they collect.
pub(crate) fn find_due(shown: &Shown) -> Result<Option<Timestamp>, CliError> {
    let agreement = layout::agreement_of(&layout::pending_signers(shown.project()));
    Ok(shown.parsed(&agreement, Agreement::parse)?.map(|agreement| agreement.due_at))
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
    /// The digest of the signers file that was proposed.
    pub(crate) digest: Sha512,
    pub(crate) reason: String,
    pub(crate) signed: SignatureSet,
}

impl Vetoed {
    /// A veto that no key signed is none.
    pub(crate) fn find(shown: &Shown) -> Result<Option<Self>, CliError> {
        let project = shown.project();
        let Some(VetoRecord { path, .. }) =
            list_records(&shown.files, project).ok().and_then(|mut all| all.pop())
        else {
            return Ok(None);
        };
        let document = shown.parsed(&path, Veto::parse)?.filter(|veto| veto.project_id == *project);
        let signed = shown.parsed(&layout::signatures_of(&path), SignatureSet::parse)?.unwrap_or_default();
        let document = document.filter(|_| !signed.entries.is_empty());
        Ok(document.map(|document| Self {
            digest: document.signers_file_digest,
            reason: document.veto,
            signed,
        }))
    }

    pub(crate) fn vetoed_at(&self) -> Option<Timestamp> {
        self.signed.entries.values().map(|collected| collected.collected_at).max()
    }

    /// Says who vetoed the proposal, when and why.
    pub(crate) fn describe(&self, shown: &Shown) -> String {
        let signers = shown.signers().ok().flatten();
        let names = Names::of(&signers);
        let who = People { names: &names, you: None }.list(self.signed.signers());
        let at = self.vetoed_at().map(when_text).unwrap_or_default();
        format!("by {who}, {at}, for the reason {}", quoted(&self.reason))
    }
}

/// The releases that lose their signatures, as in `2 collecting releases: …`.
pub(crate) fn dropped_text(DroppedReleases { releases, more }: &DroppedReleases) -> Option<String> {
    let count = releases.len();
    if count == 0 {
        return None;
    }
    let named = releases.iter().take(MOST_NAMED).map(RepoPath::as_str).collect::<Vec<_>>();
    let (least, rest) = (if *more { "at least " } else { "" }, count.saturating_sub(MOST_NAMED));
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    Some(format!("{least}{count} collecting release{}: {}{rest}", plural(count), named.join(", ")))
}
