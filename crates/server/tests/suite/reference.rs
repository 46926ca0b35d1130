//! Makes docs/api.md from the descriptions of the routes, and from what is written by hand around them. The table in
//! docs/configuration.md has every flag.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use clap::{Args as _, Command};
use countersign_api::error_code::ErrorCode;
use countersign_server::api::openapi::{
    Content, ContentSchema, DescribedAnswer, EndpointAccess, RequestPart, Row, Section, Type,
};
use countersign_server::{operate::config::GivenSettings, serve::table};
use serde_json::Value;

/// If this variable is set, the test writes the file before it compares it.
const WRITE: &str = "COUNTERSIGN_WRITE_DOCS";
/// The page, with a line `{{METHOD PATH}}` where an endpoint is described.
const TEMPLATE: &str = include_str!("../../src/api/openapi/api.md.in");
/// Every endpoint can answer these. The page describes them once.
const GENERAL: [u16; 6] = [304, 401, 408, 413, 429, 507];
/// Longer texts in examples, such as signatures, are cut.
const MAX_TEXT_CHARS: usize = 90;

#[test]
fn the_api_reference_is_what_the_descriptions_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    let expected = render(&table::all().rows);
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, &expected).expect("docs/api.md can be written");
    }
    let found = fs::read_to_string(&path).expect("docs/api.md is there");
    let command = format!("{WRITE}=1 cargo test -p countersign-server --test suite reference");
    assert!(found == expected, "docs/api.md is stale: {command}");
}

#[test]
fn every_flag_of_the_server_is_in_the_table_of_settings() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let page = fs::read_to_string(path).unwrap();
    let command = GivenSettings::augment_args(Command::new("serve"));
    let flags: Vec<_> = command.get_arguments().filter(|flag| flag.get_id() != "check").collect();
    assert_eq!(flags.len(), 13);
    for flag in flags {
        let name = format!("| `--{}", flag.get_long().expect("each has a long name"));
        let row = page.lines().find(|line| line.starts_with(&name)).unwrap_or_else(|| panic!("{name}"));
        // The variable of the database is read by hand, because it matters where a password came from.
        let variable = flag.get_env().map_or("COUNTERSIGN_DATABASE".into(), |name| name.to_string_lossy());
        assert!(row.contains(&format!("| `{variable}` |")), "{variable}: {row}");
    }
}

fn render(rows: &[Row]) -> String {
    let mut left: Vec<&Row> = rows.iter().filter(|row| row.endpoint.section != Section::Pages).collect();
    let (mut text, mut shown) = (String::new(), ShownTypes::default());
    for line in TEMPLATE.lines() {
        match line.strip_prefix("{{").and_then(|line| line.strip_suffix("}}")) {
            None => writeln!(text, "{line}").unwrap(),
            Some("routes") => text += &list_routes(rows),
            Some("codes") => text += &list_codes(),
            Some(name) => {
                let row = rows.iter().find(|row| name_of(row) == name);
                text += &shown.describe(row.unwrap_or_else(|| panic!("no route is named {name}")));
                left.retain(|row| name_of(row) != name);
            }
        }
    }
    let left: Vec<_> = left.into_iter().map(name_of).collect();
    assert_eq!(left, [""; 0], "crates/server/src/openapi/api.md.in has no place for these");
    text
}

fn name_of(row: &Row) -> String {
    format!("{} {}", row.method, row.path)
}

