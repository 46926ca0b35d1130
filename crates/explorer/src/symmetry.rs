//! What tells states apart: a hash of 128 bits over all files. Where people of a world can stand for each other, states
//! that differ only in who of them did what have one hash: the least over all ways to rename them.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::contents::{ContentId, Contents, PartId, PathId, State, hash_texts};
use crate::{action::Action, action::Document, world::World};

#[derive(Debug)]
pub struct Symmetry {
    /// Who stands for whom; empty where no one can, and files are compared byte by byte.
    renamings: Vec<Vec<u8>>,
    people: HashMap<String, u8>,
    /// The hashes of each part that was asked for, by renaming.
    parts: Vec<Vec<Option<u128>>>,
    files: HashMap<(u8, PathId, ContentId), u128>,
}

impl Symmetry {
    /// No symmetry: each state is its own.
    pub fn none() -> Self {
        Self { renamings: Vec::new(), people: HashMap::new(), parts: vec![Vec::new()], files: HashMap::new() }
    }

    pub fn of(world: &World) -> Self {
        let mut renamings = vec![(0..).take(world.people.len()).collect::<Vec<u8>>()];
        for group in &world.equals {
            let orders = permutations(group);
            renamings = renamings
                .iter()
                .flat_map(|renaming| {
                    orders.iter().map(move |order| {
                        let mut renamed = renaming.clone();
                        group.iter().zip(order).for_each(|(from, to)| renamed[usize::from(*from)] = *to);
                        renamed
                    })
                })
                .collect();
        }
        let people = (0..)
            .zip(&world.people)
            .flat_map(|(n, person)| [(person.public.to_string(), n), (person.public.to_base64(), n)]);
        let parts = vec![Vec::new(); renamings.len()];
        let symmetry = Self { renamings, people: people.collect(), parts, files: HashMap::new() };
        symmetry.assert_fits(world);
        symmetry
    }

    /// Whether the world stays the same under each renaming: its signers files and its requests.
    fn assert_fits(&self, world: &World) {
        for renaming in &self.renamings {
            for file in world.projects.iter().flat_map(|plan| &plan.files) {
                let renamed = self.rename(&file.bytes, renaming);
                assert_eq!(renamed, self.rename(&file.bytes, &self.renamings[0]), "{}: not equal", file.name);
            }
            for action in &world.actions {
                let renamed = action.renamed(renaming);
                assert!(world.actions.contains(&renamed), "{}: no such request", world.show(&renamed));
                let names_one = matches!(action, Action::Revoke { document: Document::Initiated, .. });
                assert!(!names_one || renaming[0] == 0, "a document names the first person");
            }
        }
    }

    pub fn hash(&mut self, contents: &Contents, state: &State) -> u128 {
        let ways = self.renamings.len().max(1);
        let hash = |way| {
            let parts = state.parts.iter().map(|part| self.hash_part(contents, way, *part));
            parts.fold(u128::from(state.clock), u128::wrapping_add)
        };
        (0..ways).map(hash).min().expect("at least one way")
    }

    /// The sum over its files, so that a state is the sum over its parts.
    fn hash_part(&mut self, contents: &Contents, way: usize, part: PartId) -> u128 {
        let at = part as usize;
        if let Some(Some(hash)) = self.parts[way].get(at) {
            return *hash;
        }
        let files = contents.files(part).iter();
        let hash = files.fold(0, |sum: u128, (path, content)| {
            sum.wrapping_add(self.hash_file(contents, way, *path, *content))
        });
        let known = &mut self.parts[way];
        known.resize(known.len().max(at + 1), None);
        known[at] = Some(hash);
        hash
    }

    fn hash_file(&mut self, contents: &Contents, way: usize, path: PathId, content: ContentId) -> u128 {
        let known = (u8::try_from(way).expect("few renamings"), path, content);
        if let Some(hash) = self.files.get(&known) {
            return *hash;
        }
        let bytes = contents.bytes(content);
        let renamed = self.renamings.get(way).map(|renaming| self.rename(bytes, renaming));
        let bytes = renamed.as_ref().map_or(&bytes[..], |text| text.as_bytes());
        let hash = hash_texts(&[contents.path(path).as_str().as_bytes(), bytes]);
        self.files.insert(known, hash);
        hash
    }

    /// A document with people renamed, in an order that depends on no name. Signatures are left out: the file that is
    /// signed and the key say all of them.
    fn rename(&self, bytes: &[u8], renaming: &[u8]) -> String {
        match serde_json::from_slice::<Value>(bytes) {
            Ok(value) => self.rename_value(value, renaming).to_string(),
            Err(_) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    fn rename_value(&self, value: Value, renaming: &[u8]) -> Value {
        match value {
            Value::String(text) => match serde_json::from_str::<Value>(&text) {
                Ok(inner @ Value::Object(_)) => self.rename_value(inner, renaming),
                Ok(_) | Err(_) => Value::String(self.rename_text(text, renaming)),
            },
            Value::Array(entries) => {
                let mut entries: Vec<Value> =
                    entries.into_iter().map(|entry| self.rename_value(entry, renaming)).collect();
                entries.sort_by_cached_key(Value::to_string);
                Value::Array(entries)
            }
            Value::Object(fields) => {
                let fields = fields.into_iter().filter(|(name, _)| name != "signature");
                let mut fields: Vec<(String, Value)> = fields
                    .map(|(name, value)| {
                        (self.rename_text(name, renaming), self.rename_value(value, renaming))
                    })
                    .collect();
                fields.sort_by(|(one, _), (other, _)| one.cmp(other));
                Value::Object(Map::from_iter(fields))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn rename_text(&self, text: String, renaming: &[u8]) -> String {
        match self.people.get(&text) {
            Some(person) => format!("person {}", renaming[usize::from(*person)]),
            None => text,
        }
    }
}

fn permutations(of: &[u8]) -> Vec<Vec<u8>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let rest = |at: usize| of.iter().enumerate().filter(move |(n, _)| *n != at).map(|(_, it)| *it);
    let begin = |at: usize| {
        permutations(&rest(at).collect::<Vec<_>>()).into_iter().map(move |mut order| {
            order.insert(0, of[at]);
            order
        })
    };
    (0..of.len()).flat_map(begin).collect()
}
