//! The status maps of the log: one for each way in which releases became complete, and what each step makes of it.

use std::collections::HashMap;

use countersign_core::log::{status::Statuses, tree::Hash};

use crate::{
    contents::{ContentId, Contents, PartId, State},
    decisions::Decided,
    facts::Facts,
    invariants::{
        Broken, Held, Invariant,
        proofs::{ProofCheck, read_index},
    },
    memo::{Memo, MemoSet},
    roles::{FILE, PathRole, REVOCATION},
};

pub type MapId = u32;

#[derive(Debug)]
pub struct Logged {
    maps: Vec<Statuses>,
    ids: HashMap<Hash, MapId>,
    /// Decisions after which the log has no new record. The changes alone say that (D83).
    silent: Memo<u32, bool>,
    after: Memo<(MapId, u32), MapId>,
    agreed: MemoSet<(MapId, State)>,
    summaries: Memo<PartId, u32>,
    summary_ids: Memo<(u32, Option<ContentId>), u32>,
}

impl Default for Logged {
    /// With the map of an empty repository, which has the number 0.
    fn default() -> Self {
        let mut logged = Self {
            maps: Vec::new(),
            ids: HashMap::new(),
            silent: Memo::default(),
            after: Memo::default(),
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

    /// The map after a decision.
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
                let map = self.intern(statuses);
                self.silent.insert(number, records.is_empty());
                self.after.insert((before, number), map);
                Ok(map)
            }
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
