//! The page of a release: its files, its signatures, its revocation.

use crate::web::overview::release::{ReleaseOverview, ReleaseState, RevocationOverview, describe_release};
use countersign_core::{
    documents::{index::PublishedFile, layout},
    values::{path::RepoPath, shown::shown_text},
};
use maud::{Markup, html};

use super::{
    command,
    frame::Page,
    links,
    paging::Paging,
    parts,
    project::release_name,
    projects,
    reply::{PageTrouble, Reply},
    visit::Visit,
};
use countersign_store::Head;

const FILES_PER_PAGE: usize = 100;

pub(super) fn show(head: &Head, path: &RepoPath, visit: &Visit) -> Result<Option<Reply>, PageTrouble> {
    let Some(release) = describe_release(head, path)? else { return Ok(None) };
    let files = &release.index.published_files;
    let paging = Paging::of(visit.page, FILES_PER_PAGE, files.len()).ok_or_else(projects::no_such_page)?;
    let project = &release.index.project_id;
    let name = path.parent().map_or_else(|| shown_text(path.as_str()), |dir| release_name(project, &dir));
    let title = format!("{name} of {}", links::shown_path(project));
    let body = html! {
        (parts::crumbs(path))
        h1.wrap { (name) }
        p.lede {
            (parts::state(release.state)) " release of "
            a.wrap href=(links::page(project)) { (links::shown_path(project)) }
        }
        @if let Some(revocation) = &release.revocation { (revoked(revocation)) }
        @if let Some(begun) = &release.begun_revocation { (begun_revocation(begun, path, visit)) }
        (signatures(&release, visit))
        section aria-labelledby="files" {
            h2 #files { "Files" }
            (file_table(&files[paging.range()], files.len()))
            (paging.links("files", &format!("{}?page=", links::page(path))))
        }
        (download(&release, visit))
        (about(&release, visit))
    };
    Ok(Some(Reply::Page(Page::new(title, body))))
}

fn revoked(revocation: &RevocationOverview) -> Markup {
    html! {
        section.revoked role="alert" aria-labelledby="revoked" {
            h2 #revoked { "Revoked: do not use this release" }
            p.reason { q.wrap { (shown_text(&revocation.reason)) } }
            p { "Dated " (parts::when(revocation.timestamp)) " by its author. Signed by:" }
            (parts::members(&revocation.signed))
        }
    }
}

fn begun_revocation(revocation: &RevocationOverview, path: &RepoPath, visit: &Visit) -> Markup {
    html! {
        section.notice aria-labelledby="revocation" {
            h2 #revocation { "A revocation waits for signatures" }
            p.reason { q.wrap { (shown_text(&revocation.reason)) } }
            @for group in &revocation.groups { (parts::group(group, "Signatures on the revocation")) }
            p { "Signers who can revoke join with:" }
            (parts::command(command::client("revoke", path.as_str(), visit.origin.as_deref())))
        }
    }
}

fn signatures(release: &ReleaseOverview, visit: &Visit) -> Markup {
    let is_collecting = release.state == ReleaseState::Collecting;
    html! {
        section aria-labelledby="signatures" {
            h2 #signatures { "Signatures" }
            @if release.groups.len() > 1 { p.hint { "Each of the groups has to reach its own threshold." } }
            @for (i, group) in release.groups.iter().enumerate() {
                @let what = format!("Signatures of group {}", i + 1);
                @if release.groups.len() > 1 { h3 { "Group " (i + 1) } }
                (parts::group(group, &what))
            }
            @if !release.has_current_signers {
                p.hint {
                    "The signers of the project have changed since. These were the signers when it was completed."
                }
            }
            @if is_collecting {
                h3 { "Sign" }
                p { "The client shows what would be signed, and asks:" }
                (parts::command(command::client("sign", release.path.as_str(), visit.origin.as_deref())))
            }
        }
    }
}