fn link(name: &str) -> String {
    let anchor = name.to_lowercase().replace(' ', "-");
    let anchor = anchor.replace(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'), "");
    format!("[`{name}`](#{anchor})")
}

fn list_routes(rows: &[Row]) -> String {
    let mut text = String::from("| route | what | signed |\n|---|---|---|\n");
    for name in TEMPLATE.lines().filter_map(|line| line.strip_prefix("{{")?.strip_suffix("}}")) {
        let Some(row) = rows.iter().find(|row| name_of(row) == name) else { continue };
        let signed = match row.endpoint.access {
            EndpointAccess::Signed => "yes",
            EndpointAccess::Optional => "can be",
            EndpointAccess::Open => "",
        };
        writeln!(text, "| {} | {} | {signed} |", link(name), row.endpoint.summary).unwrap();
    }
    text
}

fn list_codes() -> String {
    let mut text = String::from("| code | status | meaning |\n|---|---|---|\n");
    for code in ErrorCode::ALL {
        writeln!(text, "| `{}` | {} | {} |", code.name(), code.status(), code.meaning()).unwrap();
    }
    text
}

/// The types whose fields the page has listed, each with the route where, and the examples there.
#[derive(Default)]
struct ShownTypes(BTreeMap<String, (String, Vec<Value>)>);

impl ShownTypes {
    fn describe(&mut self, row: &Row) -> String {
        let endpoint = &row.endpoint;
        let access = match endpoint.access {
            EndpointAccess::Open => "Public.",
            EndpointAccess::Optional => "The [authentication headers](#authentication) are optional.",
            EndpointAccess::Signed => "Needs [authentication](#authentication).",
        };
        let mut text = format!("### {}\n\n{}. {access}\n", name_of(row), endpoint.summary);
        for paragraph in endpoint.about.split("\n\n") {
            write!(text, "\n{}\n", fill(paragraph)).unwrap();
        }
        if !endpoint.parameters.is_empty() {
            text += "\n| parameter | in | what |\n|---|---|---|\n";
        }
        for parameter in &endpoint.parameters {
            let part = match parameter.part {
                RequestPart::Path => "path",
                RequestPart::Query => "query",
                RequestPart::Header => "header",
            };
            writeln!(text, "| `{}` | {part} | {} |", parameter.name, parameter.about).unwrap();
        }
        if let Some(body) = &endpoint.body {
            text += "\nThe body:\n";
            text += &self.describe_content(row, body);
        }
        for answer in endpoint.answers.iter().filter(|answer| answer.status < 300) {
            text += &self.describe_success(row, answer);
        }
        let refusals: Vec<_> =
            endpoint.answers.iter().filter(|answer| answer.status >= 300 && !is_general(answer)).collect();
        if !refusals.is_empty() {
            text += "\n| status | when |\n|---|---|\n";
        }
        for answer in refusals {
            writeln!(text, "| {} | {} |", answer.status, answer.about).unwrap();
        }
        text
    }

    fn describe_success(&mut self, row: &Row, answer: &DescribedAnswer) -> String {
        let kinds: Vec<_> =
            answer.contents.iter().map(|content| format!("`{}`", content.media_type)).collect();
        // Every answer has the first.
        let headers: Vec<_> =
            answer.headers.iter().skip(1).map(|header| format!("`{}`", header.name)).collect();
        let headers =
            if headers.is_empty() { String::new() } else { format!(", with {}", headers.join(", ")) };
        let contents: String =
            answer.contents.iter().map(|content| self.describe_content(row, content)).collect();
        let end = if contents.is_empty() { "." } else { ":" };
        let about = format!("{}, {}{headers}: {}{end}", answer.status, kinds.join(" or "), answer.about);
        format!("\n{}\n{contents}", fill(&about))
    }

    fn describe_content(&mut self, row: &Row, content: &Content) -> String {
        let ContentSchema::Type(of) = content.schema else { return list_examples(content) };
        let examples: Vec<_> = content.examples.iter().map(|(_, example)| example.clone()).collect();
        match self.0.get(of.name().as_ref()) {
            Some((shown, _)) if *shown == name_of(row) => list_examples(content),
            // Another name for the same route.
            Some((shown, same)) if *same == examples => format!("\n{} shows it.\n", link(shown)),
            Some((shown, _)) => format!("{}\n{} has the fields.\n", list_examples(content), link(shown)),
            None => {
                self.0.insert(of.name().into_owned(), (name_of(row), examples));
                list_examples(content) + &list_fields(of)
            }
        }
    }
}

fn list_examples(content: &Content) -> String {
    let mut text = String::new();
    for (_, example) in &content.examples {
        match example {
            Value::String(plain) => write!(text, "\n```text\n{}\n```\n", plain.trim_end()),
            other => write!(text, "\n```json\n{}\n```\n", lay_out(&shorten(other), 0)),
        }
        .unwrap();
    }
    text
}

fn list_fields(of: Type) -> String {
    let mut text = String::from("\n| field | type | what |\n|---|---|---|\n");
    // The example shows a field that is always there and needs no words.
    for field in of.fields().iter().filter(|field| !field.is_required || !field.about.is_empty()) {
        let optional = if field.is_required { "" } else { ", optional" };
        let about = field.about.replace('\n', " ").replace('|', "\\|");
        writeln!(text, "| `{}` | {}{optional} | {about} |", field.name, field.kind).unwrap();
    }
    text
}

fn is_general(answer: &DescribedAnswer) -> bool {
    GENERAL.contains(&answer.status)
        || answer.about == "the server failed; the message never names a path on its disk"
        || answer.about == "too many requests wait; try again"
}

/// What fits on a line stands on one.
fn lay_out(value: &Value, depth: usize) -> String {
    let flat = format!("{value:#}").lines().map(str::trim).collect::<Vec<_>>().join(" ");
    if flat.chars().count() + 2 * depth <= 100 {
        return flat;
    }
    let parts: Vec<String> = match value {
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{name:?}: {}", lay_out(value, depth + 1));
            fields.iter().map(field).collect()
        }
        Value::Array(items) => items.iter().map(|item| lay_out(item, depth + 1)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return flat,
    };
    let (open, close) = if value.is_object() { ("{", "}") } else { ("[", "]") };
    let (inner, outer) = ("  ".repeat(depth + 1), "  ".repeat(depth));
    format!("{open}\n{inner}{}\n{outer}{close}", parts.join(&format!(",\n{inner}")))
}

fn shorten(value: &Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > MAX_TEXT_CHARS => {
            Value::String(format!("{}…", text.chars().take(MAX_TEXT_CHARS - 30).collect::<String>()))
        }
        Value::Array(items) => items.iter().map(shorten).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shorten(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Breaks lines as the rest of the page has them.
fn fill(paragraph: &str) -> String {
    let mut lines = vec![String::new()];
    for word in paragraph.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= 120 {
            *line = format!("{line} {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}
