//! Generates revocations, mostly valid ones.

use countersign_core::values::digest::Sha512;
use serde_json::{Map, Value, json};

use super::{
    choices::Choices,
    people::{Person, canonical, signature},
    spec::{ModelIndex, ModelIndexState, Revoking, Spec},
};

/// A revocation document, and its meaning.
#[derive(Debug, Clone)]
struct Document {
    text: String,
    is_valid: bool,
    subject: Option<String>,
    initiator: Option<Person>,
}

/// An index to revoke, mostly a complete one.
pub(crate) fn choose_index(choices: &mut Choices<'_>, spec: &Spec) -> Option<String> {
    let is_complete = |(_, index): &(&String, &ModelIndex)| index.state == ModelIndexState::Complete;
    let mut dirs: Vec<&String> = spec.indexes.iter().filter(is_complete).map(|(dir, _)| dir).collect();
    if dirs.is_empty() || choices.one_in(8) {
        dirs = spec.indexes.keys().collect();
    }
    if dirs.is_empty() { None } else { Some(choices.of(&dirs).clone()) }
}

pub(crate) fn make(
    choices: &mut Choices<'_>,
    spec: &Spec,
    path: &str,
    revoker: Person,
    caller: Person,
) -> Revoking {
    let index = path.strip_suffix("/svc.index.json").and_then(|dir| spec.indexes.get(dir));
    let pending = index.and_then(|index| index.revocation.as_ref()).map(|pending| pending.document.clone());
    let document = match pending.filter(|_| !choices.one_in(5)) {
        Some(text) => read(&text),
        None => choose_document(choices, index, revoker),
    };
    let signs =
        choices.of(&[revoker, revoker, revoker, revoker, revoker, revoker, revoker, (revoker + 1) % 5]);
    Revoking {
        path: path.to_owned(),
        revoker,
        caller,
        signature: signature(signs, document.text.as_bytes()),
        document: document.text,
        is_document_valid: document.is_valid,
        subject: document.subject,
        initiator: document.initiator,
        request: String::new(),
    }
}

/// Parses a pending document, which is valid.
fn read(text: &str) -> Document {
    let value: Value = serde_json::from_str(text).expect("a pending document is JSON");
    let field = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let initiator = field("initiator");
    Document {
        text: text.to_owned(),
        is_valid: true,
        subject: field("subject_digest"),
        initiator: initiator
            .and_then(|key| (0..super::people::PEOPLE).find(|person| canonical(*person) == key)),
    }
}

fn choose_document(choices: &mut Choices<'_>, index: Option<&ModelIndex>, revoker: Person) -> Document {
    let right = Sha512::of(index.map_or("", |index| &index.text).as_bytes()).to_prefixed();
    let subject = match choices.byte() {
        0..=159 => Some(right),
        160..=239 => None,
        240..=255 => Some(Sha512::of(b"another file").to_prefixed()),
    };
    let initiator = choices.of(&[None, None, None, Some(revoker), Some((revoker + 1) % 5)]);
    let mut document = Map::new();
    document.insert("reason".to_owned(), json!(choices.of(&["a bad build", "withdrawn \"by us\""])));
    document
        .insert("timestamp".to_owned(), choices.of(&[json!("2026-01-31T10:00:00Z"), json!(1_769_853_600)]));
    if let Some(subject) = &subject {
        document.insert("subject_digest".to_owned(), json!(subject));
    }
    if let Some(initiator) = initiator {
        document.insert("initiator".to_owned(), json!(canonical(initiator)));
    }
    let fault = choices.byte();
    match fault {
        0..=239 => {}
        240..=247 => drop(document.insert("reason".to_owned(), json!(""))),
        248..=251 => drop(document.insert("note".to_owned(), json!(1))),
        252..=255 => drop(document.remove("timestamp")),
    }
    Document { text: Value::Object(document).to_string(), is_valid: fault < 240, subject, initiator }
}
