//! Pages and the files that they load.

use countersign_api::error_code::ErrorCode;
use serde_json::json;

use super::{
    endpoint::{CACHE_CONTROL, Content, DescribedAnswer, ETAG, Endpoint, HTML, LOCATION, Parameter, Section},
    parameters::{
        address_of_file, any_path, author, badge_path, before, event_type, if_none_match, index_of_file,
        key_of_page, page, project_address, search,
    },
};
use crate::error::ApiError;

const SVG: &str = "image/svg+xml";
const ATOM: &str = "application/atom+xml";

pub fn landing() -> Endpoint {
    living("landing_page", "The first page", "What this server is for, and recent releases.")
        .with_parameter(unchecked(search()))
        .answers(DescribedAnswer::new(307, "a search has an address of its own").with_header(LOCATION))
        .with_error_pages()
}

pub fn projects() -> Endpoint {
    let about = "The projects on this server. A digest finds the releases that list it.";
    living("projects_page", "Projects", about)
        .with_parameter(search())
        .with_parameter(page())
        .with_error_pages()
}

pub fn key() -> Endpoint {
    let about = "Where a key is listed, what it signed, and what waits for it.";
    living("key_page", "A key", about)
        .with_parameter(key_of_page())
        .answers(DescribedAnswer::new(307, "the page is under another address").with_header(LOCATION))
        .with_error_pages()
}

pub fn place() -> Endpoint {
    let about =
        "What is stored at a path: a project, a release, proposed signers, or the history of the signers.";
    showing("place_page", "A project or a release", about, HTML)
        .with_parameter(any_path())
        .with_parameter(unchecked(page()))
        .with_parameter(unchecked(before()))
        .with_content(200, Content::text(ATOM))
        .answers(DescribedAnswer::new(307, "the page is under another address").with_header(LOCATION))
        .refuses(400, "invalid path", "path.400")
        .with_error_pages()
}

pub fn activity() -> Endpoint {
    living("activity_page", "Activity", "What happened recently on this server.")
        .with_parameter(unchecked(before()))
        .with_parameter(unchecked(project_address()))
        .with_parameter(unchecked(event_type()))
        .with_parameter(author())
        .answers(DescribedAnswer::new(307, "a project has its own page").with_header(LOCATION))
        .with_error_pages()
}

pub fn feed() -> Endpoint {
    let about = "What happened recently on this server, as an Atom feed.";
    showing("activity_feed", "Activity, for feed readers", about, ATOM)
        .with_parameter(unchecked(event_type()))
        .with_parameter(author())
        .with_error_pages()
}

pub fn verify() -> Endpoint {
    let about = "A form that checks a file in your browser. The file is not sent anywhere.";
    lasting("verify_page", "Verify a file", about)
        .with_parameter(index_of_file())
        .with_parameter(address_of_file())
}

pub fn docs() -> Endpoint {
    let about = "Every endpoint with its parameters, answers and examples.";
    lasting("docs_page", "This reference, for people", about)
}

pub fn docs_section(section: Section) -> Endpoint {
    let id = match section {
        Section::Changing => "docs_projects_page",
        Section::Signing => "docs_signing_page",
        Section::Reading => "docs_reading_page",
        Section::Watching => "docs_service_page",
        Section::Pages => "docs_pages_page",
    };
    lasting(id, "A part of this reference", "The endpoints of one group.")
}

pub fn badge() -> Endpoint {
    let picture = |status, about| {
        DescribedAnswer::new(status, about).with_header(CACHE_CONTROL).with_content(Content::text(SVG))
    };
    Endpoint::new(
        "badge",
        Section::Pages,
        "A badge",
        "A small picture that says how far a release is signed, or how many signers a project has.",
    )
    .counted_as("badge")
    .with_parameter(badge_path())
    .with_parameter(if_none_match())
    .answers(picture(200, "the picture").with_header(ETAG))
    .answers(DescribedAnswer::not_modified())
    .answers(picture(404, "a picture that says `unknown`"))
    .can_fail("")
    .limited()
}

pub fn style() -> Endpoint {
    asset("style", "The style sheet", "text/css")
}

pub fn script(id: &'static str) -> Endpoint {
    asset(id, "A script", "text/javascript")
}

pub fn page_script() -> Endpoint {
    asset("page_script", "The script of all pages", "text/javascript")
}

pub fn preview() -> Endpoint {
    asset("preview", "The picture beside links to pages", "image/png")
}

pub fn icon() -> Endpoint {
    asset("icon", "The icon", SVG)
}

pub fn favicon() -> Endpoint {
    asset("favicon", "The icon, where browsers look for it", SVG)
}

/// A page that shows the newest state.
fn living(id: &'static str, summary: &'static str, about: &str) -> Endpoint {
    showing(id, summary, about, HTML)
}

fn showing(id: &'static str, summary: &'static str, about: &str, media_type: &'static str) -> Endpoint {
    let page_of = |about| DescribedAnswer::new(200, about).with_header(ETAG).with_header(CACHE_CONTROL);
    Endpoint::new(id, Section::Pages, summary, about)
        .with_parameter(if_none_match())
        .answers(page_of("the page").with_content(Content::text(media_type)))
        .answers(DescribedAnswer::not_modified())
        .fails("nothing is there", &ApiError::new(ErrorCode::NoSuchPage, "The list has no such page"))
        .can_fail("")
        .fails("too many pages are being made, or the server has just started; try again", &ApiError::busy())
        .limited()
}

/// For a parameter that is not always checked, since a page at another address redirects first.
fn unchecked(parameter: Parameter) -> Parameter {
    let example = parameter.example.as_str().map_or_else(|| parameter.example.to_string(), str::to_owned);
    Parameter { schema: json!({ "type": "string" }), example: json!(example), ..parameter }
}

/// A page that never changes.
fn lasting(id: &'static str, summary: &'static str, about: &str) -> Endpoint {
    let answer =
        DescribedAnswer::new(200, "the page").with_header(CACHE_CONTROL).with_content(Content::text(HTML));
    Endpoint::new(id, Section::Pages, summary, about).answers(answer).limited()
}

fn asset(id: &'static str, summary: &'static str, media_type: &'static str) -> Endpoint {
    let content = Content::text(media_type);
    let answer = DescribedAnswer::new(200, "the file").with_header(CACHE_CONTROL).with_content(content);
    Endpoint::new(id, Section::Pages, summary, "Loaded by the pages.").answers(answer).limited()
}
