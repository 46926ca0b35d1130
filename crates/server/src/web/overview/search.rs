//! Finds a project by words, as people type or paste them.

use countersign_core::rules::place::path_of_url;

/// Words that must all occur in a project's identifier, in any letter case.
#[derive(Debug, Clone, Default)]
pub struct Search {
    words: Vec<Word>,
}

#[derive(Debug, Clone)]
enum Word {
    Part(String),
    /// A URL, as the path that it has on this server.
    Place(String),
}

impl Search {
    pub fn parse(text: &str) -> Self {
        let words = text.split_whitespace().map(|word| match path_of_url(word) {
            Some(path) => Word::Place(path.as_str().to_ascii_lowercase()),
            None => Word::Part(word.to_ascii_lowercase()),
        });
        Self { words: words.collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether a project matches, by its identifier in lower case.
    pub fn matches(&self, folded: &str) -> bool {
        self.words.iter().all(|word| match word {
            Word::Part(part) => folded.contains(part.as_str()) || contains_across_port(folded, part),
            // The project itself, something in it, or a directory above it.
            Word::Place(place) => is_at_or_below(place, folded) || is_at_or_below(folded, place),
        })
    }
}

fn is_at_or_below(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the identifier contains what people write without the port, as in `example.org/acme`.
fn contains_across_port(folded: &str, part: &str) -> bool {
    let Some((host, rest)) = part.split_once('/') else { return false };
    let mut segments = folded.splitn(4, '/');
    let (Some(_), Some(own), Some(_), Some(below)) =
        (segments.next(), segments.next(), segments.next(), segments.next())
    else {
        return false;
    };
    own.ends_with(host) && below.starts_with(rest)
}
