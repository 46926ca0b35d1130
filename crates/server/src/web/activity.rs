//! What happened, newest first, as the commits tell it: on the whole server, or at and below a path.

use std::sync::Arc;

use countersign_api::event::{Event, EventKind};
use countersign_core::documents::{layout, layout::Signable, signers::Signer};
use countersign_core::rules::{place::path_of_url, snapshot::Snapshot as _, stored};
use countersign_core::values::shown::{shown_count, shown_text};
use countersign_core::values::{
    bounds::PAGE_EVENTS, digest::Sha512, key::PublicKey, path::RepoPath, time::Timestamp,
};
use countersign_explain::describe::proposal::{VetoedProposal, list_vetoed};
use countersign_explain::words::shown_signer;
use countersign_store::journal::recent_commits::{KEPT, RecentCommit, RecentCommits};
use countersign_store::{Head, ObjectId, catalogue::ProjectName};
use maud::{Markup, PreEscaped, html};

use crate::web::reply::{PageTrouble, Reply, View};
use crate::web::{frame::Page, keys, links, parts, visit::Visit};

/// Where to look: at and below a path, or on the whole server.
pub(super) type Scope<'a> = Option<&'a RepoPath>;

/// The events that a visitor wants to see.
struct Wanted<'a> {
    scope: Scope<'a>,
    kind: Option<EventKind>,
    /// The key whose request it was.
    by: Option<PublicKey>,
}

pub(super) fn show(view: &View, scope: Scope<'_>) -> Result<Reply, PageTrouble> {
    let (head, visit) = (&*view.head, &view.visit);
    let wanted = Wanted::of(scope, visit)?;
    let before = visit.field("before");
    let mut commits = wanted.find(view, before.as_deref())?;
    let has_more = commits.len() > PAGE_EVENTS;
    commits.truncate(PAGE_EVENTS);
    let oldest = commits.last().map(|commit| commit.id.to_string()).filter(|_| has_more);
    let (title, address, feed) = (title_of(scope), address_of(scope), feed_of(scope));
    let by = wanted.by.map(|by| by.to_string());
    let fields = wanted.fields(by.as_deref());
    let query = links::query(&fields);
    let body = html! {
        @if let Some(dir) = dir_of(scope) { (parts::crumbs(Some(&dir))) }
        h1.wrap { bdi { (title) } }
        (filter_form(&wanted))
        @if commits.is_empty() { p { "Nothing happened here" @if before.is_some() { " before that" } "." } }
        @for day in commits.chunk_by(|a, b| parts::day(a.time) == parts::day(b.time)) {
            section.day {
                h2 { (parts::day(day[0].time)) }
                ol.activity { @for commit in day { (commit_items(head, commit, &wanted)) } }
            }
        }
        @if has_more || before.is_some() {
            nav.pager aria-label="Pages of the activity" {
                @if before.is_some() { a href={ (address) (query) } { "Newest" } }
                @if let Some(oldest) = oldest {
                    a href={ (address) (links::query_before(&fields, "before=")) (oldest) } rel="next" { "Older" }
                }
            }
        }
        @if !has_more { (horizon(view.app.store.recent_commits())) }
        p { a href={ (feed) (query) } { "Follow with a feed reader" } }
    };
    Ok(Reply::Page(Page { feed: Some(feed), ..Page::new(title, body) }))
}

/// Shows the activity as an Atom feed (RFC 4287).
pub(super) fn show_feed(view: &View, scope: Scope<'_>) -> Result<Reply, PageTrouble> {
    let (head, visit) = (&*view.head, &view.visit);
    let wanted = Wanted::of(scope, visit)?;
    let commits = wanted.find(view, None)?;
    let told = commits.iter().flat_map(|commit| {
        let events = commit.events().iter().enumerate().rev();
        events.filter(|(_, event)| wanted.matches(event)).map(move |(number, event)| (commit, number, event))
    });
    let told: Vec<_> = told.take(PAGE_EVENTS).collect();
    let (page, feed) = (address_of(scope), feed_of(scope));
    let base_url = visit.base_url.as_deref().unwrap_or_default();
    // A feed must say when it changed, also if nothing happened yet.
    let never = || "1970-01-01T00:00:00Z".to_owned();
    let updated = told.first().map_or_else(never, |(newest, ..)| newest.time.to_string());
    Ok(Reply::Feed(html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"))
        feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en" {
            id { (identify(&format!("{base_url}{feed}"))) }
            title { (title_of(scope)) " · Countersign" }
            updated { (updated) }
            author { name { "Countersign" } }
            link rel="self" type="application/atom+xml" href={ (base_url) (feed) } {}
            link rel="alternate" type="text/html" href={ (base_url) (page) } {}
            @for (commit, number, event) in told {
                @let title = format!("{}: {}", words_of(event.kind).1, name_of(head, scope, event));
                entry {
                    id { (identify(&format!("{} {number}", commit.id))) }
                    title { (title) }
                    updated { (commit.time) }
                    link rel="alternate" type="text/html" href={ (base_url) (links::page(&subject_of(event))) } {}
                    content type="text" {
                        (title)
                        @if let Some(key) = event.key { ", by " (shown_signer(&name_signer(head, &event.path, key))) }
                    }
                }
            }
        }
    }))
}

