//! Signatures in other formats, beside those on the index.

use std::collections::BTreeMap;

use countersign_core::values::other_format::OtherFormat;
use countersign_testing::format_text;
use serde_json::Value;

use super::{
    Held, Invariant,
    documents::{Key, Keys, Reader, read_key},
    steps::StepCheck,
};
use crate::{
    action::{Action, Offered},
    contents::{ContentId, Contents},
    facts::{ProjectFacts, ReleaseSlots},
    roles::{COLLECTING, FORMATS, INDEX, REVOKED},
};

type Texts = BTreeMap<Key, Value>;

/// Reads the texts by key; `None` if the file cannot be read.
fn read_texts(reader: &Reader, contents: &Contents, file: Option<ContentId>) -> Option<Texts> {
    let Some(file) = file else { return Some(Texts::new()) };
    let file = reader.value(contents, file)?;
    let entries = file.get("other_formats")?.as_object()?.iter();
    entries.map(|(name, texts)| Some((read_key(name)?, texts.clone()))).collect()
}

/// Checks at every state that only those who signed the index have signed in other formats.
pub fn check_state(reader: &Reader, contents: &Contents, release: &ReleaseSlots, signed: &Keys) -> Held {
    let texts = read_texts(reader, contents, release[FORMATS]);
    let is_signed = texts.is_some_and(|texts| texts.keys().all(|key| signed.contains(key)));
    Invariant::FormatsFollow.hold(is_signed, "other formats of a key that has not signed the index")
}

impl StepCheck<'_> {
    /// A signature brings its own texts. They go when what they sign, or its signatures, go. Nothing else touches them.
    pub(super) fn check_formats(&self, old: &ProjectFacts, new: &ProjectFacts) -> Held {
        let rule = Invariant::FormatsFollow;
        let is_rotation = old.active != new.active;
        for (n, (was, is)) in (0..).zip(old.releases.iter().zip(&new.releases)) {
            let expected = match self.action {
                Action::SignIndex { release, by, offered: Offered::InFormats, .. } if release == n => {
                    let Some(mut texts) = read_texts(self.reader, self.contents, was[FORMATS]) else {
                        return rule.broken("other formats cannot be read");
                    };
                    texts.insert(self.key(), self.texts(release, by, was[INDEX]));
                    let found = read_texts(self.reader, self.contents, is[FORMATS]);
                    rule.hold(found == Some(texts), "other formats are not those that were handed in")?;
                    continue;
                }
                Action::Assets { release, .. } | Action::Withdraw { release, .. } if release == n => None,
                _ if is_rotation && was[COLLECTING].is_some() => None,
                _ if is[REVOKED].is_some() => None,
                _ => was[FORMATS],
            };
            rule.hold(is[FORMATS] == expected, "other formats outlived what they sign, or were changed")?;
        }
        Ok(())
    }

    /// What this person makes of the index, in each format.
    fn texts(&self, release: u8, by: u8, index: Option<ContentId>) -> Value {
        let index = index.and_then(|id| self.reader.value(self.contents, id));
        let files = index.as_ref().and_then(|index| index.get("published_files")?.as_array());
        let line = |file: &Value| {
            let (digest, name) = (file["digests"]["sha256"].as_str(), file["file_name"].as_str());
            format!("{}  {}\n", digest.unwrap_or_default(), name.unwrap_or_default())
        };
        let sums: String = files.into_iter().flatten().map(line).collect();
        let plan = &self.world.projects[usize::from(self.action.project().unwrap_or_default())];
        let (path, secret) = (plan.index_path(release), &self.world.people[usize::from(by)].secret);
        let text = |(name, format)| {
            (String::from(name), Value::from(format_text(format, secret, path.as_str(), &sums)))
        };
        let formats = [("minisign", OtherFormat::Minisign), ("ssh", OtherFormat::Ssh)];
        Value::Object(formats.into_iter().map(text).collect())
    }
}