fn file_table(files: &[PublishedFile], total: usize) -> Markup {
    html! {
        table.files role="table" {
            caption { (parts::count(total, "file", "files")) ", with the digests that were signed" }
            thead role="rowgroup" {
                tr role="row" {
                    th scope="col" role="columnheader" { "File" }
                    th scope="col" role="columnheader" { "Size" }
                    th scope="col" role="columnheader" { "Digests" }
                }
            }
            tbody role="rowgroup" {
                @for file in files { (file_row(file)) }
            }
        }
    }
}

fn file_row(file: &PublishedFile) -> Markup {
    let name = shown_text(file.file_name.as_str());
    html! {
        tr role="row" {
            th.wrap scope="row" role="rowheader" {
                @match links::outside(&file.source) {
                    Some(url) => a href=(url) rel="nofollow noopener noreferrer" { (name) },
                    None => (name),
                }
            }
            td role="cell" {
                @match file.size { Some(size) => { (parts::number(size)) " bytes" }, None => "not known" }
            }
            td role="cell" {
                dl.digests {
                    @if let Some(digest) = file.digests.sha256 { dt { "SHA-256" } dd { code.wrap { (digest) } } }
                    @if let Some(digest) = file.digests.sha512 { dt { "SHA-512" } dd { code.wrap { (digest) } } }
                }
            }
        }
    }
}

fn download(release: &ReleaseOverview, visit: &Visit) -> Markup {
    let first = release.index.published_files.first();
    let source = first.and_then(|file| links::outside(&file.source).map(|_| file.source.as_str()));
    html! {
        section aria-labelledby="download" {
            h2 #download { "Download and check" }
            @match (release.state, source) {
                (ReleaseState::Complete, Some(source)) => {
                    p { "The client fetches a file and checks all of this itself. For each file:" }
                    (parts::command(command::client("download", source, visit.origin.as_deref())))
                }
                (ReleaseState::Complete, None) => p { "The files of this release have no address on the web." },
                (ReleaseState::Collecting, _) => p { "Not yet: too few have signed, so the client refuses it." },
                (ReleaseState::Revoked, _) => p { "The client refuses this release: it was revoked." },
            }
            @if release.state != ReleaseState::Collecting {
                p { a href=(links::verify(&release.path)) { "Check a file that you have, in the browser" } }
            }
        }
    }
}

fn about(release: &ReleaseOverview, visit: &Visit) -> Markup {
    let ReleaseOverview { path, index, digest, .. } = release;
    let origin = visit.origin.as_deref().unwrap_or("https://SERVER");
    let markdown = format!("[![signed]({origin}{})]({origin}{})", links::badge(path), links::page(path));
    let signatures = match release.state {
        ReleaseState::Collecting => layout::pending_signatures_of(path),
        ReleaseState::Complete => layout::signatures_of(path),
        ReleaseState::Revoked => layout::revoked_signatures_of(path),
    };
    html! {
        section aria-labelledby="about" {
            h2 #about { "About this release" }
            dl {
                @if let Some(url) = &index.release_url { dt { "Release page" } dd { (parts::outside(url)) } }
                @if let Some(at) = index.published_on { dt { "Published" } dd { (parts::when(at)) } }
                dt { "Registered" }
                dd { (parts::when(index.mirrored_on)) }
                @if let Some(at) = release.completed_at { dt { "Completed" } dd { (parts::when(at)) } }
                dt { "Path" }
                dd { code.wrap { (shown_text(path.as_str())) } }
                dt { "Digest of the index" }
                dd { code.wrap { (digest.to_prefixed()) } }
                dt { "Stored files" }
                dd {
                    a href=(links::file(path)) { "index" } ", "
                    a href=(links::file(&signatures)) { "signatures" } ", "
                    a href=(links::file(&layout::signers_copy_of(path))) { "signers of this release" }
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
                dd {
                    a href=(links::badge(path)) { "of this release" } ", for a README:"
                    (parts::command(Some(markdown)))
                }
            }
        }
    }
}
