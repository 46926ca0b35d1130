//! The page on which a browser verifies a file. The script finds its release by its digest, and does all else.

use axum::{extract::State, response::Response};
use countersign_core::values::{path::RepoPath, shown::marked_name, shown::shown_text, wire};
use countersign_explain::describe::release::{ReleaseDescription, describe_release};
use countersign_forge::download_url::{Candidate, CandidateKind, locate_download};
use maud::{Markup, html};

use crate::api::openapi::{EXAMPLE_PROJECT, Parameter, asset, lasting_page, text};
use crate::api::{routing::RouteTable, state::App};
use crate::http::{error::ApiError, sending::run_in_turn, sending::typed};
use crate::web::release::{begun_revocation, revoked};
use crate::web::{frame::Page, links, parts, visit::Visit};

/// A part of the script.
#[derive(Clone, Copy)]
struct Module {
    path: &'static str,
    /// The id of the module in the reference.
    id: &'static str,
    text: &'static str,
}

macro_rules! module {
    ($name:literal) => {
        Module {
            path: concat!("/assets/verify/", $name, ".mjs"),
            id: concat!("script_", $name),
            text: include_str!(concat!("verify/", $name, ".mjs")),
        }
    };
}

/// The module that the page names.
const FIRST_MODULE: Module = module!("page");
/// The whole script. It needs no build: the browser loads these modules as they are.
const MODULES: [Module; 13] = [
    FIRST_MODULE,
    module!("evidence"),
    module!("freshness"),
    module!("staple"),
    module!("verdict"),
    module!("reproduction"),
    module!("rules"),
    module!("place"),
    module!("documents"),
    module!("log"),
    module!("values"),
    module!("keys"),
    module!("json"),
];

pub(super) fn routes() -> RouteTable {
    let file = "https://github.com/acme/app/releases/download/v1.0/app.tar.gz";
    let described = lasting_page("verify_page", "Verify a file")
        .about("A form that checks a file in your browser. The file is not sent anywhere.")
        .takes(Parameter::query(
            "path",
            "The path of the index that lists the file.",
            text(),
            EXAMPLE_PROJECT,
        ))
        .takes(Parameter::query("url", "The address that the file came from.", text(), file));
    let page = RouteTable::default().get(links::VERIFY, page, described);
    MODULES.into_iter().fold(page, |routes, Module { path, id, text }| {
        // Modules of two versions do not work together.
        let send = async move || typed(text, "text/javascript; charset=utf-8", "no-cache");
        routes.get(path, send, asset(id, "A script", "text/javascript"))
    })
}

async fn page(State(app): State<App>, visit: Visit) -> Result<Response, ApiError> {
    let body = match Asked::of(&visit) {
        Ok(asked) => {
            let head = app.store.head();
            let named = if let Asked::Release(index) = &asked { Some(index.clone()) } else { None };
            // What speaks against it takes time to read.
            let find = move || named.and_then(|index| describe_release(&*head, &index).ok().flatten());
            let release = run_in_turn(&app.renderings, visit.sender.claimant(), find).await?;
            asked.render(release.as_ref(), &visit)
        }
        Err(reason) => refuse(&visit.field("url").unwrap_or_default(), &reason),
    };
    Ok(Page { script: Some(FIRST_MODULE.path), ..Page::new("Verify a file", body) }.answer(&visit))
}

/// What a visitor wants to verify a file against.
enum Asked {
    /// The script finds the release by the file's digest.
    Any,
    /// The index at this path.
    Release(RepoPath),
    /// The file from this address. The places to look for its index are in this order.
    Download { url: String, places: Vec<Candidate> },
}

impl Asked {
    /// What the query asks for, or why it leads nowhere.
    fn of(visit: &Visit) -> Result<Self, String> {
        match (visit.field("url"), visit.field("path")) {
            (None, None) => Ok(Self::Any),
            (Some(url), None) => {
                let places = locate_download(&url).map_err(|error| error.to_string())?.candidates;
                Ok(Self::Download { url, places })
            }
            (None, Some(path)) => {
                let index = RepoPath::parse(&path).map_err(|error| error.to_string())?;
                if index.file_name() != wire::INDEX_FILE {
                    return Err(format!("the path of a release ends in /{}", wire::INDEX_FILE));
                }
                Ok(Self::Release(index))
            }
            (Some(_), Some(_)) => Err("give either an address or a path, not both".to_owned()),
        }
    }

