//! What the descriptions of pages have in common.

use countersign_api::error_code::ErrorCode;
use serde_json::json;

use super::endpoint::{
    CACHE_CONTROL, Content, DescribedAnswer, ETAG, Endpoint, HTML, LOCATION, Parameter, Section,
};
use super::parameters::{if_none_match, text};
use crate::error::ApiError;

/// A page that shows the newest state.
pub fn living_page(id: &'static str, summary: &'static str, media_type: &'static str) -> Endpoint {
    let page = DescribedAnswer::new(200, "the page").with_headers([ETAG, CACHE_CONTROL]);
    Endpoint::new(id, Section::Pages, summary)
        .takes(if_none_match())
        .answers(page.with_content(Content::text(media_type)))
        .answers(DescribedAnswer::not_modified())
        .fails("nothing is there", &ApiError::new(ErrorCode::NoSuchPage, "The list has no such page"))
        .can_fail("")
        .fails("too many pages are being made, or the server has just started; try again", &ApiError::busy())
        .limited()
}

/// A page that never changes.
pub fn lasting_page(id: &'static str, summary: &'static str) -> Endpoint {
    fixed(id, summary, "the page", HTML)
}

/// A file that pages load.
pub fn asset(id: &'static str, summary: &'static str, media_type: &'static str) -> Endpoint {
    fixed(id, summary, "the file", media_type).about("Loaded by the pages.")
}

fn fixed(id: &'static str, summary: &'static str, about: &str, media_type: &'static str) -> Endpoint {
    let answer = DescribedAnswer::new(200, about).with_headers([CACHE_CONTROL]);
    let answer = answer.with_content(Content::text(media_type));
    Endpoint::new(id, Section::Pages, summary).answers(answer).limited()
}

pub fn redirect(about: &str) -> DescribedAnswer {
    DescribedAnswer::new(307, about).with_headers([LOCATION])
}

/// A parameter that is not always checked, since a page at another address redirects first.
pub fn unchecked(parameter: Parameter) -> Parameter {
    let example = parameter.example.as_str().map_or_else(|| parameter.example.to_string(), str::to_owned);
    Parameter { schema: text(), example: json!(example), ..parameter }
}
