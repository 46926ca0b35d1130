//! Parameters that several endpoints share.

use serde_json::json;

use super::endpoint::{Parameter, Place};

const INDEX: &str = "https/github.com/443/acme/app/releases/tag/v1/svc.index.json";
const PROJECT: &str = "https/github.com/443/acme/app";
/// Segments of anything but slashes, backslashes and control characters; none of them a dot, two dots, or Git's own
/// directory.
const PATH_PATTERN: &str = r"^((?!\.{1,2}(/|$)|\.[gG][iI][tT](/|$))[^/\\\x00-\x1f\x7f-\x9f]+(/|$)){1,64}$";
const PATH_MAX: usize = countersign_core::path::MAX_BYTES;

/// The path of a file.
pub fn file_path() -> Parameter {
    path("A mirror-relative path, with its slashes as they are; `%2F` is a slash as well.", INDEX)
}

/// The path of anything at or below a project.
pub fn any_path() -> Parameter {
    path("The path of any file or directory, there or not, with its slashes as they are.", PROJECT)
}

/// A path with another last part than that of a file.
pub fn path(about: &'static str, example: &str) -> Parameter {
    let schema = json!({ "type": "string", "minLength": 1, "maxLength": PATH_MAX, "pattern": PATH_PATTERN });
    Parameter { name: "path", place: Place::Path, about, schema, example: json!(example) }
}

pub fn if_none_match() -> Parameter {
    Parameter {
        name: "If-None-Match",
        place: Place::Header,
        about: "The `ETag` of a copy that you have: 304 if it is still right.",
        schema: json!({ "type": "string" }),
        example: json!("\"cafecafecafecafecafecafecafecafecafecafe\""),
    }
}
