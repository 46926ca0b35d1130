//! Parameters that several endpoints share.

use countersign_api::{catalogue::ReleaseState, event::EventKind};
use countersign_core::values::bounds::{JOURNAL_WAIT_SECONDS, PATH_BYTES, PATH_SEGMENTS};
use serde_json::{Value, json};

use super::endpoint::{Parameter, ParameterPlace, find_example};

const INDEX: &str = "https/github.com/443/acme/app/releases/tag/v1/svc.index.json";
const PROJECT: &str = "https/github.com/443/acme/app";
/// A segment is anything but slashes, backslashes and control characters. None is a dot, two dots, or `.git`.
const SEGMENT_PATTERN: &str = r"((?!\.{1,2}(/|$)|\.[gG][iI][tT](/|$))[^/\\\x00-\x1f\x7f-\x9f]+(/|$))";
pub(super) const COMMIT: &str = "cafecafecafecafecafecafecafecafecafecafe";
const COMMIT_PATTERN: &str = "^[0-9a-f]{40}$";

pub fn file_path() -> Parameter {
    path("A mirror-relative path with plain slashes. `%2F` counts as a slash as well.", INDEX)
}

/// The path of anything at or below a project.
pub fn any_path() -> Parameter {
    path("The path of any file or directory, with plain slashes. It need not exist.", PROJECT)
}

fn path(about: &'static str, example: &str) -> Parameter {
    let pattern = format!("^{SEGMENT_PATTERN}{{1,{PATH_SEGMENTS}}}$");
    let schema = json!({ "type": "string", "minLength": 1, "maxLength": PATH_BYTES, "pattern": pattern });
    Parameter { name: "path", place: ParameterPlace::Path, about, schema, example: json!(example) }
}

/// Of a tile of the log's tree.
pub fn tile_name() -> Parameter {
    let about =
        "The level, the number of the tile in groups of three digits, and the width of a partial tile.";
    named_tile(about, &format!("^([0-9]|[1-5][0-9]|6[0-3])/{TILE_NUMBER}$"), "0/x001/234.p/5")
}

/// Of a bundle of the log's leaves.
pub fn bundle_name() -> Parameter {
    let about = "The number of the bundle in groups of three digits, and the width of a partial bundle.";
    named_tile(about, &format!("^{TILE_NUMBER}$"), "x001/234.p/5")
}

const TILE_NUMBER: &str = r"(x[0-9]{3}/){0,5}[0-9]{3}(\.p/[1-9][0-9]{0,2})?";

fn named_tile(about: &'static str, pattern: &str, example: &str) -> Parameter {
    let schema = json!({ "type": "string", "maxLength": 40, "pattern": pattern });
    Parameter { name: "path", place: ParameterPlace::Path, about, schema, example: json!(example) }
}

/// The path of the badge's subject, and `.svg`.
pub fn badge_path() -> Parameter {
    let about = "The path of a project, a release or a pending signers file, and `.svg`.";
    let schema =
        json!({ "type": "string", "maxLength": PATH_BYTES, "pattern": r"^[^\\\x00-\x1f\x7f-\x9f]+\.svg$" });
    let example = json!(format!("{PROJECT}.svg"));
    Parameter { name: "path", place: ParameterPlace::Path, about, schema, example }
}

pub fn page() -> Parameter {
    let schema = json!({ "type": "integer", "minimum": 1 });
    query("page", "Which page of the list, from 1.", schema, json!(1))
}

pub fn before() -> Parameter {
    // A form sends an empty field where people leave it empty.
    let schema = json!({ "type": "string", "pattern": format!("{COMMIT_PATTERN}|^$") });
    query("before", "Only what happened before this commit.", schema, json!(COMMIT))
}

/// Of any form that people have at hand.
pub fn project_address() -> Parameter {
    let about = "The URL of a project, or its path on this server.";
    query("project", about, json!({ "type": "string" }), json!("https://github.com/acme/app"))
}

pub fn event_type() -> Parameter {
    let names = EventKind::ALL.map(EventKind::name).into_iter().chain([""]);
    let schema = json!({ "type": "string", "enum": names.collect::<Vec<_>>() });
    query("type", "Only events of this type.", schema, json!("complete"))
}

pub fn author() -> Parameter {
    let about = "Only what this public key did.";
    query("key", about, json!({ "type": "string" }), find_example("header.public_key"))
}

/// The key of a page, in its address.
pub fn key_of_page() -> Parameter {
    Parameter {
        name: "key",
        place: ParameterPlace::Path,
        about: "A public key, with `-` and `_` for `+` and `/`.",
        schema: json!({ "type": "string", "pattern": "^svc-pub:[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$" }),
        example: json!(plain_address(&find_example("header.public_key"))),
    }
}

fn plain_address(key: &Value) -> String {
    key.as_str().unwrap_or_default().replace('+', "-").replace('/', "_")
}

pub fn search() -> Parameter {
    let about = "Words that the path of a project must contain.";
    query("q", about, json!({ "type": "string" }), json!("acme"))
}

pub fn index_of_file() -> Parameter {
    let about = "The path of the index that lists the file.";
    query("path", about, json!({ "type": "string" }), any_path().example)
}

pub fn address_of_file() -> Parameter {
    let example = "https://github.com/acme/app/releases/download/v1.0/app.tar.gz";
    query("url", "The address that the file came from.", json!({ "type": "string" }), json!(example))
}

pub fn prefix() -> Parameter {
    let Parameter { schema, example, .. } = any_path();
    query("prefix", "Only what happens at or below this path.", schema, example)
}

pub fn waiting_key() -> Parameter {
    let schema = json!({ "type": "string", "pattern": "^svc-pub:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]$" });
    query("key", "Only what waits for this public key.", schema, find_example("header.public_key"))
}

