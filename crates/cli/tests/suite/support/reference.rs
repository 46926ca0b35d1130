//! Whether an answer is one that the server's own reference describes: its status, type, headers and body.

use std::sync::LazyLock;

use countersign_core::values::time::Timestamp;
use countersign_server::api::openapi::{DescribedAnswer, Reference, Row};
use countersign_server::serve::table;
use serde_json::Value;

use super::http::{Reply, Request};

static REFERENCE: LazyLock<Reference> = LazyLock::new(|| Reference::of(table::all().rows));
static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_slice(&REFERENCE.bytes).expect("the document is JSON"));

/// What the reference says of each route.
pub(crate) fn rows() -> &'static [Row] {
    &REFERENCE.rows
}

/// The whole document.
pub(crate) fn document() -> &'static Value {
    &DOCUMENT
}

/// Fails where the server answered what its reference does not say. Unknown routes and methods are none of it.
#[track_caller]
pub(crate) fn check_reply(request: &Request, reply: &Reply) {
    let Ok(target) = std::str::from_utf8(&request.target) else { return };
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let Some(row) = find_row(request.method, path) else { return };
    let asked = format!("{} {}", request.method, row.path);
    // Without an id, it was refused before anything of ours saw it.
    let Some(_) = reply.header("x-request-id") else { return };
    let answer = row.endpoint.answers.iter().find(|answer| answer.status == reply.status);
    let answer = answer.unwrap_or_else(|| panic!("{asked}: {} is not described", reply.status));
    for header in &answer.headers {
        assert!(reply.header(header.name).is_some(), "{asked}: {} without {}", reply.status, header.name);
    }
    if request.method != "HEAD" && reply.status != 304 {
        check_content(&asked, row, answer, reply);
    }
}

fn find_row(method: &str, path: &str) -> Option<&'static Row> {
    let method = if method == "HEAD" { "GET" } else { method };
    let matches = |row: &&Row| match row.path.strip_suffix("{path}") {
        Some(dir) => path.starts_with(dir),
        None => {
            let (own, given) = (row.path.split('/'), path.split('/'));
            let is_same = |(own, given): (&str, &str)| own == given || own.starts_with('{');
            own.clone().count() == given.clone().count() && own.zip(given).all(is_same)
        }
    };
    rows().iter().filter(|row| row.method == method).find(matches)
}

fn check_content(asked: &str, row: &Row, answer: &DescribedAnswer, reply: &Reply) {
    let asked = format!("{asked}: {}", reply.status);
    let given = reply.header("content-type").map(|kind| kind.split(';').next().unwrap_or_default().trim());
    let described: Vec<_> = answer.contents.iter().map(|content| content.media_type).collect();
    let Some(given) = given else {
        assert_eq!(described, [""; 0], "{asked}: no content");
        return;
    };
    assert!(described.contains(&given), "{asked}: {given} is not in {described:?}");
    let method = &*row.method.to_ascii_lowercase();
    if given == "application/json" {
        let status = reply.status.to_string();
        let place = ["paths", &row.path, method, "responses", &status, "content", given, "schema"];
        let schema = place.iter().fold(document(), |value, name| &value[*name]);
        let body = serde_json::from_slice(&reply.body).expect("a JSON body");
        check_instance(schema, &body).unwrap_or_else(|error| panic!("{asked}: {error}: {body}"));
    }
}

/// Whether a value is what a schema describes. Knows the keywords that our schemas have, and no other.
pub(crate) fn check_instance(schema: &Value, value: &Value) -> Result<(), String> {
    let schema = resolve(schema);
    for (keyword, rule) in schema.as_object().ok_or("no schema")? {
        let is_kept = match keyword.as_str() {
            "description" | "examples" | "propertyNames" => true,
            "type" => match rule {
                Value::Array(kinds) => kinds.iter().any(|kind| is_of_kind(value, kind)),
                kind => is_of_kind(value, kind),
            },
            "enum" => rule.as_array().is_some_and(|values| values.contains(value)),
            "oneOf" => {
                let cases = rule.as_array().ok_or("no cases")?;
                cases.iter().filter(|case| check_instance(case, value).is_ok()).count() == 1
            }
            "required" => {
                let names = rule.as_array().ok_or("no names")?;
                names.iter().all(|name| value.get(name.as_str().unwrap_or_default()).is_some())
            }
            "properties" => {
                for (name, property) in rule.as_object().ok_or("no properties")? {
                    let held = value.get(name).map_or(Ok(()), |held| check_instance(property, held));
                    held.map_err(|error| format!("{name}: {error}"))?;
                }
                true
            }
            "additionalProperties" => {
                value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .try_for_each(|(_, held)| check_instance(rule, held))?;
                true
            }
            "items" => {
                value.as_array().into_iter().flatten().try_for_each(|held| check_instance(rule, held))?;
                true
            }
            "format" => match rule.as_str() {
                Some("date-time") => value.as_str().is_some_and(|text| Timestamp::parse(text).is_ok()),
                Some("uri") => value.as_str().is_some_and(|text| url::Url::parse(text).is_ok()),
                Some("int64") => value.is_i64(),
                other => return Err(format!("unknown format {other:?}")),
            },
            "minItems" => {
                value.as_array().is_some_and(|held| held.len() as u64 >= rule.as_u64().unwrap_or(0))
            }
            "minimum" => value.as_u64() >= rule.as_u64(),
            "maximum" => value.as_u64() <= rule.as_u64(),
            "minLength" => value.as_str().map(|text| text.chars().count() as u64) >= rule.as_u64(),
            "maxLength" => value.as_str().map(|text| text.chars().count() as u64) <= rule.as_u64(),
            other => return Err(format!("unknown keyword {other}")),
        };
        if !is_kept {
            return Err(format!("{keyword} is {rule}"));
        }
    }
    Ok(())
}

fn resolve(schema: &Value) -> &Value {
    let name = schema["$ref"].as_str().and_then(|place| place.strip_prefix("#/components/schemas/"));
    let Some(name) = name else { return schema };
    let target = &document()["components"]["schemas"][name];
    assert!(target.is_object(), "no schema is named {name}");
    target
}

fn is_of_kind(value: &Value, kind: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("null") => value.is_null(),
        other => panic!("unknown type {other:?}"),
    }
}
