//! The page of a release: whether to use it, how to get it, its files, its signatures, its revocation.

use countersign_api::catalogue::ListedRebuilds;
use countersign_core::documents::{index::PublishedFile, layout};
use countersign_core::rules::stored::ReleaseState;
use countersign_core::values::{bounds::PAGE_FILES, path::RepoPath, shown::marked_name, shown::shown_text};
use countersign_explain::describe::release::{
    ReleaseDescription, RevocationDescription, WithdrawalDescription, describe_release, describe_withdrawal,
};
use countersign_explain::reproduction::{count_different, is_reproducible, lack_text};
use maud::{Markup, html};

use crate::web::reply::{PageTrouble, Reply, View};
use crate::web::{frame::Page, links, parts, verdict::Verdict, visit::BY_NUMBER, visit::Visit};

/// How much of a digest is shown at its beginning and at its end. The whole ones are below the table.
const SHORT_DIGEST: usize = 8;

pub(super) fn show(view: &View, path: &RepoPath) -> Result<Option<Reply>, PageTrouble> {
    let (head, visit) = (&*view.head, &view.visit);
    let Some(release) = describe_release(head, path)? else {
        return Ok(describe_withdrawal(head, path)?.map(|withdrawal| show_withdrawn(path, &withdrawal)));
    };
    let files = &release.index.published_files;
    let paging = view.paging(PAGE_FILES, files.len())?;
    let project = &release.index.project_id;
    let (name, of) = (links::release_name(project, path), links::shown_path(project));
    let shown = &files[paging.range()];
    let verdict = Verdict::find(&view.app, head, &release);
    let rebuilds = release.reproduction.as_ref().map(ListedRebuilds::of);
    let body = html! {
        (parts::crumbs(Some(project)))
        h1.wrap {
            bdi { (name) } " "
            (parts::state(release.state, release.begun_revocation.is_some(), rebuilds.as_ref()))
            @if !release.objections.is_empty() { " " (parts::objected(release.objections.len())) }
        }
        (verdict.render(&release))
        div.columns.is-doubted[parts::is_doubted(&release)] {
            div {
                @if let Some(revocation) = &release.revocation { (revoked(revocation)) }
                @if let Some(begun) = &release.begun_revocation { (begun_revocation(begun, path, visit)) }
                (parts::differences(&release))
                (parts::objections(&release.objections))
                (parts::earlier_objections(path, &release.earlier_objections))
                (download(&release, visit))
                (signatures(&release))
                @if let Some(reproduction) = &release.reproduction { (parts::rebuilds(reproduction, &release.names)) }
                section aria-labelledby="files" {
                    h2 #files { "Files" }
                    (file_table(shown, release.state))
                    (paging.links("files", &format!("{}?page=", links::page(path)), BY_NUMBER))
                    (digest_list(shown))
                }
            }
            aside aria-label="About the release" {
                (facts(&release, visit))
            }
        }
    };
    let different = rebuilds.as_ref().and_then(|rebuilds| count_different(rebuilds.different));
    let state = match (release.state, &release.begun_revocation, different) {
        (ReleaseState::Revoked, _, _) => "Revoked: ".to_owned(),
        (ReleaseState::Complete, Some(_), _) => "Revocation begun: ".to_owned(),
        (ReleaseState::Complete | ReleaseState::Collecting, _, Some(different)) => format!("{different}: "),
        (ReleaseState::Complete | ReleaseState::Collecting, _, None) if !release.objections.is_empty() => {
            "Objection: ".to_owned()
        }
        (ReleaseState::Complete | ReleaseState::Collecting, _, None) => String::new(),
    };
    let title = format!("{state}{name} of {of}");
    let about =
        format!("{state}{name} of {of}: {}, {}.", release.tally, parts::count(files.len(), "file", "files"));
    let (feed, changes_with_time) = (Some(links::feed(path)), verdict.changes_with_time());
    Ok(Some(Reply::Page(Page { about, feed, changes_with_time, ..Page::new(title, body) })))
}

/// What is left of a release that was taken back.
fn show_withdrawn(path: &RepoPath, withdrawal: &WithdrawalDescription) -> Reply {
    let WithdrawalDescription { project, signer, reason, at, objections } = withdrawal;
    let (name, of) = (links::release_name(project, path), links::shown_path(project));
    let body = html! {
        (parts::crumbs(Some(project)))
        h1.wrap { bdi { (name) } " " span.state.plain { "withdrawn" } }
        p.lede { "It collected signatures, and was taken back before it was complete." }
        section.card.hero.is-open aria-labelledby="withdrawn" {
            h2 #withdrawn { "Why" }
            p.reason { q.wrap { bdi { (shown_text(reason)) } } }
            p.meta { "Withdrawn by " (parts::who(signer)) @if let Some(at) = at { ", " (parts::when(*at)) } "." }
            p.meta {
                a href=(links::file(&layout::withdrawal_of(path))) { "The signed request" } " · "
                a href=(links::activity(path)) { "Activity" } " · "
                a href=(links::page(project)) { "The project" }
            }
        }
        (parts::earlier_objections(path, objections))
    };
    let title = format!("Withdrawn: {name} of {of}");
    Reply::Page(Page { about: format!("{title}."), feed: Some(links::feed(path)), ..Page::new(title, body) })
}

