//! Two pages that say the same to every visitor: how to get the client, and what the words on the other pages mean.

use countersign_core::values::wire::routes::OPENAPI;
use maud::{Markup, html};

use crate::api::{openapi::lasting_page, routing::RouteTable};
use crate::web::{frame::Page, links, parts, visit::Visit};

const DOWNLOAD: &str = "https://github.com/acme/app/releases/download/v1.0/app.tar.gz";

pub(super) fn routes() -> RouteTable {
    let client = lasting_page("client_page", "Get the client")
        .about("How to install the program that checks and signs.");
    let help = lasting_page("help_page", "Help")
        .about("How to check, sign and watch, and what the words on pages mean.");
    let show_client = async |visit: Visit| Page::new("Get the client", client_page(&visit)).answer(&visit);
    let show_help = async |visit: Visit| Page::new("Help", help_page(&visit)).answer(&visit);
    RouteTable::default().get(links::CLIENT, show_client, client).get(links::HELP, show_help, help)
}

fn client_page(visit: &Visit) -> Markup {
    let lines = |lines: &str| parts::copyable(Some(lines.to_owned()));
    html! {
        h1 { "Get the client" }
        p.lede {
            "One program, " code { "countersign" } ", downloads, checks and signs. It believes no server: it checks every "
            "signature on your computer."
        }
        p {
            strong { "Take it from a place that you trust" } ", such as the project's own releases or your distribution, and not "
            "from this server. In the commands, " code { "URL" } " is the address of these releases, and " code { "VERSION" }
            " the version."
        }
        section aria-labelledby="packages" {
            h2 #packages { "Packages" }
            p { "Debian and Ubuntu:" }
            (lines("sudo apt install ./countersign_VERSION-1_amd64.deb"))
            p { "Fedora, RHEL and openSUSE:" }
            (lines("sudo dnf install ./countersign-VERSION-1.x86_64.rpm"))
        }
        section aria-labelledby="script" {
            h2 #script { "Any Linux, without root" }
            p { "The script verifies the signatures with OpenSSL 3 before it unpacks anything. It is short: read it first." }
            (lines("curl -fsSLO URL/VERSION/install.sh"))
            (lines("sh install.sh"))
        }
        section aria-labelledby="source" {
            h2 #source { "From source" }
            p { "You need Rust 1.89 or newer, a C compiler and " code { "git" } ". In the source directory:" }
            (lines("cargo build --release --locked"))
            (lines("PREFIX=$HOME/.local packaging/install"))
        }
        section aria-labelledby="first" {
            h2 #first { "First steps" }
            p { "Try everything with servers and keys that are removed afterwards:" }
            (lines("countersign demo"))
            p { "Download a file and check it:" }
            (parts::copyable(links::client("download", DOWNLOAD, visit.base_url.as_deref())))
            p.meta { "No client at hand? " a href=(links::VERIFY) { "Check a file in the browser" } ". That trusts this server." }
        }
    }
}

fn help_page(visit: &Visit) -> Markup {
    html! {
        h1 { "Help" }
        p.lede {
            "Projects name their signers, and how many of them must agree. This server collects their signatures on each release, "
            "and shows them to everyone."
        }
        section aria-labelledby="check" {
            h2 #check { "Check a file" }
            p {
                a href=(links::VERIFY) { "Drop it on this page" } ", and your browser checks it. Or let the client download it, and "
                "trust no page:"
            }
            (parts::command(links::client("download", DOWNLOAD, visit.base_url.as_deref())))
        }
        section aria-labelledby="sign" {
            h2 #sign { "Sign" }
            p { "The client lists what waits for your key, shows what you would sign, and asks before it signs:" }
            (parts::command(Some(format!("countersign pending --server {}", visit.changing_server().unwrap_or("SERVER")))))
            p.meta { "The page of a release has the command for that release." }
        }
        section aria-labelledby="words" {
            h2 #words { "The words on pages" }
            dl.facts { (words()) }
        }
        section aria-labelledby="more" {
            h2 #more { "More" }
            ul {
                li { a href=(links::PROJECTS) { "All projects" } }
                li { a href=(links::ALL_ACTIVITY) { "Activity" } ", also as an " a href=(links::ALL_ACTIVITY_FEED) { "Atom feed" } }
                li { a href=(links::DOCS) { "API reference" } ", for programs as " a href=(OPENAPI) { "openapi.json" } }
            }
        }
    }
}

fn words() -> Markup {
    let open = |word: &str| html! { span.state.open { (word) } };
    html! {
        dt { (open("collecting")) }
        dd { "Too few signers have signed. The client refuses to download the release." }
        dt { span.state.good { "complete" } }
        dd { "Enough signers have signed, in every group." }
        dt { (open("revocation begun")) }
        dd { "Some of the revokers want the release revoked, and too few so far. Wait until they have decided." }
        dt { span.state.bad { "revoked" } }
        dd { "Do not use the release. Its page says why, and which release is the newest good one." }
        dt { span.state.plain { "withdrawn" } }
        dd { "The release was taken back before it was complete." }
        dt { span.state.bad { "1 builder got something else" } }
        dd { "Someone built the source anew, and got other bytes. That blocks nothing. Find out why before you use the release." }
        dt { span.state.good { "reproduced" } }
        dd { "As many builders as the project asks for got the same files from the source." }
        dt { (open("not reproduced")) }
        dd { "Too few builders got the same files, and the project asks for more. The client refuses to download the release." }
        dt { span.state.bad { "1 objection" } }
        dd { "A signer has something against the release, and says what. That blocks nothing." }
        dt { "has 1 of 2; 1 more from bob or carol" }
        dd { "Progress: one signature is there, two are needed, and that of bob or carol is missing." }
        dt { "any 2 of 3 keys" }
        dd { "A rule: any two of these three keys are enough." }
        dt { "by 3 of 4 witnesses" }
        dd { "Servers of others have seen the same state at that time. So this server cannot hide a revocation from you alone." }
        dt { "svc-pub:Ab3xYz…9kQw0A" }
        dd { "A key, by its first and last characters. Names come from the project. What counts is the key." }
    }
}
