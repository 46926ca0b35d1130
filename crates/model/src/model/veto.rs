//! Generates vetoes, mostly valid ones.

use serde_json::{Map, json};

use super::{
    choices::Choices,
    people::{PEOPLE, Person, signature},
    spec::{Spec, Vetoing},
};

pub(crate) fn make(choices: &mut Choices<'_>, spec: &Spec, id: &str, path: &str, master: Person) -> Vetoing {
    let mut names = spec.veto_names(id);
    let begun = spec.projects.get(id).and_then(|project| project.pending.as_ref()?.veto.as_ref());
    let fault = choices.byte();
    match fault {
        232..=235 => names[0] += "x",
        236..=239 => names[1] = names[2].clone(),
        240..=243 => names[2] = names[1].clone(),
        0..=231 | 244..=255 => {}
    }
    let mut document = Map::new();
    let reason = choices.of(&["not by us", "not \"by\" us", "not by us", "not by us"]);
    document.insert("veto".to_owned(), json!(if fault == 244 { "" } else { reason }));
    document.insert("project_id".to_owned(), json!(names[0]));
    document.insert("signers_file_digest".to_owned(), json!(names[1]));
    document.insert("previous".to_owned(), json!(names[2]));
    document.insert("timestamp".to_owned(), json!("2026-01-31T10:00:00Z"));
    match fault {
        245 => drop(document.remove("previous")),
        246 => drop(document.insert("reason".to_owned(), json!("x"))),
        0..=244 | 247..=255 => {}
    }
    let is_document_valid = !matches!(fault, 244..=246);
    let text = json!(document).to_string();
    // Who joins signs the same bytes.
    let joins = fault < 200 && begun.is_some();
    let document = begun.filter(|_| joins).map_or(text, |begun| begun.document.clone());
    let signs = if fault == 247 { (master + 1) % PEOPLE } else { master };
    Vetoing {
        path: path.to_owned(),
        master,
        signature: signature(signs, document.as_bytes()),
        document,
        is_document_valid,
        names,
    }
}