pub(super) fn revoked(revocation: &RevocationDescription) -> Markup {
    html! {
        section.card.hero.is-bad role="alert" aria-labelledby="revoked" {
            h2 #revoked { "Revoked: do not use this release" }
            p.reason { q.wrap { bdi { (shown_text(&revocation.reason)) } } }
            p.meta { "Dated " (parts::when(revocation.timestamp)) " by its author. Signed by:" }
            (parts::members(&revocation.signed))
        }
    }
}

/// What clients do with a release whose revocation has begun (D238).
pub(super) const REVOKERS_DECIDE: &str =
    "Until its revokers have decided, clients warn of this release, and refuse it with --strict.";

pub(super) fn begun_revocation(revocation: &RevocationDescription, path: &RepoPath, visit: &Visit) -> Markup {
    html! {
        section.card.hero.is-open.is-doubted role="alert" aria-labelledby="revocation" {
            h2 #revocation { (parts::how_many_revoke(revocation)) }
            p.reason { q.wrap { bdi { (shown_text(&revocation.reason)) } } }
            @for group in &revocation.groups { (parts::group(group)) }
            p { (REVOKERS_DECIDE) " They join with:" }
            (parts::command(links::client("revoke", path.as_str(), visit.changing_server())))
        }
    }
}

fn download(release: &ReleaseDescription, visit: &Visit) -> Markup {
    let first = release.index.published_files.first();
    let source = first.and_then(|file| links::outside(&file.source).map(|_| file.source.as_str()));
    let base_url = visit.base_url.as_deref();
    let is_doubted = parts::is_doubted(release);
    let lacking = release.reproduction.as_ref().filter(|reproduction| reproduction.is_lacking());
    let sign = links::client("sign", release.path.as_str(), visit.changing_server());
    html! {
        @match release.state {
            ReleaseState::Complete => section.card.hero.is-open[is_doubted].is-good[!is_doubted] aria-labelledby="download" {
                h2 #download { "Download and check" }
                @match (lacking, source) {
                    (Some(lacking), _) => p {
                        "The client refuses to download it"
                        @if is_reproducible(lacking, release.state) { " until builders have reproduced it." }
                        @else { ": " (lack_text(lacking)) ". No builder can change that." }
                    },
                    (None, Some(source)) => {
                        p { "The client fetches a file and checks all of this itself. For each file:" }
                        (parts::command(links::client("download", source, base_url)))
                    }
                    (None, None) => p { "The files of this release have no address on the web." },
                }
                p.meta { a href=(links::verify(&release.path)) { "Check a file that you have, in the browser" } }
            },
            ReleaseState::Collecting => section.card.hero.is-open aria-labelledby="sign" {
                h2 #sign { "Sign" }
                p {
                    "Too few have signed, so the client refuses to download it. The client compares the release with your own files "
                    "in " code { "DIR" } ", shows what would be signed, and asks:"
                }
                (parts::command(sign.map(|command| format!("{command} --files DIR"))))
                p.meta {
                    "A signature cannot be taken back, because anyone can submit it again. If something is wrong, "
                    code { "countersign object" } " tells the signers after you, and " code { "countersign withdraw" }
                    " takes the release back."
                }
            },
            ReleaseState::Revoked => {}
        }
    }
}

/// The files. No one should fetch those of a revoked release, so they have no links.
fn file_table(files: &[PublishedFile], state: ReleaseState) -> Markup {
    let has_size = files.iter().any(|file| file.size.is_some());
    let columns: &[&str] = if has_size { &["File", "Size", "Digest"] } else { &["File", "Digest"] };
    let rows = html! {
        @for file in files {
            @let name = html! { bdi { (marked_name(file.file_name.as_str())) } };
            tr role="row" {
                th.wrap scope="row" role="rowheader" {
                    @match links::outside(&file.source).filter(|_| state != ReleaseState::Revoked) {
                        Some(url) => a href=(url) rel="nofollow noopener noreferrer" { (name) },
                        None => (name),
                    }
                }
                @if has_size {
                    td.number role="cell" { @if let Some(size) = file.size { (parts::size(size)) } }
                }
                td role="cell" { (short_digest(file)) }
            }
        }
    };
    parts::table("files", columns, &rows)
}