/// An identifier that never changes, in the form of a UUID of version 8.
fn identify(text: &str) -> String {
    let digest = Sha512::of(text.as_bytes()).to_string();
    let part = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-8{}-a{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}

/// The directory of a release stands for its index.
fn dir_of(scope: Scope<'_>) -> Option<RepoPath> {
    let path = scope?;
    if layout::signable(path) == Some(Signable::Index) { path.parent() } else { Some(path.clone()) }
}

fn title_of(scope: Scope<'_>) -> String {
    let dir = dir_of(scope).map(|dir| format!(" of {}", links::shown_path(&dir)));
    format!("Activity{}", dir.unwrap_or_default())
}

fn address_of(scope: Scope<'_>) -> String {
    scope.map_or_else(|| links::ALL_ACTIVITY.to_owned(), links::activity)
}

fn feed_of(scope: Scope<'_>) -> String {
    scope.map_or_else(|| links::ALL_ACTIVITY_FEED.to_owned(), links::feed)
}

impl<'a> Wanted<'a> {
    fn of(scope: Scope<'a>, visit: &Visit) -> Result<Self, PageTrouble> {
        let no_such = |what: &str| PageTrouble::missing(format!("There is no such {what}"));
        let kind =
            visit.field("type").map(|name| EventKind::parse(&name).map_err(|_| no_such("kind of event")));
        let by = visit.field("key").map(|key| keys::read_key(&key).ok_or_else(|| no_such("key")));
        Ok(Self { scope, kind: kind.transpose()?, by: by.transpose()? })
    }

    /// The question as the fields of a query. `by` is the key as text.
    fn fields<'b>(&self, by: Option<&'b str>) -> [(&'static str, Option<&'b str>); 2] {
        [("type", self.kind.map(EventKind::name)), ("key", by)]
    }

    fn matches(&self, event: &Event) -> bool {
        self.scope.is_none_or(|scope| event.path == *scope || event.path.is_inside(scope))
            && self.kind.is_none_or(|kind| event.kind == kind)
            && self.by.is_none_or(|by| event.key == Some(by))
    }

    /// Finds one event more than a page has, to know whether there are more.
    fn find(&self, view: &View, before: Option<&str>) -> Result<Vec<Arc<RecentCommit>>, PageTrouble> {
        let recent_commits = view.app.store.recent_commits();
        let position = match before {
            None => i64::MAX,
            Some(id) => {
                let id = ObjectId::from_hex(id.as_bytes()).ok();
                let message = || format!("That change is not among the newest {}", shown_count(KEPT));
                let missing = || PageTrouble::missing_near(message(), self.scope.cloned());
                id.and_then(|id| recent_commits.position_of(&id)).ok_or_else(missing)?
            }
        };
        let is_wanted = |commit: &RecentCommit| commit.events().iter().any(|event| self.matches(event));
        let commits = recent_commits.before(position, PAGE_EVENTS + 1, is_wanted);
        match self.scope {
            Some(path) if commits.is_empty() && view.head.entry(path).is_none() => {
                Err(PageTrouble::missing(format!("Nothing is stored at {path}")))
            }
            Some(_) | None => Ok(commits.into_iter().map(|(_, commit)| commit).collect()),
        }
    }
}

/// Shows the activity of the whole server. A project has a page of its own for its activity.
pub(super) fn show_all(view: &View) -> Result<Reply, PageTrouble> {
    match view.visit.field("project") {
        Some(project) => find_project(view, &project),
        None => show(view, None),
    }
}

