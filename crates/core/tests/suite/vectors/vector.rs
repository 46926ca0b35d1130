//! One file of the vectors: what it says, and what must come out.

use countersign_core::proof::{bundle::Bundle, verify::Evidence};
use countersign_testing::{PROJECT, evidence::Past, evidence::noon};

/// One file, and the kind of failure that it must give: not any failure will do.
#[derive(Debug, Clone)]
pub(super) struct Vector {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) expect: Expect,
    pub(super) project: String,
    /// As it stands in the file, a JSON object.
    pub(super) document: String,
}

#[derive(Debug, Clone)]
pub(super) enum Expect {
    Verified,
    Revoked,
    Refused {
        /// For people.
        reason: &'static str,
        /// As the verdict has it.
        kind: &'static str,
    },
}

impl Expect {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Revoked => "revoked",
            Self::Refused { .. } => "refused",
        }
    }

    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Verified => "every rule is kept",
            Self::Revoked => "every rule is kept, and those who may have withdrawn the release",
            Self::Refused { reason, .. } => reason,
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Revoked => "revoked",
            Self::Refused { kind, .. } => kind,
        }
    }
}

pub(super) fn refused(kind: &'static str, reason: &'static str) -> Expect {
    Expect::Refused { reason, kind }
}

/// A bundle of this evidence.
pub(super) fn bundle(
    name: &'static str,
    description: &'static str,
    expect: Expect,
    evidence: impl Into<Evidence>,
) -> Vector {
    let bundle = Bundle { bundled_at: noon(), evidence: evidence.into(), staple: None };
    let document = String::from_utf8(bundle.write()).expect("our documents are text");
    Vector { name, description, expect, project: PROJECT.to_owned(), document }
}

/// The chain of this past.
pub(super) fn chain(name: &'static str, description: &'static str, expect: Expect, past: Past) -> Vector {
    let document = String::from_utf8(past.history.write()).expect("our documents are text");
    Vector { name, description, expect, project: PROJECT.to_owned(), document }
}

impl Vector {
    pub(super) fn of_project(self, project: &str) -> Self {
        Self { project: project.to_owned(), ..self }
    }

    /// Another document, for what our types cannot express.
    pub(super) fn edited(self, edit: impl FnOnce(String) -> String) -> Self {
        let before = self.document.clone();
        let document = edit(self.document);
        assert_ne!(document, before, "{} is edited", self.name);
        Self { document, ..self }
    }

    pub(super) fn text(&self, field: &str) -> String {
        let quoted = |text: &str| serde_json::to_string(text).expect("JSON");
        // Line breaks inside strings are escaped, so that indenting the lines changes no value.
        let document = self.document.trim_end().replace('\n', "\n  ");
        format!(
            "{{\n  \"description\": {},\n  \"expect\": {},\n  \"rule\": {},\n  \"reason\": {},\n  \"project\": {},\n  \"{field}\": {document}\n}}\n",
            quoted(self.description),
            quoted(self.expect.word()),
            quoted(self.expect.kind()),
            quoted(self.expect.reason()),
            quoted(&self.project),
        )
    }
}
