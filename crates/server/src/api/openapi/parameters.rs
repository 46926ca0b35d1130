//! Parameters that several endpoints share, and how others are made.

use countersign_api::error_code::ErrorCode;
use countersign_core::values::bounds::{PATH_BYTES, PATH_SEGMENTS};
use serde_json::{Value, json};

use crate::api::openapi::endpoint::{
    CACHE_CONTROL, Content, DescribedAnswer, ETAG, Endpoint, HTML, LOCATION, Parameter, ParameterPlace,
    Section, find_example,
};
use crate::http::error::ApiError;

pub const EXAMPLE_INDEX: &str = "https/github.com/443/acme/app/releases/tag/v1/svc.index.json";
pub const EXAMPLE_PROJECT: &str = "https/github.com/443/acme/app";
pub const EXAMPLE_COMMIT: &str = "cafecafecafecafecafecafecafecafecafecafe";
/// A segment is anything but slashes, backslashes and control characters. None is a dot, two dots, or `.git`.
const SEGMENT_PATTERN: &str = r"((?!\.{1,2}(/|$)|\.[gG][iI][tT](/|$))[^/\\\x00-\x1f\x7f-\x9f]+(/|$))";

impl Parameter {
    /// A part of the path. It is always required; the others are optional.
    pub fn path(name: &'static str, about: &'static str, schema: Value, example: impl Into<Value>) -> Self {
        Self { name, place: ParameterPlace::Path, about, schema, example: example.into() }
    }

    pub fn query(name: &'static str, about: &'static str, schema: Value, example: impl Into<Value>) -> Self {
        Self { place: ParameterPlace::Query, ..Self::path(name, about, schema, example) }
    }

    pub fn header(name: &'static str, about: &'static str, schema: Value, example: impl Into<Value>) -> Self {
        Self { place: ParameterPlace::Header, ..Self::path(name, about, schema, example) }
    }
}

/// The schema of any text.
pub fn text() -> Value {
    json!({ "type": "string" })
}

/// The schema of a text that this regular expression describes.
pub fn matching(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// The schema of one of these words.
pub fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// The schema of a path.
pub fn path() -> Value {
    let pattern = format!("^{SEGMENT_PATTERN}{{1,{PATH_SEGMENTS}}}$");
    json!({ "type": "string", "minLength": 1, "maxLength": PATH_BYTES, "pattern": pattern })
}

/// The schema of the id of a commit, in either letter case.
pub fn commit() -> Value {
    matching("^[0-9a-fA-F]{40}$")
}

/// The schema of a public key.
pub fn public_key() -> Value {
    matching("^svc-pub:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]$")
}

pub fn example_key() -> Value {
    find_example("header.public_key")
}

pub fn file_path() -> Parameter {
    let about = "A mirror-relative path with plain slashes. `%2F` counts as a slash as well.";
    Parameter::path("path", about, path(), EXAMPLE_INDEX)
}

/// The path of anything at or below a project.
pub fn any_path() -> Parameter {
    let about = "The path of any file or directory, with plain slashes. It need not exist.";
    Parameter::path("path", about, path(), EXAMPLE_PROJECT)
}

/// The parameter that says where a list goes on.
pub fn after_index() -> Parameter {
    let about = "Continue after this `index_path`, the last one of the answer before.";
    Parameter::query("after", about, path(), EXAMPLE_INDEX)
}

pub fn if_none_match() -> Parameter {
    let about = "The `ETag` of your copy. The answer is 304 if it is still current.";
    Parameter::header("If-None-Match", about, text(), format!("\"{EXAMPLE_COMMIT}\""))
}

// What the descriptions of pages have in common.

/// A page that shows the newest state.
pub fn living_page(id: &'static str, summary: &'static str, media_type: &'static str) -> Endpoint {
    let page = DescribedAnswer::new(200, "the page").with_headers([ETAG, CACHE_CONTROL]);
    Endpoint::new(id, Section::Pages, summary)
        .takes(if_none_match())
        .answers(page.with_content(Content::text(media_type)))
        .answers(DescribedAnswer::not_modified())
        .fails("nothing is there", ApiError::new(ErrorCode::NoSuchPage, "The list has no such page"))
        .can_fail("")
        .fails("too many pages are being made, or the server has just started; try again", ApiError::BUSY)
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
