//! What happened, newest first, as the commits tell it: on the whole server, or at and below a path.

use std::{collections::BTreeSet, sync::Arc};

use countersign_api::event::{Event, EventFilter, EventKind};
use countersign_core::documents::{layout, layout::Signable, signers::Signer};
use countersign_core::rules::{place::path_of_url, snapshot::Snapshot as _, stored};
use countersign_core::values::shown::{shown_count, shown_text};
use countersign_core::values::{bounds::PAGE_EVENTS, key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_explain::describe::proposal::{VetoedProposal, list_vetoed};
use countersign_store::repository::recent_commits::{KEPT, RecentCommit, RecentCommits};
use countersign_store::{Head, ObjectId, catalogue::Catalogue, catalogue::ProjectName};
use maud::{Markup, html};
use url::form_urlencoded;

use crate::web::{frame::Page, keys, links, parts, reply::PageTrouble, reply::Reply, timeline, visit::Visit};

/// The scope of a list: where to look.
#[derive(Debug, Clone, Copy)]
pub(super) enum ActivityScope<'a> {
    Server,
    Below(&'a RepoPath),
}

/// The events that a visitor wants to see.
pub(super) struct Wanted {
    filter: EventFilter,
    /// The key whose request it was.
    by: Option<PublicKey>,
}

pub(super) fn show(
    recent_commits: &RecentCommits,
    head: &Head,
    scope: ActivityScope<'_>,
    visit: &Visit,
) -> Result<Reply, PageTrouble> {
    let wanted = Wanted::of(scope, visit)?;
    let before = visit.field("before");
    let mut commits = wanted.find(recent_commits, head, scope, before.as_deref())?;
    let has_more = commits.len() > PAGE_EVENTS;
    commits.truncate(PAGE_EVENTS);
    let oldest = commits.last().map(|commit| commit.id.to_string()).filter(|_| has_more);
    let (title, address) = (scope.title(), scope.address());
    let query = wanted.query();
    let body = html! {
        @if let Some(place) = scope.place() { (parts::crumbs(Some(&place))) }
        h1.wrap { bdi { (title) } }
        (filter_form(scope, &wanted))
        @if commits.is_empty() { p { "Nothing happened here" @if before.is_some() { " before that" } "." } }
        @for day in commits.chunk_by(|a, b| parts::day(a.time) == parts::day(b.time)) {
            section.day {
                h2 { (parts::day(day[0].time)) }
                ol.activity { @for commit in day { (commit_items(head, commit, scope, &wanted)) } }
            }
        }
        @if has_more || before.is_some() {
            nav.pager aria-label="Pages of the activity" {
                @if before.is_some() { a href={ (address) "?" (query) } { "Newest" } }
                @if let Some(oldest) = oldest {
                    a href={ (address) "?" (query) "before=" (oldest) } rel="next" { "Older" }
                }
            }
        }
        @if !has_more { (horizon(recent_commits)) }
        p { a href={ (scope.feed()) "?" (query) } { "Follow with a feed reader" } }
    };
    Ok(Reply::Page(Page::new(title, body).with_feed(scope.feed())))
}

/// Shows the activity as an Atom feed.
pub(super) fn show_feed(
    recent_commits: &RecentCommits,
    head: &Head,
    scope: ActivityScope<'_>,
    visit: &Visit,
) -> Result<Reply, PageTrouble> {
    let wanted = Wanted::of(scope, visit)?;
    let commits = wanted.find(recent_commits, head, scope, None)?;
    let told = commits.iter().flat_map(|commit| {
        let events = commit.events().iter().enumerate().rev();
        events.filter(|(_, event)| wanted.matches(event)).map(|(number, event)| timeline::Entry {
            commit: commit.id,
            time: commit.time,
            number,
            title: format!("{}: {}", word_of(event.kind), name_of(head, scope, event)),
            page: page_of(event),
            by: event.key.map(|key| name_signer(head, &event.path, key)),
        })
    });
    let entries: Vec<_> = told.take(PAGE_EVENTS).collect();
    Ok(Reply::Feed(timeline::write(
        &scope.title(),
        &scope.address(),
        &scope.feed(),
        &entries,
        visit.origin.as_deref(),
    )))
}

impl ActivityScope<'_> {
    /// The directory of a release stands for its index.
    fn place(self) -> Option<RepoPath> {
        match self {
            Self::Server => None,
            Self::Below(path) if layout::signable(path) == Some(Signable::Index) => path.parent(),
            Self::Below(path) => Some(path.clone()),
        }
    }

    fn title(self) -> String {
        self.place().map_or_else(
            || "Activity".to_owned(),
            |place| format!("Activity of {}", links::shown_path(&place)),
        )
    }

    fn address(self) -> String {
        match self {
            Self::Server => links::ALL_ACTIVITY.to_owned(),
            Self::Below(path) => links::activity(path),
        }
    }

    fn feed(self) -> String {
        match self {
            Self::Server => links::ALL_ACTIVITY_FEED.to_owned(),
            Self::Below(path) => links::feed(path),
        }
    }
}

