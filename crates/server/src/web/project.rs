//! The page of a project: its newest release, what waits, its releases, and its signers.

use countersign_api::catalogue::ListedRebuilds;
use countersign_core::documents::layout;
use countersign_core::documents::signers::{RebuildPolicy, Role, Signer, SignersFile};
use countersign_core::rules::stored::ReleaseState;
use countersign_core::values::bounds::{PAGE_ROWS, SEARCH_CHARS};
use countersign_core::values::shown::{shown_count, shown_text};
use countersign_core::values::{path::RepoPath, time::Timestamp};
use countersign_explain::describe::proposal::ProposalDescription;
use countersign_explain::describe::release::{
    ReleaseDescription, ReleaseSummary, describe_release, list_objections, summarise_release,
};
use countersign_explain::lockout::{KeyUse, Lockout, foresee};
use countersign_explain::words::{rebuilt_files_text, shown_hours};
use countersign_explain::{log_strength::LogStrength, strength::effective_groups};
use countersign_explain::{progress::Names, reproduction::different_text};
use countersign_store::Head;
use maud::{Markup, html};

use crate::api::state::App;
use crate::web::changes::{change_list, left_to_default};
use crate::web::overview::{
    ListedState, ProjectOverview, ReleaseCounts, ReleaseEntry, ReleaseList, describe_project,
};
use crate::web::proposal::{begun_veto, condition_summary, takes_force, why_vetoed};
use crate::web::release::REVOKERS_DECIDE;
use crate::web::reply::{PageTrouble, Reply, View};
use crate::web::{frame::Page, links, parts, parts::log_facts, projects, visit::BY_AGE, visit::Visit};

/// What the visitor wants of the list.
struct Wanted {
    state: Option<ListedState>,
    words: String,
}

