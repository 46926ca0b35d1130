//! Generates withdrawals and objections, mostly valid ones.

use countersign_core::values::{digest::Sha512, time::Timestamp};
use serde_json::{Map, Value, json};

use super::{
    choices::Choices,
    people::{PEOPLE, Person, signature},
    request::{MINUTE, SECOND},
    spec::{ModelIndex, ModelIndexState, Objecting, Spec, Withdrawing},
};

/// A directory with an index, mostly one that collects signatures.
pub(crate) fn choose_index(choices: &mut Choices<'_>, spec: &Spec) -> Option<String> {
    let is_open = |(_, index): &(&String, &ModelIndex)| index.state == ModelIndexState::Collecting;
    let mut dirs: Vec<&String> = spec.indexes.iter().filter(is_open).map(|(dir, _)| dir).collect();
    if dirs.is_empty() || choices.one_in(4) {
        dirs = spec.indexes.keys().collect();
    }
    if dirs.is_empty() { None } else { Some(choices.of(&dirs).clone()) }
}

fn index_at<'a>(spec: &'a Spec, path: &str) -> Option<&'a ModelIndex> {
    path.strip_suffix("/svc.index.json").and_then(|dir| spec.indexes.get(dir))
}

fn choose_subject(choices: &mut Choices<'_>, index: Option<&ModelIndex>) -> String {
    let right = Sha512::of(index.map_or("", |index| &index.text).as_bytes()).to_prefixed();
    if choices.one_in(8) { Sha512::of(b"another file").to_prefixed() } else { right }
}

/// Makes a withdrawal with its body.
pub(crate) fn withdraw(choices: &mut Choices<'_>, spec: &Spec, path: &str) -> (Withdrawing, Value) {
    let index = index_at(spec, path);
    let registrant = index.map(|index| index.registrant);
    let caller = registrant.filter(|_| !choices.one_in(3)).unwrap_or_else(|| choices.below(PEOPLE));
    let subject = choose_subject(choices, index);
    let subject = (!choices.one_in(3)).then_some(subject);
    let fault = choices.byte();
    let reason = if fault >= 250 { "" } else { "the wrong \"tag\"" };
    let mut body = json!({ "file_path": path, "reason": reason, "more": 1 });
    if let Some(subject) = &subject {
        body["subject_digest"] = json!(subject);
    }
    if fault == 249 {
        body["subject_digest"] = json!("sha512:");
    }
    let request = String::new();
    (Withdrawing { path: path.to_owned(), caller, subject, is_valid: fault < 249, request }, body)
}

pub(crate) fn object(choices: &mut Choices<'_>, spec: &Spec, path: &str, objector: Person) -> Objecting {
    let index = index_at(spec, path);
    let earlier = index.and_then(|index| index.objections.get(&objector));
    let takes_back = match earlier {
        Some(earlier) if earlier.text.is_some() => choices.one_in(2),
        Some(_) | None => choices.one_in(6),
    };
    let text = (!takes_back).then(|| choices.of(&["not my build", "<b>\"no\"\u{202e}", "é"]).to_owned());
    let offsets = [0, SECOND, -SECOND, -MINUTE, 10 * MINUTE, 10 * MINUTE + SECOND];
    let timestamp = spec.now + choices.of(&offsets);
    let subject = choose_subject(choices, index);
    let mut document = Map::new();
    document.insert("objection".to_owned(), json!(text));
    document.insert("subject_digest".to_owned(), json!(subject));
    let time = Timestamp::from_unix_nanos(timestamp).expect("a time");
    document.insert("timestamp".to_owned(), json!(time.to_string()));
    let fault = choices.byte();
    match fault {
        0..=239 => {}
        240..=247 => drop(document.insert("objection".to_owned(), json!(""))),
        248..=251 => drop(document.insert("note".to_owned(), json!(1))),
        252..=255 => drop(document.remove("subject_digest")),
    }
    let document = Value::Object(document).to_string();
    let signs = if choices.one_in(12) { (objector + 1) % PEOPLE } else { objector };
    Objecting {
        path: path.to_owned(),
        objector,
        signature: signature(signs, document.as_bytes()),
        document,
        is_document_valid: fault < 240,
        text,
        subject,
        timestamp,
    }
}
