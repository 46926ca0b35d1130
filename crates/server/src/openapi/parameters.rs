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

fn path(about: &'static str, example: &str) -> Parameter {
    let schema = json!({ "type": "string", "minLength": 1, "maxLength": PATH_MAX, "pattern": PATH_PATTERN });
    Parameter { name: "path", place: Place::Path, about, schema, example: json!(example) }
}

/// The path of what a badge is about, and the ending of a picture.
pub fn badge_path() -> Parameter {
    let about = "The path of a project, a release or a pending signers file, and `.svg`.";
    let schema =
        json!({ "type": "string", "maxLength": PATH_MAX, "pattern": r"^[^\\\x00-\x1f\x7f-\x9f]+\.svg$" });
    let example = json!(format!("{PROJECT}.svg"));
    Parameter { name: "path", place: Place::Path, about, schema, example }
}

/// Which page of a long list.
pub fn page() -> Parameter {
    Parameter {
        name: "page",
        place: Place::Query,
        about: "Which page of the list, from 1.",
        schema: json!({ "type": "integer", "minimum": 1 }),
        example: json!(1),
    }
}

/// From which commit to look back.
pub fn before() -> Parameter {
    Parameter {
        name: "before",
        place: Place::Query,
        about: "Only what happened before this commit.",
        schema: json!({ "type": "string", "pattern": "^[0-9a-f]{40}$" }),
        example: json!("cafecafecafecafecafecafecafecafecafecafe"),
    }
}

pub fn search() -> Parameter {
    Parameter {
        name: "q",
        place: Place::Query,
        about: "Words that the path of a project must have.",
        schema: json!({ "type": "string" }),
        example: json!("acme"),
    }
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