    fn render(&self, release: Option<&ReleaseDescription>, visit: &Visit) -> Markup {
        html! {
            h1 { "Verify a file" }
            @if let Some(release) = release {
                @if let Some(revocation) = &release.revocation { (revoked(revocation)) }
                @if let Some(begun) = &release.begun_revocation { (begun_revocation(begun, &release.path, visit)) }
                (parts::differences(release))
                (parts::objections(&release.objections))
            }
            p.lede {
                "Your browser hashes the file, finds its release and checks the signatures itself. The file stays on your "
                "computer: it is not sent anywhere."
            }
            (self.render_places())
            p.choose {
                label for="file" { "Drop files here, or choose them" }
                // The script enables it. Without the script it would do nothing.
                input #file type="file" multiple disabled;
            }
            noscript {
                p {
                    "Nothing has been checked: this page verifies with a script, which your browser does not run. Use the command "
                    "line, which does the same and more: "
                    code { "countersign verify FILE --server URL" } " (" a href=(links::CLIENT) { "get the client" } ")."
                }
            }
            div #result role="status" {}
            // The script shows it where the digest is not known.
            (form("", true))
            @if !matches!(self, Self::Any) { p { a href=(links::VERIFY) { "Find the release by the file instead" } } }
            (limits())
        }
    }

    /// The script reads the attributes. An index at the only place that counts is the one, and no other is asked.
    fn render_places(&self) -> Markup {
        match self {
            Self::Any => html! {},
            Self::Release(index) => html! {
                p.wrap {
                    "As a file of the release "
                    span data-index=(index) data-only="yes" {
                        a href=(links::page(index)) { bdi { (links::shown_path(index.parent().as_ref().unwrap_or(index))) } }
                    }
                }
            },
            Self::Download { url, places } => html! {
                p.wrap { "As the file from " code { bdi { (shown_text(url)) } } }
                details.places {
                    summary { "Where its release is looked for" }
                    ol {
                        @for Candidate { kind, index, file_name } in places {
                            @let is_only = *kind == CandidateKind::Release;
                            li {
                                span data-index=(index) data-name=(file_name.as_str()) data-only=[is_only.then_some("yes")] {
                                    // Most of these places do not exist.
                                    code { bdi { (marked_name(index.as_str())) } } " as " code { bdi { (marked_name(file_name.as_str())) } }
                                }
                            }
                        }
                    }
                }
            },
        }
    }
}

fn refuse(url: &str, reason: &str) -> Markup {
    html! {
        h1 { "Verify a file" }
        p.problem role="alert" { "This does not lead to a release: " bdi { (shown_text(reason)) } "." }
        (form(url, false))
        p { a href=(links::VERIFY) { "Find the release by the file instead" } }
        (limits())
    }
}

fn form(url: &str, is_hidden: bool) -> Markup {
    html! {
        form #ask.ask action=(links::VERIFY) hidden[is_hidden] {
            label for="url" { "Where the file was downloaded from" }
            input #url name="url" value=(url) autocomplete="off"
                placeholder="https://github.com/acme/app/releases/download/v1.0/app.tar.gz";
            p.meta { "The page of its release then says what differs. Give it the file again." }
            button { "Find the release" }
        }
    }
}

fn limits() -> Markup {
    html! {
        section.limits {
            h2 { "What this shows, and what it does not" }
            p {
                "It finds files that a mirror, a proxy or a broken download has changed, and releases that too few of "
                "their signers have signed, or that were revoked."
            }
            p {
                "It does " strong { "not" } " protect against this server. Page and script came from it, and so did the "
                "signers: on a first visit your browser would not notice if all of them were exchanged. Only where a line above names witnesses does more than this server's word show that the release is "
                "the newest and not revoked."
            }
            p {
                "The command line does not depend on this server: it remembers the signers, and at first asks the "
                "project's own forge for them. "
                code { "countersign download URL" } " downloads a file, "
                code { "countersign verify FILE --server URL" } " checks one that is here, of any size. "
                a href=(links::CLIENT) { "Get the client" }
            }
        }
    }
}
