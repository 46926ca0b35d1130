//! A vector of a bundle or a chain: the name of its file, and the document in it.

use countersign_core::proof::{bundle::Bundle, verify::Evidence};
use countersign_testing::{evidence::Past, evidence::noon};
use serde_json::Value;

/// The document in the file of this name.
#[derive(Debug, Clone)]
pub(super) struct Vector {
    pub(super) name: &'static str,
    /// The document as it stands in the file, a JSON object.
    pub(super) document: String,
}

/// A bundle of this evidence.
pub(super) fn bundle(name: &'static str, evidence: Evidence) -> Vector {
    let bundle = Bundle { bundled_at: noon(), evidence, staple: None };
    Vector { name, document: String::from_utf8(bundle.write()).expect("our documents are text") }
}

/// The chain of this past.
pub(super) fn chain(name: &'static str, past: Past) -> Vector {
    Vector { name, document: String::from_utf8(past.history.write()).expect("our documents are text") }
}

impl Vector {
    /// Another document, for what our types cannot express.
    pub(super) fn edited(self, edit: impl FnOnce(String) -> String) -> Self {
        let before = self.document.clone();
        let document = edit(self.document);
        assert_ne!(document, before, "{} is edited", self.name);
        Self { document, ..self }
    }

    /// The file with this document in its place.
    pub(super) fn text(&self, field: &str, file: &Value) -> String {
        // Line breaks inside strings are escaped, so that indenting the lines changes no value.
        let document = self.document.trim_end().replace('\n', "\n  ");
        let words = ["description", "expect", "rule", "reason", "project"];
        let words: String = words.iter().map(|word| format!("  \"{word}\": {},\n", file[word])).collect();
        format!("{{\n{words}  \"{field}\": {document}\n}}\n")
    }
}