impl Wanted {
    fn of(scope: ActivityScope<'_>, visit: &Visit) -> Result<Self, PageTrouble> {
        let no_such =
            |what: &str| PageTrouble::Missing { message: format!("There is no such {what}"), near: None };
        let prefix = match scope {
            ActivityScope::Server => None,
            ActivityScope::Below(path) => Some(path.clone()),
        };
        let kind =
            visit.field("type").map(|name| EventKind::parse(&name).map_err(|_| no_such("kind of event")));
        let by = visit.field("key").map(|key| keys::read_key(&key).ok_or_else(|| no_such("key")));
        let kinds = kind.transpose()?.map(|kind| BTreeSet::from([kind]));
        Ok(Self { filter: EventFilter { prefix, kinds, key: None }, by: by.transpose()? })
    }

    fn matches(&self, event: &Event) -> bool {
        self.filter.matches(event) && self.by.is_none_or(|by| event.key == Some(by))
    }

    /// Finds one event more than a page has, to know whether there are more.
    fn find(
        &self,
        recent_commits: &RecentCommits,
        head: &Head,
        scope: ActivityScope<'_>,
        before: Option<&str>,
    ) -> Result<Vec<Arc<RecentCommit>>, PageTrouble> {
        let position = match before {
            None => i64::MAX,
            Some(id) => find_position(recent_commits, id).ok_or_else(|| no_such_commit(scope))?,
        };
        let is_wanted = |commit: &RecentCommit| commit.events().iter().any(|event| self.matches(event));
        let commits = recent_commits.before(position, PAGE_EVENTS + 1, is_wanted);
        match scope {
            ActivityScope::Below(path) if commits.is_empty() && head.entry(path).is_none() => {
                Err(PageTrouble::Missing { message: format!("Nothing is stored at {path}"), near: None })
            }
            ActivityScope::Below(_) | ActivityScope::Server => {
                Ok(commits.into_iter().map(|(_, commit)| commit).collect())
            }
        }
    }

    /// The fields of the same question, to be continued.
    fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(kind) = self.kind() {
            query.append_pair("type", kind.name());
        }
        if let Some(by) = self.by {
            query.append_pair("key", &by.to_string());
        }
        match query.finish() {
            query if query.is_empty() => query,
            query => query + "&",
        }
    }

    fn kind(&self) -> Option<EventKind> {
        self.filter.kinds.as_ref()?.first().copied()
    }
}