pub(super) fn show(view: &View, id: &RepoPath) -> Result<Reply, PageTrouble> {
    let (app, head, visit) = (&view.app, &*view.head, &view.visit);
    let missing = || PageTrouble::missing(format!("No project is at {id}"));
    let project = describe_project(head, id)?.ok_or_else(missing)?;
    let releases = projects::count_releases(head, id);
    let counts = releases.count();
    let wanted = Wanted::of(visit)?;
    let newest = find_newest(head, &releases);
    let found = releases.filter(wanted.state, &wanted.words);
    let paging = view.paging(PAGE_ROWS, found.len())?;
    let shown = read_rows(head, found.newest(paging.range()));
    let lockout = project.signers.as_ref().and_then(|file| find_lockout(app, file));
    let name = links::shown_path(id);
    let is_plain = paging.page == 1 && wanted.is_all();
    let body = html! {
        (parts::crumbs(id.parent().as_ref()))
        h1.wrap { bdi { (name) } }
        (lead(&project))
        div.columns {
            div {
                @if is_plain {
                    (revocations(id, &shown))
                    (differences(id, &shown))
                    @if let Some(current) = &project.signers { (objections(id, current, &shown)) }
                    @if let Some(newest) = &newest { (newest_release(id, newest, visit)) }
                    @if let Some(proposal) = &project.proposal { (notice(proposal, app.now())) }
                    // What the masters stopped, until the next activation.
                    @if let Some(vetoed) = &project.vetoed {
                        section.card.hero.is-open aria-labelledby="vetoed" {
                            div.row { h2 #vetoed { "The masters vetoed a change of the signers" } }
                            (why_vetoed(vetoed))
                        }
                    }
                }
                section aria-labelledby="releases" {
                    h2 #releases { "Releases" }
                    (tabs(id, counts, &wanted))
                    @if counts.total() > PAGE_ROWS { (filter_form(id, &wanted)) }
                    @if paging.range().is_empty() { (no_releases(counts, &wanted)) } @else { (release_table(id, &shown)) }
                    (paging.links("releases", &format!("{}{}", links::page(id), links::query_before(&wanted.fields(), "page=")), BY_AGE))
                }
            }
            aside aria-label="About the project" {
                (signers(&project, lockout.as_ref()))
                @if let Some(log) = project.shown.transparency() {
                    section.card aria-labelledby="log" { h2 #log { "Log" } dl.facts { (log_facts(&LogStrength::of(log))) } }
                }
                (facts(&project, visit))
            }
        }
    };
    let about =
        format!("Signed releases of {name}: who has to sign them, who did, and how to check a download.");
    let changes_with_time = project.proposal.is_some_and(|proposal| proposal.waits_until.is_some());
    let feed = Some(links::feed(id));
    Ok(Reply::Page(Page { about, feed, changes_with_time, ..Page::new(name, body) }))
}

impl Wanted {
    fn of(visit: &Visit) -> Result<Self, PageTrouble> {
        let parse = |name: String| ListedState::parse(&name).ok_or_else(PageTrouble::no_such_page);
        Ok(Self { state: visit.field("state").map(parse).transpose()?, words: visit.search.clone() })
    }

    fn is_all(&self) -> bool {
        self.state.is_none() && self.words.is_empty()
    }

    /// The question as the fields of a query.
    fn fields(&self) -> [(&str, Option<&str>); 2] {
        let words = Some(self.words.as_str()).filter(|words| !words.is_empty());
        [("state", self.state.map(ListedState::name)), ("q", words)]
    }
}

fn lead(project: &ProjectOverview) -> Markup {
    let rules_of = |wanted: Role| {
        let groups = effective_groups(&project.shown, wanted);
        let rules = groups.iter().map(parts::rule_of).collect::<Vec<_>>().join(", and ");
        Some(rules).filter(|_| !groups.is_empty())
    };
    let is_required = project.shown.rebuilds().is_some_and(|rebuilds| rebuilds.required);
    html! {
        p.lede {
            @if project.signers.is_none() { span.state.open { "registering" } " " }
            @if let Some(rules) = rules_of(Role::Artifact) { "A release needs " (rules) "." }
            @if is_required && let Some(rules) = rules_of(Role::Builder) {
                " Clients refuse it until " (rules) " of builders have reproduced it."
            }
        }
    }
}

fn find_newest(head: &Head, releases: &ReleaseList) -> Option<ReleaseDescription> {
    let index = releases.find_newest()?.index()?;
    // An error in one release must not hide the project.
    describe_release(head, &index).ok().flatten()
}

fn newest_release(id: &RepoPath, release: &ReleaseDescription, visit: &Visit) -> Markup {
    let page = links::page(&release.path);
    let files = &release.index.published_files;
    let rebuilds = release.reproduction.as_ref().map(ListedRebuilds::of);
    let source = files.first().map(|file| file.source.as_str()).filter(|url| links::outside(url).is_some());
    html! {
        section.card.hero.is-open[parts::is_doubted(release)].is-good[!parts::is_doubted(release)] aria-labelledby="newest" {
            div.row {
                h2 #newest { "Newest release " a.version.wrap href=(page) { bdi { (links::release_name(id, &release.path)) } } }
                (parts::state(release.state, release.begun_revocation.is_some(), rebuilds.as_ref()))
                span.meta.is-doubted[parts::is_doubted(release)] {
                    (parts::progress(release.tally))
                    @if let Some(at) = release.completed_at { ", " (parts::when(at)) }
                }
            }
            @if let Some(reproduction) = &release.reproduction {
                p.meta { (parts::how_reproduced(reproduction, &release.names)) }
            }
            @if let Some(source) = source {
                (parts::command(links::client("download", source, visit.base_url.as_deref())))
            }
            p.meta {
                a href=(page) { (parts::count(files.len(), "file and its digests", "files and their digests")) } " · "
                a href=(links::verify(&release.path)) { "Check a file in the browser" }
            }
        }
    }
}

/// A release of the list that is shown.
struct ReleaseRow {
    index: RepoPath,
    entry: ReleaseEntry,
    /// `None` if it cannot be read: an error in one must not hide the others.
    summary: Option<ReleaseSummary>,
}

fn read_rows(head: &Head, entries: Vec<ReleaseEntry>) -> Vec<ReleaseRow> {
    let read = |entry: ReleaseEntry| {
        let index = entry.index()?;
        Some(ReleaseRow { summary: summarise_release(head, &index).ok().flatten(), index, entry })
    };
    entries.into_iter().filter_map(read).collect()
}

/// Shows begun revocations, which come first. The list has them first too.
fn revocations(id: &RepoPath, shown: &[ReleaseRow]) -> Markup {
    html! {
        @for ReleaseRow { index, summary, .. } in shown.iter().filter(|row| row.entry.is_revoking) {
            @let begun = summary.as_ref().and_then(|summary| summary.begun.as_ref());
            section.card.hero.is-open.is-doubted {
                h2 {
                    a.wrap href=(links::page(index)) { bdi { (links::release_name(id, index)) } } ": "
                    @match begun { Some(begun) => (parts::how_many_revoke(begun)), None => "revocation begun" }
                }
                @if let Some(begun) = begun {
                    p.reason { q.wrap { bdi { (shown_text(&begun.reason)) } } }
                    @for group in &begun.groups { p { (parts::group_progress(group)) } }
                }
                p { (REVOKERS_DECIDE) }
            }
        }
    }
}

/// The releases of the list that are not revoked.
fn unrevoked(shown: &[ReleaseRow]) -> impl Iterator<Item = (&RepoPath, &ReleaseSummary)> {
    let readable = shown.iter().filter_map(|row| Some((&row.index, row.summary.as_ref()?)));
    readable.filter(|(_, summary)| summary.state != ReleaseState::Revoked)
}

/// Shows what builders got that is something else than what is released.
fn differences(id: &RepoPath, shown: &[ReleaseRow]) -> Markup {
    html! {
        @for (index, summary) in unrevoked(shown) {
            @if let Some(found) = &summary.reproduction && let Some(text) = different_text(found) {
                section.card.hero.is-open {
                    h2 {
                        a.wrap href=(links::page(index)) { bdi { (links::release_name(id, index)) } } ": " bdi { (text) }
                    }
                    (parts::difference_list(found, &Names::of([&*summary.signers.file])))
                }
            }
        }
    }
}

/// Shows objections, which come after revocations.
fn objections(id: &RepoPath, current: &SignersFile, shown: &[ReleaseRow]) -> Markup {
    html! {
        @for (index, summary) in unrevoked(shown) {
            @let objections = list_objections(current, summary.objections.standing());
            @if !objections.is_empty() {
                section.card.hero.is-bad {
                    h2 {
                        (parts::count(objections.len(), "objection to ", "objections to "))
                        a.wrap href=(links::page(index)) { bdi { (links::release_name(id, index)) } }
                    }
                    (parts::objection_list(&objections))
                }
            }
        }
    }
}

fn notice(proposal: &ProposalDescription, now: Timestamp) -> Markup {
    html! {
        section.card.hero.is-open aria-labelledby="pending" {
            div.row {
                h2 #pending {
                    @if proposal.is_first {
                        "The first signers file waits for signatures"
                    } @else if proposal.waits_until.is_some() {
                        "New signers are agreed to, and will take effect"
                    } @else {
                        "A change of the signers waits for signatures"
                    }
                }
            }
            @if let Some(until) = proposal.waits_until { p.alarm { "It " (takes_force(proposal, until, now)) "." } }
            (begun_veto(proposal))
            @if !proposal.is_first { (change_list(&proposal.changes)) }
            @if proposal.waits_until.is_none() { (condition_summary(proposal)) }
            p {
                a href=(links::page(&proposal.path)) {
                    @if proposal.waits_until.is_some() && proposal.has_masters { "Review it, and see how to veto" } @else { "Review it, and see how to sign" }
                }
            }
        }
    }
}

fn tabs(id: &RepoPath, counts: ReleaseCounts, wanted: &Wanted) -> Markup {
    let tab = |name: &str, state: Option<ListedState>, number: usize| {
        let address = links::page(id) + &links::query(&[("state", state.map(ListedState::name))]);
        let is_current = wanted.state == state;
        html! {
            a href=(address) aria-current=[is_current.then_some("page")] { (name) " " (shown_count(number)) }
        }
    };
    html! {
        nav.tabs aria-label="Releases by state" {
            (tab("All", None, counts.total()))
            @if counts.revoking > 0 { (tab("Revocation begun", Some(ListedState::Revoking), counts.revoking)) }
            (tab("Complete", Some(ListedState::In(ReleaseState::Complete)), counts.complete))
            (tab("Collecting", Some(ListedState::In(ReleaseState::Collecting)), counts.collecting))
            (tab("Revoked", Some(ListedState::In(ReleaseState::Revoked)), counts.revoked))
        }
    }
}

fn filter_form(id: &RepoPath, wanted: &Wanted) -> Markup {
    html! {
        form.filter action=(links::page(id)) method="get" {
            @if let Some(state) = wanted.state { input type="hidden" name="state" value=(state.name()); }
            label for="filter" { "Version" }
            input #filter name="q" value=(wanted.words) maxlength=(SEARCH_CHARS) autocomplete="off";
            button { "Filter" }
        }
    }
}

fn no_releases(counts: ReleaseCounts, wanted: &Wanted) -> Markup {
    html! {
        p {
            @if counts.total() == 0 {
                "This project has no releases here yet. A signer adds one with " code { "countersign release" } "."
            } @else if wanted.words.is_empty() {
                "No release is in this state."
            } @else {
                "No release has " q { bdi { (shown_text(&wanted.words)) } } " in its name."
            }
        }
    }
}

fn release_table(id: &RepoPath, releases: &[ReleaseRow]) -> Markup {
    let rows = html! {
        @for ReleaseRow { index, entry, summary } in releases {
            tr role="row" {
                th.wrap scope="row" role="rowheader" {
                    a href=(links::page(index)) { bdi { (links::release_name(id, index)) } }
                }
                @match summary {
                    Some(summary) => (parts::standing_cells(summary)),
                    None => {
                        td role="cell" { (parts::state(entry.state, false, None)) }
                        td role="cell" colspan="2" { "cannot be read" }
                    }
                }
            }
        }
    };
    parts::table("releases", &parts::STANDING_COLUMNS, &rows)
}

/// Finds what the idle keys would lock out, by when each key last signed (D140). `None` for a while after a start.
fn find_lockout(app: &App, file: &SignersFile) -> Option<Lockout> {
    let look = app.catalogue.is_ready().then(|| app.catalogue.look())?;
    let last = file.signers().into_iter().filter_map(|key| Some((key, look.last_signed(&key)?))).collect();
    drop(look);
    Some(foresee(file, &last, app.now()))
}

fn signers(project: &ProjectOverview, lockout: Option<&Lockout>) -> Markup {
    let did = |signer: &Signer| {
        let used = lockout.and_then(|lockout| lockout.uses.iter().find(|used| used.signer.key == signer.key));
        html! {
            @if let Some(KeyUse { last_signed: Some(at), is_idle, .. }) = used {
                "last signed " (parts::when(*at))
                @if *is_idle { " " span.state.open { "idle" } }
            }
        }
    };
    html! {
        section.card aria-labelledby="signers" {
            h2 #signers { @if project.signers.is_some() { "Signers" } @else { "Proposed signers" } }
            @for role in Role::ALL {
                // Groups that stand in for a role are not listed a second time.
                @if project.shown.explicit_groups(role).is_some() {
                    @for group in effective_groups(&project.shown, role) {
                        p.role-line { strong { (parts::role_name(role)) } span.rule { (parts::rule_of(&group)) } }
                        (parts::people_who(&group.signers, &did))
                    }
                } @else if role != Role::Builder {
                    p.meta { (left_to_default(role)) }
                }
            }
            @if let Some(rebuilds) = project.shown.rebuilds() { (what_builders_do(rebuilds)) }
            @if !project.shown.registrars().is_empty() {
                p.role-line { strong { "Registrars" } span.rule { "register releases, and sign nothing" } }
                (parts::people(project.shown.registrars()))
            }
            @if let Some(signers) = &project.signers && let Some(hours) = signers.rotation_delay_hours() {
                p.meta {
                    "A change of the signers waits " (shown_hours(hours))
                    @if !signers.master_groups().is_empty() { ", unless the masters agree" } "."
                }
            }
            @for outlook in lockout.iter().flat_map(|lockout| &lockout.outlooks).filter(|outlook| outlook.is_alarming()) {
                p { span.state.bad { "lock-out" } " " (capitalised(&outlook.to_string())) "." }
            }
            p.meta { "The signers file gives the names. Only the keys count." }
        }
    }
}

/// Says what the keys of builders are for, below them (D259).
fn what_builders_do(rebuilds: &RebuildPolicy) -> Markup {
    html! {
        p.meta.wrap {
            "Builders make " (rebuilt_files_text(&rebuilds.files)) " from the source, state what they got, and sign nothing. "
            @if rebuilds.required { "Clients refuse a release until enough of them got the same." }
            @else { "Clients show what they got, and refuse nothing for it." }
        }
    }
}

/// Capitalises our own words, as a sentence.
fn capitalised(words: &str) -> String {
    let (first, rest) = words.split_at(words.len().min(1));
    first.to_ascii_uppercase() + rest
}

fn facts(project: &ProjectOverview, visit: &Visit) -> Markup {
    let id = &project.id;
    let base_url = visit.base_url.as_deref().unwrap_or("https://SERVER");
    let markdown = format!("[![signers]({base_url}{})]({base_url}{})", links::badge(id), links::page(id));
    html! {
        section.card aria-label="Facts" {
            dl.facts {
                @if let Some(home) = links::home_of(id) { dt { "Home" } dd { (parts::outside(&home)) } }
                @if let (Some(file), Some(digest)) = (&project.signers, project.digest) {
                    dt { "Trust starts from this signers file" }
                    dd {
                        (parts::digest(&digest.to_prefixed(), "the digest"))
                        p.meta {
                            "Dated " (parts::when(file.timestamp())) ". Compare the digest with one from a place that you "
                            "trust, and pass it as " code { "--signers-digest" } ". "
                            a href=(links::file(&layout::active_signers(id))) { "The file" }
                        }
                    }
                    dt { "Signers history" }
                    dd {
                        a href=(links::history(id)) {
                            (parts::count(project.steps, "signers file", "signers files")) " so far"
                        }
                    }
                }
                dt { "Follow" }
                dd { a href=(links::activity(id)) { "Activity" } " · " a href=(links::feed(id)) { "Atom feed" } }
                dt { "Badge" }
                dd { (parts::badge(&links::badge(id), markdown)) }
                dt { "Path on this server" }
                dd { code.wrap data-copies="the path" { bdi { (shown_text(id.as_str())) } } }
            }
        }
    }
}