pub fn key() -> Parameter {
    let Parameter { schema, example, .. } = waiting_key();
    let about = "A public key in any accepted form, URL-encoded: a slash in it is `%2F`.";
    Parameter { name: "key", place: ParameterPlace::Path, about, schema, example }
}

pub fn sha256() -> Parameter {
    digest("sha256", "The SHA-256 digest of a file, in hexadecimal.", 64)
}

pub fn sha512() -> Parameter {
    digest("sha512", "The SHA-512 digest of a file, in hexadecimal.", 128)
}

fn digest(name: &'static str, about: &'static str, digits: usize) -> Parameter {
    let schema = json!({ "type": "string", "pattern": format!("^[0-9a-fA-F]{{{digits}}}$") });
    query(name, about, schema, json!("0b".repeat(digits / 2)))
}

pub fn project() -> Parameter {
    let Parameter { schema, example, .. } = any_path();
    query("project", "The identifier of a project, in any letter case.", schema, example)
}

pub fn tag() -> Parameter {
    let Parameter { schema, .. } = any_path();
    query("tag", "Only the release of this tag. Goes only with `project`.", schema, json!("v1"))
}

pub fn release_state() -> Parameter {
    let schema = json!({ "type": "string", "enum": ReleaseState::ALL.map(ReleaseState::name) });
    query("state", "Only releases in this state. Goes only with `project`.", schema, json!("complete"))
}

pub fn newest() -> Parameter {
    let about = "Only the newest release: the highest complete version that no one has begun to revoke. Goes only with \
                 `project`, and without `tag`, `state` and `after`.";
    query("newest", about, json!({ "type": "string", "enum": ["true"] }), json!("true"))
}

/// The release of a project by its tag, for the state of it.
pub fn tag_below() -> Parameter {
    let Parameter { schema, .. } = any_path();
    query(
        "tag",
        "The release of the project at the path that has this tag, or this directory.",
        schema,
        json!("v1"),
    )
}

/// The newest release of a project, for the state of it.
pub fn newest_below() -> Parameter {
    let about = "The newest release of the project at the path: the highest complete version that no one has begun to \
                 revoke. `skipped` lists the higher versions that were passed over. If the project has no such \
                 release, the answer is about the project. With `tag`, this parameter changes nothing.";
    query("newest", about, json!({ "type": "string", "enum": ["true"] }), json!("true"))
}

/// How much of a history the client has.
pub fn history_after() -> Parameter {
    let about = "Leave out the entries of the history up to that of the signers file with this digest, which you have. If \
                 the history has no such entry, it is whole.";
    let schema = json!({ "type": "string", "pattern": "^sha512:[0-9a-f]{128}$" });
    query("history_after", about, schema, json!(format!("sha512:{}", "0".repeat(128))))
}

/// How much of the log the client has seen.
pub fn log_size() -> Parameter {
    let about = "The size of the log that you have seen. `log.consistency` then proves that the staple is of the same log.";
    query("log_size", about, json!({ "type": "integer", "minimum": 0, "maximum": i64::MAX }), json!(7))
}

pub fn after() -> Parameter {
    let Parameter { schema, example, .. } = file_path();
    query("after", "Continue after this `index_path`, the last one of the answer before.", schema, example)
}

pub fn since_time() -> Parameter {
    let schema = json!({ "type": "string", "format": "date-time" });
    query("since", "Only signatures from this time or later.", schema, json!("2026-01-01T00:00:00Z"))
}

/// The newest commit that a follower has.
pub fn after_commit() -> Parameter {
    let schema = json!({ "type": "string", "pattern": "^[0-9a-fA-F]{40}$" });
    query("after", "Continue after this commit, the newest one that you have.", schema, json!(COMMIT))
}

pub fn wait_seconds() -> Parameter {
    let schema = json!({ "type": "integer", "minimum": 0, "maximum": JOURNAL_WAIT_SECONDS });
    query("wait", "How many seconds to wait for a commit if there is nothing new.", schema, json!(0))
}

pub fn project_name() -> Parameter {
    let Parameter { schema, .. } = any_path();
    query("name", "The last names of a project's identifier, in any letter case.", schema, json!("acme/app"))
}

pub fn event_types() -> Parameter {
    let names = EventKind::ALL.map(EventKind::name).join("|");
    let schema = json!({ "type": "string", "pattern": format!("^({names})(,({names}))*$") });
    query("type", "Only events of these types, separated by commas.", schema, json!("complete,revoked"))
}

pub fn last_event_id() -> Parameter {
    Parameter {
        name: "Last-Event-ID",
        place: ParameterPlace::Header,
        about: "Continue after this event. Browsers set it when they reconnect.",
        // Clients that have no id send an empty one.
        schema: json!({ "type": "string", "pattern": "^([0-9a-fA-F]{40})?$" }),
        example: json!(COMMIT),
    }
}

/// The same for clients that cannot set headers.
pub fn last_event_id_in_query() -> Parameter {
    let about = "The same as the header `Last-Event-ID`, for clients that cannot set it.";
    query("last_event_id", about, json!({ "type": "string", "pattern": "^[0-9a-fA-F]{40}$" }), json!(COMMIT))
}

fn query(name: &'static str, about: &'static str, schema: Value, example: Value) -> Parameter {
    Parameter { name, place: ParameterPlace::Query, about, schema, example }
}

pub fn if_none_match() -> Parameter {
    Parameter {
        name: "If-None-Match",
        place: ParameterPlace::Header,
        about: "The `ETag` of your copy. The answer is 304 if it is still current.",
        schema: json!({ "type": "string" }),
        example: json!(format!("\"{COMMIT}\"")),
    }
}