fn short_digest(file: &PublishedFile) -> Markup {
    let (kind, digest) = match (file.digests.sha256, file.digests.sha512) {
        (Some(digest), _) => ("sha256", digest.to_string()),
        (None, Some(digest)) => ("sha512", digest.to_string()),
        (None, None) => ("", String::new()),
    };
    let head = digest.get(..SHORT_DIGEST).unwrap_or_default();
    let tail = digest.get(digest.len().saturating_sub(SHORT_DIGEST)..).unwrap_or_default();
    html! { code.together data-copy=(digest) data-copies="the digest" { (kind) ":" (head) "…" (tail) } }
}

/// The digests of files, as programs that check digests read them.
fn digest_list(files: &[PublishedFile]) -> Markup {
    let lines = |digest: fn(&PublishedFile) -> Option<String>| -> String {
        let line = |file| Some(format!("{}  {}\n", digest(file)?, shown_text(file.file_name.as_str())));
        files.iter().filter_map(line).collect()
    };
    let sha256 = lines(|file| file.digests.sha256.map(|digest| digest.to_string()));
    let sha512 = lines(|file| file.digests.sha512.map(|digest| digest.to_string()));
    html! {
        @for (name, lines) in [("SHA-256", sha256), ("SHA-512", sha512)] {
            @if !lines.is_empty() {
                details {
                    summary { "Whole digests, " (name) }
                    div.command { pre.digests tabindex="0" data-copies="the digests" { (lines) } }
                }
            }
        }
    }
}

fn signatures(release: &ReleaseDescription) -> Markup {
    html! {
        section.card aria-labelledby="signatures" {
            h2 #signatures { "Signatures" }
            @if release.groups.len() > 1 { p.meta { "Each of the groups has to reach its own threshold." } }
            @for (i, group) in release.groups.iter().enumerate() {
                @if release.groups.len() > 1 { h3 { "Group " (i + 1) } }
                (parts::group(group))
            }
            @if !release.formats.is_empty() {
                p.meta {
                    "Signed for other programs as well: "
                    @for (i, (format, count)) in release.formats.iter().enumerate() {
                        @if i > 0 { ", " }
                        (format) " by " (count)
                    }
                    "."
                }
            }
            @if !release.has_current_signers {
                p.meta {
                    "The signers of the project have changed since. These were the signers when it was completed."
                }
            }
        }
    }
}

fn facts(release: &ReleaseDescription, visit: &Visit) -> Markup {
    let ReleaseDescription { path, index, digest, .. } = release;
    let base_url = visit.base_url.as_deref().unwrap_or("https://SERVER");
    let markdown = format!("[![signed]({base_url}{})]({base_url}{})", links::badge(path), links::page(path));
    let signatures = match release.state {
        ReleaseState::Collecting => layout::pending_signatures_of(path),
        ReleaseState::Complete => layout::signatures_of(path),
        ReleaseState::Revoked => layout::revoked_signatures_of(path),
    };
    html! {
        section.card aria-label="Facts" {
            dl.facts {
                dt { "Project" }
                dd { a.wrap href=(links::page(&index.project_id)) { bdi { (links::shown_path(&index.project_id)) } } }
                @if let Some(url) = index.release_url.as_ref().filter(|_| release.state != ReleaseState::Revoked) {
                    dt { "Release page" }
                    dd { (parts::outside(url)) }
                }
                @if let Some(at) = index.published_on { dt { "Published" } dd { (parts::when(at)) } }
                dt { "Registered" }
                dd { (parts::when(index.mirrored_on)) }
                @if let Some(at) = release.completed_at { dt { "Completed" } dd { (parts::when(at)) } }
                dt { "Digest of the index" }
                dd { (parts::digest(&digest.to_prefixed(), "the digest of the index")) }
                dt { "Path on this server" }
                dd { code.wrap data-copies="the path" { bdi { (shown_text(path.as_str())) } } }
                dt { "Stored files" }
                dd {
                    a href=(links::file(path)) { "index" } ", "
                    a href=(links::file(&signatures)) { "signatures" } ", "
                    a href=(links::file(&layout::signers_copy_of(path))) { "signers of this release" }
                    @if !release.formats.is_empty() {
                        ", " a href=(links::file(&layout::other_formats_of(path))) { "other formats" }
                    }
                    @if !release.objections.is_empty() {
                        ", " a href=(links::file(&layout::objections_of(path))) { "objections" }
                    }
                    @if release.reproduction.as_ref().is_some_and(|found| !found.commits.is_empty()) {
                        ", " a href=(links::file(&layout::rebuilds_of(path))) { "rebuilds" }
                    }
                    @if release.revocation.is_some() {
                        ", " a href=(links::file(&layout::revocation_of(path))) { "revocation" }
                    }
                }
                dt { "More" }
                dd {
                    a href=(links::history(&index.project_id)) { "signers history" } ", "
                    a href=(links::activity(path)) { "activity" }
                }
                dt { "Badge" }
                dd { (parts::badge(&links::badge(path), markdown)) }
            }
        }
    }
}
