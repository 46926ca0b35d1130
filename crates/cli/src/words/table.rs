//! Columns and names of signers, for people.

use std::fmt;

use countersign_core::values::{key::PublicKey, time::Timestamp, wire::PUBLIC_KEY_PREFIX};
use countersign_explain::{progress::Names, words::shown_signer};

/// Rows under headings, each column as wide as its widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: Vec<&str>) -> Self {
        Self { rows: vec![headings.into_iter().map(str::to_owned).collect()] }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|column| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max())
            .map(Option::unwrap_or_default)
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, most) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(most - width(cell) + 2));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Shows every key in a text by its first and last characters (D54).
pub(super) fn shorten_keys(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(PUBLIC_KEY_PREFIX) {
        let (before, found) = rest.split_at(at);
        let is_code = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
        let code = &found[PUBLIC_KEY_PREFIX.len()..];
        let end = PUBLIC_KEY_PREFIX.len() + code.find(|c| !is_code(c)).unwrap_or(code.len());
        let (word, behind) = found.split_at(end);
        shown.push_str(before);
        shown.push_str(&PublicKey::parse(word).map_or(word.to_owned(), |key| key.short()));
        rest = behind;
    }
    shown + rest
}

/// What is seen of a cell: colours take no room.
fn width(cell: &str) -> usize {
    let (mut width, mut in_colour) = (0, false);
    for c in cell.chars() {
        match c {
            '\u{1b}' => in_colour = true,
            'm' if in_colour => in_colour = false,
            _ if in_colour => {}
            _ => width += 1,
        }
    }
    width
}

/// How long ago it was, as `seconds_text` says it.
pub(crate) fn age_text(since: Timestamp, now: Timestamp) -> String {
    seconds_text(u64::try_from(now.unix_seconds() - since.unix_seconds()).unwrap_or_default())
}

/// So many seconds, in the one unit that says it best.
pub(crate) fn seconds_text(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The most characters of a line in a narrow window.
const NARROW: usize = 60;
const INDENT: usize = 14;

/// Lists things behind a title, on as many lines as they need.
pub(crate) fn listed_lines(title: &str, listed: &[String]) -> Vec<String> {
    let mut lines = vec![format!("  {title:<11} ")];
    for (i, text) in listed.iter().enumerate() {
        let text = if i + 1 < listed.len() { format!("{text}, ") } else { text.clone() };
        match lines.last_mut() {
            Some(line) if width(line) <= INDENT || width(line) + width(text.trim_end()) <= NARROW => {
                line.push_str(&text);
            }
            Some(_) | None => lines.push(format!("{:INDENT$}{text}", "")),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

// Signers in the words of this client: names first, in the order of the signers file, and the user marked.

/// The names of signers, and which of them the user is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct People<'a> {
    pub(crate) names: &'a Names,
    pub(crate) you: Option<PublicKey>,
}

impl People<'_> {
    pub(crate) fn name(&self, key: PublicKey) -> String {
        let you = if self.you == Some(key) { " (you)" } else { "" };
        format!("{}{you}", shown_signer(&self.names.signer(key)))
    }

    pub(crate) fn list(&self, keys: impl IntoIterator<Item = PublicKey>) -> String {
        let signers = self.names.in_order(keys).into_iter();
        signers.map(|signer| self.name(signer.key)).collect::<Vec<_>>().join(", ")
    }

    /// Lists the names of keys, or says `none` if there are no keys.
    pub(crate) fn list_or(&self, keys: impl IntoIterator<Item = PublicKey>, none: &str) -> String {
        let listed = self.list(keys);
        if listed.is_empty() { none.to_owned() } else { listed }
    }
}

/// The time in words, as in `2026-02-01 10:00:00 UTC`.
pub(crate) fn when_text(at: Timestamp) -> String {
    let exact = at.to_whole_seconds().to_string();
    exact.replacen('T', " ", 1).replacen('Z', " UTC", 1)
}
