//! The status maps of the log: one for each way in which releases became complete, and what each step makes of it.

use std::collections::HashMap;

use countersign_core::log::{record::Record, status::Statuses, tree::Hash, trie::TrieKey};
use countersign_core::values::digest::Sha512;

use crate::contents::{ContentId, Contents, PartId, State};
use crate::decisions::{Decided, Memo, MemoSet};
use crate::invariants::{Broken, Held, Invariant, proofs::ProofCheck, proofs::read_index};
use crate::{roles::FILE, roles::PathRole, roles::REVOCATION, view::Facts};

pub type MapId = u32;

#[derive(Debug)]
pub struct Logged {
    maps: Vec<Statuses>,
    ids: HashMap<Hash, MapId>,
    /// Decisions after which the log has no new record. The changes alone say that (D83).
    silent: Memo<u32, bool>,
    after: Memo<(MapId, u32), MapId>,
    /// All that any map ever had, by their keys.
    records: HashMap<TrieKey, Vec<Record>>,
    agreed: MemoSet<(MapId, State)>,
    summaries: Memo<PartId, u32>,
    summary_ids: Memo<(u32, Option<ContentId>), u32>,
}

impl Default for Logged {
    /// Begins with the map of an empty repository, which has the number 0.
    fn default() -> Self {
        let mut logged = Self {
            maps: Vec::new(),
            ids: HashMap::new(),
            silent: Memo::default(),
            after: Memo::default(),
            records: HashMap::new(),
            agreed: MemoSet::default(),
            summaries: Memo::default(),
            summary_ids: Memo::default(),
        };
        logged.intern(Statuses::default());
        logged
    }
}

impl Logged {
    pub fn get(&self, map: MapId) -> &Statuses {
        &self.maps[map as usize]
    }

    fn intern(&mut self, statuses: Statuses) -> MapId {
        let next = MapId::try_from(self.maps.len()).expect("fewer maps than states");
        let id = *self.ids.entry(statuses.root()).or_insert(next);
        if id == next {
            self.maps.push(statuses);
        }
        id
    }

    /// Applies a decision to the map.
    pub fn apply(
        &mut self,
        contents: &Contents,
        before: MapId,
        decided: &Decided,
        after: &State,
    ) -> Result<MapId, Broken> {
        let number = decided.number;
        if self.silent.get(&number) == Some(&true) {
            return Ok(before);
        }
        if let Some(known) = self.after.get(&(before, number)) {
            return Ok(*known);
        }
        match self.get(before).apply(&decided.change, read_index(contents, after)) {
            Ok((statuses, records)) => {
                self.check_evidence(contents, before, decided, after, &statuses)?;
                for record in &records {
                    let known = self.records.entry(record.key()).or_default();
                    if !known.contains(record) {
                        known.push(record.clone());
                    }
                }
                let map = self.intern(statuses);
                self.silent.insert(number, records.is_empty());
                self.after.insert((before, number), map);
                Ok(map)
            }
            Err(error) => Invariant::StapleAgrees.broken(error.to_string()),
        }
    }

    /// A log that signed any other map after this decision could be convicted (D214): the records that the change looks
    /// at are enough to derive the right one. A log that signed this map could not.
    fn check_evidence(
        &self,
        contents: &Contents,
        before: MapId,
        decided: &Decided,
        after: &State,
        right: &Statuses,
    ) -> Held {
        let map = self.get(before);
        let root = map.root();
        let shown = map.decisive_paths(&decided.change).into_iter().filter_map(|(key, path)| {
            let is_there = |record: &&Record| path.root(&key, record.text().as_bytes()) == Ok(root);
            let record = self.records.get(&key)?.iter().find(is_there)?.clone();
            Some((record, path))
        });
        let part = Statuses::of_paths(&root, &shown.collect::<Vec<_>>());
        let Some(part) = part.filter(|part| part.decides(&decided.change)) else {
            return Invariant::StapleAgrees.broken("no evidence of a lie can be made");
        };
        let read = read_index(contents, after);
        let derived =
            part.apply_digests(&decided.change, |index| read(index).map(|bytes| Sha512::of(&bytes)));
        match derived {
            Ok((derived, _)) if derived.root() == right.root() => Ok(()),
            Ok(_) => Invariant::StapleAgrees.broken("a part of the map gives another state than the whole"),
            Err(error) => Invariant::StapleAgrees.broken(error.to_string()),
        }
    }

    /// The map says what the state says.
    pub fn check(&mut self, proofs: ProofCheck<'_>, map: MapId, state: &State) -> Held {
        let key = (map, self.summary(proofs.contents, state));
        if self.agreed.contains(&key) {
            return Ok(());
        }
        proofs.check_statuses(self.get(map), &Facts::of(state, proofs.contents))?;
        self.agreed.insert(key);
        Ok(())
    }

    /// What a status map can tell of a state: which files there are of signers in force and of releases, which signers
    /// these are, and what revokes a release.
    fn summary(&mut self, contents: &Contents, state: &State) -> State {
        State { parts: state.parts.map(|part| self.summary_of(contents, part)), clock: 0 }
    }

    fn summary_of(&mut self, contents: &Contents, part: PartId) -> u32 {
        if let Some(known) = self.summaries.get(&part) {
            return *known;
        }
        let mut told = None;
        for (path, content) in contents.files(part) {
            match contents.role(*path) {
                PathRole::Pending { .. } | PathRole::Beside { .. } | PathRole::Superseded { .. } => {
                    self.summaries.insert(part, 0);
                    return 0;
                }
                PathRole::Active { slot, .. } if usize::from(slot) == FILE => told = Some(*content),
                PathRole::Release { slot, .. } if usize::from(slot) == REVOCATION => told = Some(*content),
                PathRole::Active { .. }
                | PathRole::Release { .. }
                | PathRole::History { .. }
                | PathRole::Vetoed { .. }
                | PathRole::Unknown => {}
            }
        }
        let next = u32::try_from(self.summary_ids.len()).expect("fewer than parts") + 1;
        let summary = *self.summary_ids.entry((contents.listing(part), told)).or_insert(next);
        self.summaries.insert(part, summary);
        summary
    }
}
