//! The part of YAML that our files use: maps, lists, plain and quoted scalars, blocks and comments. Anything else is a
//! mistake.

use serde_json::{Map, Value};

struct Line<'a> {
    indent: usize,
    text: &'a str,
}

/// The documents of a file, with `---` between them.
pub(crate) fn read_all(text: &str) -> Vec<Value> {
    text.split("\n---\n").map(read).collect()
}

pub(crate) fn read(text: &str) -> Value {
    let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let measure = |line: &'_ str| line.len() - line.trim_start().len();
    let lines: Vec<Line<'_>> = text
        .lines()
        .filter(is_content)
        .map(|line| Line { indent: measure(line), text: line.trim() })
        .collect();
    let mut at = 0;
    let value = read_node(&lines, &mut at, 0);
    assert_eq!(at, lines.len(), "all of the file is read, up to `{}`", lines[at.min(lines.len() - 1)].text);
    value
}

fn read_node(lines: &[Line<'_>], at: &mut usize, indent: usize) -> Value {
    if lines[*at].text.starts_with("- ") {
        let mut items = Vec::new();
        while *at < lines.len() && lines[*at].indent == indent && lines[*at].text.starts_with("- ") {
            items.push(read_item(lines, at, indent));
        }
        return Value::Array(items);
    }
    let mut members = Map::new();
    while *at < lines.len() && lines[*at].indent == indent && !lines[*at].text.starts_with("- ") {
        let text = lines[*at].text;
        read_member(lines, at, indent, text, &mut members);
    }
    Value::Object(members)
}

/// A scalar, or a map whose first member stands behind the dash.
fn read_item(lines: &[Line<'_>], at: &mut usize, indent: usize) -> Value {
    let text = &lines[*at].text[2..];
    if text == "|" {
        *at += 1;
        return read_block(lines, at, indent);
    }
    if split_member(text).is_none() {
        *at += 1;
        return scalar(text);
    }
    let mut members = Map::new();
    read_member(lines, at, indent + 2, text, &mut members);
    while *at < lines.len() && lines[*at].indent == indent + 2 {
        let text = lines[*at].text;
        read_member(lines, at, indent + 2, text, &mut members);
    }
    Value::Object(members)
}

fn read_member(lines: &[Line<'_>], at: &mut usize, indent: usize, text: &str, into: &mut Map<String, Value>) {
    let (name, rest) = split_member(text).unwrap_or_else(|| panic!("no member: {text}"));
    *at += 1;
    let value = match rest {
        "" => read_node(lines, at, lines[*at].indent),
        "|" => read_block(lines, at, indent),
        "[]" => Value::Array(Vec::new()),
        rest => scalar(rest),
    };
    assert!(into.insert(name.to_owned(), value).is_none(), "`{name}` is there twice");
}

/// Lines that are deeper than `indent`, as they are.
fn read_block(lines: &[Line<'_>], at: &mut usize, indent: usize) -> Value {
    let mut block = String::new();
    let begin = lines[*at].indent;
    while *at < lines.len() && lines[*at].indent > indent {
        block += &format!("{}{}\n", " ".repeat(lines[*at].indent - begin), lines[*at].text);
        *at += 1;
    }
    Value::from(block)
}

fn split_member(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once(':')?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    (is_name && (rest.is_empty() || rest.starts_with(' '))).then(|| (name, rest.trim()))
}

fn scalar(text: &str) -> Value {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match inner {
        Some(inner) => {
            assert!(!inner.contains(['"', '\\']), "no escapes: {text}");
            Value::from(inner)
        }
        None => {
            let is_plain = !text.starts_with(['[', '{', '&', '*', '!', '>', '\'', '"', '%', '@', '`']);
            let text = text.split_once(" #").map_or(text, |(value, _comment)| value.trim_end());
            assert!(is_plain && !text.contains(": "), "a plain scalar: {text}");
            Value::from(text)
        }
    }
}
