//! Pages and what they load.

use super::endpoint::{Answer, CACHE_CONTROL, Content, Endpoint, HTML, Section};

pub fn projects() -> Endpoint {
    page("projects_page", "Projects", "The projects on this server.")
}

pub fn docs() -> Endpoint {
    page(
        "docs_page",
        "This reference, for people",
        "Every endpoint with its parameters, answers and examples.",
    )
}

pub fn style() -> Endpoint {
    asset("style", "The style sheet", "text/css")
}

/// A page that is always there.
fn page(id: &'static str, summary: &'static str, about: &str) -> Endpoint {
    let answer = Answer::new(200, "the page").with_header(CACHE_CONTROL).with_content(Content::text(HTML));
    Endpoint::new(id, Section::Pages, summary, about).answers(answer).limited()
}

/// A file that pages load.
fn asset(id: &'static str, summary: &'static str, media_type: &'static str) -> Endpoint {
    let content = Content::text(media_type);
    let answer = Answer::new(200, "the file").with_header(CACHE_CONTROL).with_content(content);
    Endpoint::new(id, Section::Pages, summary, "Loaded by the pages.").answers(answer).limited()
}