/// Finds the page of a project's activity. Its last names are enough where only one project has them.
fn find_project(View { app, head, visit }: &View, text: &str) -> Result<Reply, PageTrouble> {
    let unknown =
        || PageTrouble::missing("A project is given by its name, its URL or its path on this server");
    let given = path_of_url(text).or_else(|| RepoPath::parse(text).ok()).ok_or_else(unknown)?;
    let named = match ProjectName::parse(given.as_str()) {
        Ok(name) if head.entry(&given).is_none() => {
            keys::look_into(&app.catalogue)?.projects_named(&name).projects
        }
        Ok(_) | Err(_) => Vec::new(),
    };
    let project = match &named[..] {
        [] => &given,
        [one] => one,
        several => {
            let names = several.iter().take(10).map(links::shown_path).collect::<Vec<_>>().join(", ");
            return Err(PageTrouble::missing(format!("Several projects have this name: {names}")));
        }
    };
    let wanted = Wanted::of(None, visit)?;
    let by = wanted.by.map(|by| by.to_string());
    Ok(Reply::Elsewhere(links::activity(project) + &links::query(&wanted.fields(by.as_deref()))))
}

fn filter_form(wanted: &Wanted<'_>) -> Markup {
    let by = wanted.by.map(|by| by.to_string()).unwrap_or_default();
    html! {
        form.filter action=(address_of(wanted.scope)) method="get" {
            @if wanted.scope.is_none() {
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
                        option value=(kind.name()) selected[wanted.kind == Some(kind)] { (words_of(kind).1) }
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

fn commit_items(head: &Head, commit: &RecentCommit, wanted: &Wanted<'_>) -> Markup {
    html! {
        @for event in commit.events().iter().rev().filter(|event| wanted.matches(event)) {
            li {
                // Its day stands above.
                span.at { (parts::moment(commit.time, commit.time)) }
                @let (mark, word) = words_of(event.kind);
                span class={ "state " (mark) } { (word) }
                span.what {
                    @if !is_about_release(event) { "signers of " }
                    a.wrap href=(links::page(&subject_of(event))) { bdi { (name_of(head, wanted.scope, event)) } }
                    // The signature that caused these is the next line, and says whose it was.
                    @if let Some(key) = event.key.filter(|_| !matches!(event.kind, EventKind::Complete | EventKind::Activated)) {
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

/// The mark of an event, as the style sheet knows it, and its word.
fn words_of(kind: EventKind) -> (&'static str, &'static str) {
    match kind {
        EventKind::Registration => ("open", "registered"),
        EventKind::Proposal => ("open", "signers proposed"),
        EventKind::Signature => ("plain", "signed"),
        EventKind::Complete => ("good", "complete"),
        EventKind::Agreed => ("open", "signers agreed to, waiting"),
        EventKind::Veto => ("bad", "veto begun"),
        EventKind::Vetoed => ("bad", "signers vetoed"),
        EventKind::Activated => ("good", "signers in force"),
        EventKind::Release => ("open", "release added"),
        EventKind::Withdrawn => ("plain", "withdrawn"),
        EventKind::Objection => ("bad", "objection"),
        EventKind::ObjectionWithdrawn => ("plain", "objection taken back"),
        EventKind::Rebuild => ("good", "a builder got the same"),
        EventKind::RebuildDiffers => ("bad", "a builder got something else"),
        EventKind::Revocation => ("bad", "revocation begun"),
        EventKind::Revoked => ("bad", "revoked"),
        EventKind::Dropped => ("plain", "dropped by the operator"),
    }
}

fn is_about_release(event: &Event) -> bool {
    matches!(layout::signable(&event.path), Some(Signable::Index))
}

/// What has a page: a proposal can be gone by now; its project cannot.
fn subject_of(event: &Event) -> RepoPath {
    if is_about_release(event) {
        return event.path.clone();
    }
    layout::project_with_signers_at(&event.path).unwrap_or_else(|| event.path.clone())
}

/// The name of what an event is about, as in `github.com/acme/app v1.0`, without the project on its own page.
fn name_of(head: &Head, scope: Scope<'_>, event: &Event) -> String {
    let subject = subject_of(event);
    match head.governing_project(&subject).filter(|_| is_about_release(event)) {
        Some(project) if scope == Some(&project) => links::release_name(&project, &subject),
        Some(project) => {
            format!("{} {}", links::shown_path(&project), links::release_name(&project, &subject))
        }
        None => links::shown_path(&subject),
    }
}

/// The signer's name in the signers file in force, or in the one that waits to be the first.
fn name_signer(head: &Head, path: &RepoPath, key: PublicKey) -> Signer {
    let nameless = || Signer::nameless(key);
    let governing = stored::signers_in_force(head, path).ok().flatten().map(|active| active.file);
    let waiting = || head.read_signers(path).ok().flatten().map(|waiting| waiting.file);
    let signers = match layout::signable(path) {
        Some(Signable::PendingSigners { .. }) => governing.or_else(waiting),
        Some(Signable::Index) | None => governing,
    };
    signers.map_or_else(nameless, |signers| signers.named_signer(key))
}