/// A project has a page of its own for its activity. Its last names are enough where only one project has them.
pub(super) fn find_project(
    catalogue: &Catalogue,
    head: &Head,
    text: &str,
    visit: &Visit,
) -> Result<Reply, PageTrouble> {
    let missing = |message: String| PageTrouble::Missing { message, near: None };
    let unknown = || missing("A project is given by its name, its URL or its path on this server".to_owned());
    let given = path_of_url(text).or_else(|| RepoPath::parse(text).ok()).ok_or_else(unknown)?;
    let named = match ProjectName::parse(given.as_str()) {
        Ok(name) if head.entry(&given).is_none() => {
            keys::look_into(catalogue)?.projects_named(&name).projects
        }
        Ok(_) | Err(_) => Vec::new(),
    };
    let project = match &named[..] {
        [] => &given,
        [one] => one,
        several => {
            let names: Vec<String> = several.iter().take(10).map(links::shown_path).collect();
            return Err(missing(format!("Several projects have this name: {}", names.join(", "))));
        }
    };
    let query = Wanted::of(ActivityScope::Server, visit)?.query();
    Ok(Reply::Elsewhere(
        format!("{}?{query}", links::activity(project)).trim_end_matches(['?', '&']).to_owned(),
    ))
}

fn find_position(recent_commits: &RecentCommits, id: &str) -> Option<i64> {
    recent_commits.position_of(&ObjectId::from_hex(id.as_bytes()).ok()?)
}

fn no_such_commit(scope: ActivityScope<'_>) -> PageTrouble {
    let message = format!("That change is not among the newest {}", shown_count(KEPT));
    let near = match scope {
        ActivityScope::Server => None,
        ActivityScope::Below(path) => Some(path.clone()),
    };
    PageTrouble::Missing { message, near }
}

fn filter_form(scope: ActivityScope<'_>, wanted: &Wanted) -> Markup {
    let by = wanted.by.map(|by| by.to_string()).unwrap_or_default();
    html! {
        form.filter action=(scope.address()) method="get" {
            @if let ActivityScope::Server = scope {
                span.field {
                    label for="project" { "Project" }
                    input #project name="project" autocomplete="off" maxlength="1024" placeholder="https://github.com/acme/app";
                }
            }
            span.field {
                label for="type" { "What" }
                select #type name="type" {
                    option value="" { "everything" }
                    @for kind in EventKind::ALL {
                        option value=(kind.name()) selected[wanted.kind() == Some(kind)] { (word_of(kind)) }
                    }
                }
            }
            span.field {
                label for="key" { "Key" }
                input #key name="key" value=(by) autocomplete="off" maxlength="200" placeholder="svc-pub:…";
            }
            button { "Filter" }
        }
    }
}

/// Says how far back this page looks.
fn horizon(recent_commits: &RecentCommits) -> Markup {
    let is_all = recent_commits.before(i64::MAX, KEPT, |_| true).len() < KEPT;
    html! {
        p.meta {
            @if is_all {
                "This goes back to the beginning of this server."
            } @else {
                "This page looks at the newest " (shown_count(KEPT)) " changes of the server. All of them are in "
                "its Git repository."
            }
        }
    }
}

fn commit_items(
    head: &Head,
    commit: &Arc<RecentCommit>,
    scope: ActivityScope<'_>,
    wanted: &Wanted,
) -> Markup {
    html! {
        @for event in commit.events().iter().rev().filter(|event| wanted.matches(event)) {
            li {
                span.at { (parts::clock(commit.time)) }
                (mark(event.kind))
                span.what {
                    @if !is_about_release(event) { "signers of " }
                    a.wrap href=(page_of(event)) { bdi { (name_of(head, scope, event)) } }
                    @if let Some(key) = event.key.filter(|_| !is_consequence(event.kind)) {
                        " by " (parts::who(&name_signer(head, &event.path, key)))
                    }
                    @if let Some(reason) = find_reason(head, commit, event) {
                        ": " q.wrap { bdi { (shown_text(&reason)) } }
                    }
                }
            }
        }
    }
}

