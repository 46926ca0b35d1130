//! The verdict at the top of a release's page: how far it is signed, what is missing, whether witnesses vouch for it,
//! and which release of the project is the newest (D249).

use countersign_core::documents::transparency::Transparency;
use countersign_core::log::record::LoggedState;
use countersign_core::proof::freshness::{QuorumCount, count_cosigned, is_too_old};
use countersign_core::rules::{stored, stored::ReleaseState};
use countersign_core::values::{path::RepoPath, time::Timestamp};
use countersign_explain::{describe::release::ReleaseDescription, reproduction::is_reproducible};
use countersign_store::Head;
use maud::{Markup, html};

use crate::api::state::App;
use crate::web::{links, overview::ReleaseEntry, parts, projects};

/// What a page says about a release beside what the release itself says.
pub(super) struct Verdict {
    /// The newest good release of the project, if it is another one.
    newest: Option<RepoPath>,
    /// The word of the witnesses. Only a complete release has it, and only if no one wants it revoked (D185).
    witnessed: Option<Witnessed>,
    now: Timestamp,
}

enum Witnessed {
    /// Enough witnesses had seen no newer state then.
    Proven { as_of: Timestamp, quorum: QuorumCount, is_old: bool },
    /// A policy asks for witnesses, and there is no proof by enough of them.
    Unproven,
}

impl Verdict {
    pub(super) fn find(app: &App, head: &Head, release: &ReleaseDescription) -> Self {
        let releases = projects::count_releases(head, &release.index.project_id);
        let newest = releases.find_newest().and_then(ReleaseEntry::index);
        let is_good = release.state == ReleaseState::Complete && release.begun_revocation.is_none();
        Self {
            newest: newest.filter(|newest| *newest != release.path),
            witnessed: is_good.then(|| ask_witnesses(app, head, release)).flatten(),
            now: app.now(),
        }
    }

    /// Whether the verdict can change without a change of what is stored.
    pub(super) fn changes_with_time(&self) -> bool {
        self.witnessed.is_some()
    }

    pub(super) fn render(&self, release: &ReleaseDescription) -> Markup {
        let complete = release.reproduction.as_ref().filter(|_| release.state == ReleaseState::Complete);
        let lacking = complete.filter(|reproduction| reproduction.is_lacking());
        html! {
            div.is-doubted[parts::is_doubted(release)] {
                p.lede {
                    @match release.state {
                        ReleaseState::Collecting => {
                            @match &release.groups[..] {
                                // Says whose signatures are missing. Several groups each say so below.
                                [only] => (parts::group_progress(only)),
                                _ => (parts::progress(release.tally)),
                            }
                            ". Do not use it yet."
                        }
                        ReleaseState::Complete => {
                            (parts::progress(release.tally))
                            @if let Some(at) = release.completed_at { ", complete since " (parts::when(at)) }
                        }
                        ReleaseState::Revoked => "Do not use it. Its signers have revoked it.",
                    }
                }
                @if let Some(lacking) = lacking {
                    p.lede {
                        @if is_reproducible(lacking, release.state) { "Do not use it yet. " } @else { "Do not use it. " }
                        (parts::how_reproduced(lacking, &release.names))
                    }
                }
                @if let Some(witnessed) = &self.witnessed { p.lede { (self.describe(witnessed)) } }
                @if let Some(newest) = &self.newest {
                    p.lede {
                        @match (release.state, &release.begun_revocation) {
                            (ReleaseState::Complete, None) => "The newest release is ",
                            (ReleaseState::Collecting, _) => "The newest complete release is ",
                            (ReleaseState::Revoked, _) | (ReleaseState::Complete, Some(_)) => "The newest good release is ",
                        }
                        a.wrap href=(links::page(newest)) { bdi { (links::release_name(&release.index.project_id, newest)) } } "."
                    }
                }
            }
        }
    }

    fn describe(&self, witnessed: &Witnessed) -> Markup {
        html! {
            @match witnessed {
                Witnessed::Proven { as_of, quorum, is_old } => {
                    "Not revoked as of " (parts::moment(*as_of, self.now)) ", by " (quorum.cosigned) " of "
                    a href=(links::LOG) { (parts::count(quorum.witnesses, "witness", "witnesses")) }
                    @if *is_old { ". That is longer ago than the project allows" }
                    "."
                }
                Witnessed::Unproven => "This server has no proof by witnesses yet that it is not revoked.",
            }
        }
    }
}

/// Asks the log of this server what it proves, by the witnesses that the project names, or else by those of the log.
fn ask_witnesses(app: &App, head: &Head, release: &ReleaseDescription) -> Option<Witnessed> {
    let (log, now) = (app.log.get()?, app.now());
    let signers = stored::active_signers(head, &release.index.project_id).ok()??.file;
    let named = signers.transparency();
    let policy = named.map(Transparency::policy).or_else(|| log.policy())?;
    // None if no witness is needed: then the log's word is this server's.
    policy.tolerance()?;
    let (_, staple) = log.staple(|| app.store.head(), &release.path);
    let proven = staple.ok().filter(|staple| {
        let record = &staple.statuses.release;
        record.index == release.digest && record.state == LoggedState::Complete
    });
    let key = named.map_or(log.key(), Transparency::log);
    let counted = proven.and_then(|staple| count_cosigned(&staple.proof.note, key, &policy, now).ok());
    let Some((Some(as_of), quorum)) = counted else { return Some(Witnessed::Unproven) };
    let max_age = named.and_then(Transparency::max_age);
    let is_old = max_age.is_some_and(|most| is_too_old(as_of, now, most));
    Some(Witnessed::Proven { as_of, quorum, is_old })
}