/// Why the masters vetoed something, as long as the record is there. The last signature has the time of its commit.
fn find_reason(head: &Head, commit: &RecentCommit, event: &Event) -> Option<String> {
    if event.kind != EventKind::Vetoed {
        return None;
    }
    let project = layout::project_with_signers_at(&event.path)?;
    let apart = |vetoed: &VetoedProposal| {
        let vetoed_at = vetoed.vetoed_at.map(Timestamp::unix_seconds);
        vetoed_at.map_or(u64::MAX, |at| at.abs_diff(commit.time.unix_seconds()))
    };
    let has_key =
        |vetoed: &VetoedProposal| vetoed.signed.iter().any(|member| Some(member.signer.key) == event.key);
    let vetoed = list_vetoed(head, &project).ok()?.into_iter().filter(has_key);
    vetoed.min_by_key(apart).map(|vetoed| vetoed.reason)
}

/// The signature that caused it is the next line, and says whose it was.
fn is_consequence(kind: EventKind) -> bool {
    matches!(kind, EventKind::Complete | EventKind::Activated)
}

fn mark(kind: EventKind) -> Markup {
    let class = match kind {
        EventKind::Registration | EventKind::Proposal | EventKind::Release => "state open",
        EventKind::Signature | EventKind::Dropped | EventKind::Withdrawn | EventKind::ObjectionWithdrawn => {
            "state plain"
        }
        EventKind::Agreed => "state open",
        EventKind::Complete | EventKind::Activated => "state good",
        EventKind::Objection
        | EventKind::Revocation
        | EventKind::Revoked
        | EventKind::Veto
        | EventKind::Vetoed => "state bad",
    };
    html! { span class=(class) { (word_of(kind)) } }
}

fn word_of(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Registration => "registered",
        EventKind::Proposal => "signers proposed",
        EventKind::Signature => "signed",
        EventKind::Complete => "complete",
        EventKind::Agreed => "signers agreed to, waiting",
        EventKind::Veto => "veto begun",
        EventKind::Vetoed => "signers vetoed",
        EventKind::Activated => "signers in force",
        EventKind::Release => "release added",
        EventKind::Withdrawn => "withdrawn",
        EventKind::Objection => "objection",
        EventKind::ObjectionWithdrawn => "objection taken back",
        EventKind::Revocation => "revocation begun",
        EventKind::Revoked => "revoked",
        EventKind::Dropped => "dropped by the operator",
    }
}

fn is_about_release(event: &Event) -> bool {
    matches!(layout::signable(&event.path), Some(Signable::Index))
}

/// A proposal can be gone by now; its project cannot.
fn page_of(event: &Event) -> String {
    links::page(&subject_of(event))
}

fn subject_of(event: &Event) -> RepoPath {
    if is_about_release(event) {
        return event.path.clone();
    }
    layout::project_with_signers_at(&event.path).unwrap_or_else(|| event.path.clone())
}

/// The name of what an event is about, as in `github.com/acme/app v1.0`, without the project on its own page.
fn name_of(head: &Head, scope: ActivityScope<'_>, event: &Event) -> String {
    let subject = subject_of(event);
    match head.governing_project(&subject).filter(|_| is_about_release(event)) {
        Some(project) if matches!(scope, ActivityScope::Below(path) if *path == project) => {
            links::release_name(&project, &subject)
        }
        Some(project) => {
            format!("{} {}", links::shown_path(&project), links::release_name(&project, &subject))
        }
        None => links::shown_path(&subject),
    }
}

/// The signer's name in the signers file in force, or in the one that waits to be the first.
fn name_signer(head: &Head, path: &RepoPath, key: PublicKey) -> Signer {
    let nameless = || Signer { key, name: None };
    let governing = stored::governing_signers(head, path).ok().flatten().map(|active| active.file);
    let waiting = || head.read_signers(path).ok().flatten().map(|waiting| waiting.file);
    let signers = match layout::signable(path) {
        Some(Signable::PendingSigners { .. }) => governing.or_else(waiting),
        Some(Signable::Index) | None => governing,
    };
    signers.map_or_else(nameless, |signers| signers.named_signer(key))
}
