//! What builders state of a release: whose it is, how long it stays, and what it proves.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::documents::index::ReleaseIndex;
use countersign_core::documents::said::{RebuildsFile, StoredRebuild};
use countersign_core::documents::signers::{FilePattern, RebuildPolicy, SignersFile};
use countersign_core::documents::statement::{Objection, Rebuild, RebuiltFile, Revocation, Veto};
use countersign_core::proof::verify::{Evidence, VerifiedArtifact, VerifyError, verify};
use countersign_core::rules::reproduction::Reproduction;
use countersign_core::values::{digest::Sha512, key::PublicKey, path::RepoPath};
use countersign_testing::path;
use serde_json::Value;

use crate::action::{Action, Got};
use crate::contents::ContentId;
use crate::invariants::documents::{
    Key, Keys, RebuildsDocument, SignersDocument, StatedBy, StatedDocument, digest_text, read_files,
    read_stated, read_time,
};
use crate::invariants::{Held, Invariant, proofs::ProofCheck, proofs::find_artifact, steps::StepCheck};
use crate::requests::statements::{COMMIT, LEAD};
use crate::roles::{
    BEGUN, COLLECTING, COMPLETE, COPY, FILE, INDEX, OBJECTIONS, REBUILDS, REVOCATION, REVOKED,
};
use crate::view::{ProjectFacts, ReleaseSlots};

const TEXTS: u8 = 101;
const PATTERNS: u8 = 102;

// Steps.

impl StepCheck<'_> {
    fn stated(&self, file: Option<ContentId>) -> Option<StatedBy> {
        file.map_or_else(
            || Some(StatedBy::new()),
            |file| read_stated(&*self.reader.value(self.contents, file)?),
        )
    }

    fn builders(&self, file: Option<ContentId>) -> Keys {
        self.signers(file).map(|file| file.builders()).unwrap_or_default()
    }

    /// Who may state something of a release: builders in force, who were builders when it was completed.
    pub(super) fn can_state(&self, old: &ProjectFacts, release: u8) -> Keys {
        let release = &old.releases[usize::from(release)];
        let builders = self.builders(old.active[FILE]);
        let then = release[COMPLETE].map(|_| self.builders(release[COPY]));
        builders.into_iter().filter(|key| then.as_ref().is_none_or(|then| then.contains(key))).collect()
    }

    /// Checks that what is stated goes with what it is about, and that no other request touches it.
    pub(super) fn check_stated(&self, old: &ProjectFacts, new: &ProjectFacts) -> Held {
        let rule = Invariant::RebuildsAreKept;
        for (n, (was, is)) in (0..).zip(old.releases.iter().zip(&new.releases)) {
            match self.action {
                Action::Rebuild { release, .. } if release == n => {}
                Action::Assets { release, .. } | Action::Withdraw { release, .. } if release == n => {
                    rule.hold(is[REBUILDS].is_none(), "a statement outlived what it was about")?;
                }
                _ => rule.hold(was[REBUILDS] == is[REBUILDS], "a statement was lost or changed")?,
            }
        }
        Ok(())
    }

    pub(super) fn check_rebuild(&self, old: &ReleaseSlots, new: &ReleaseSlots, got: Got) -> Held {
        let rule = Invariant::RebuildsAreKept;
        let mut expected = *old;
        expected[REBUILDS] = new[REBUILDS];
        rule.hold(expected == *new, "a rebuild changed more than what is stated")?;
        let is_open = old[COLLECTING].or(old[COMPLETE]).is_some() && old[REVOKED].is_none();
        rule.hold(is_open, "a rebuild of what is revoked")?;
        let (Some(mut before), Some(mut after)) = (self.stated(old[REBUILDS]), self.stated(new[REBUILDS]))
        else {
            return rule.broken("statements cannot be read");
        };
        let (earlier, now) = (before.remove(&self.key()), after.remove(&self.key()));
        let Some(now) = now else { return rule.broken("a statement was not recorded") };
        rule.hold(
            got.is_right() && now.commit == COMMIT,
            "what is stated is not about the files that are there",
        )?;
        rule.hold(before == after, "the statement of another builder was lost or changed")?;
        let is_kept = |earlier: &StatedDocument| {
            let mut files = earlier.files.iter();
            earlier.commit == now.commit && files.all(|(name, digests)| now.files.get(name) == Some(digests))
        };
        let is_free = old[COMPLETE].is_none() || earlier.as_ref().is_none_or(is_kept);
        rule.hold(is_free, "a statement of a complete release was replaced")?;
        let time = |text: &str| read_time(text).unwrap_or(i64::MIN);
        let is_later = earlier.is_none_or(|earlier| time(&earlier.timestamp) < time(&now.timestamp));
        rule.hold(is_later, "an older statement replaced a newer one")?;
        let is_said = time(&now.timestamp) == self.world.clocks[0].unix_seconds() + got.seconds();
        rule.hold(is_said, "another statement was recorded")?;
        let clock = self.world.clocks[usize::from(self.clock)].unix_seconds();
        rule.hold(time(&now.timestamp) <= clock + LEAD, "a rebuild is dated ahead of the clock")
    }
}

// States, and what they prove.

/// What a recount finds, by the definition of D261 and nothing else.
#[derive(Debug, Default, PartialEq, Eq)]
struct Recount {
    is_required: bool,
    is_reproduced: bool,
    agreed: BTreeMap<String, Keys>,
    different: BTreeMap<Key, BTreeSet<String>>,
    stated: Keys,
    /// How many the least reproduced file has, each group up to its threshold.
    least: usize,
}

type Digests = BTreeMap<String, String>;

impl Recount {
    fn of(policy: &RebuildsDocument, published: &BTreeMap<String, Digests>, stated: &StatedBy) -> Self {
        let builders: Keys = policy.builders.iter().flat_map(|group| group.keys.iter().copied()).collect();
        let says = |key: &Key, name: &String, digests: &Digests| -> Option<bool> {
            let found = stated.get(key)?.files.get(name)?;
            let common: Vec<bool> =
                digests.iter().filter_map(|(kind, hex)| Some(found.get(kind)? == hex)).collect();
            (!common.is_empty()).then(|| common.iter().all(|is_same| *is_same))
        };
        let who = |name: &String, digests: &Digests, what: bool| -> Keys {
            builders.iter().filter(|key| says(key, name, digests) == Some(what)).copied().collect()
        };
        let is_covered = |name: &str| {
            let mut patterns = policy.files.iter();
            policy.files.is_empty() || patterns.any(|pattern| fits(pattern.as_bytes(), name.as_bytes()))
        };
        let covered = published.iter().filter(|(name, _)| is_covered(name));
        let agreed: BTreeMap<String, Keys> =
            covered.map(|(name, digests)| (name.clone(), who(name, digests, true))).collect();
        let mut different: BTreeMap<Key, BTreeSet<String>> = BTreeMap::new();
        for (name, digests) in published {
            for key in who(name, digests, false) {
                different.entry(key).or_default().insert(name.clone());
            }
        }
        let count = |keys: &Keys| -> Vec<(usize, usize)> {
            let groups = policy.builders.iter();
            groups.map(|group| (group.keys.intersection(keys).count(), group.threshold)).collect()
        };
        let is_met = |keys: &Keys| count(keys).into_iter().all(|(count, threshold)| count >= threshold);
        let sum = |keys: &Keys| count(keys).into_iter().map(|(count, threshold)| count.min(threshold)).sum();
        Self {
            is_required: policy.is_required,
            is_reproduced: !agreed.is_empty() && agreed.values().all(is_met),
            least: agreed.values().map(sum).min().unwrap_or_default(),
            agreed,
            different,
            stated: builders.into_iter().filter(|key| stated.contains_key(key)).collect(),
        }
    }

    /// What the client finds.
    fn found(found: &Reproduction) -> Self {
        let key = |key: &PublicKey| *key.as_bytes();
        let agreed = found.files.iter();
        let different = found.different.iter();
        Self {
            is_required: found.is_required,
            is_reproduced: found.is_reproduced(),
            agreed: agreed
                .map(|(name, keys)| (name.as_str().to_owned(), keys.iter().map(key).collect()))
                .collect(),
            different: different
                .map(|(by, names)| (key(by), names.iter().map(|name| name.as_str().to_owned()).collect()))
                .collect(),
            stated: found.commits.keys().map(key).collect(),
            least: found.tally.collected,
        }
    }
}

/// Whether a name fits a pattern in which `*` stands for any text.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|at| fits(rest, &name[at..])),
        Some((first, rest)) => name.split_first().is_some_and(|(it, name)| it == first && fits(rest, name)),
    }
}

impl ProofCheck<'_> {
    fn value(&self, id: ContentId) -> Option<Value> {
        serde_json::from_slice(self.contents.bytes(id)).ok()
    }

    fn read_statements(&self, release: &ReleaseSlots) -> Option<StatedBy> {
        release[REBUILDS].map_or_else(|| Some(StatedBy::new()), |id| read_stated(&self.value(id)?))
    }

    fn published(&self, release: &ReleaseSlots) -> Option<BTreeMap<String, Digests>> {
        read_files(self.value(release[INDEX]?)?.get("published_files")?)
    }

    /// Checks that everything that is stated verifies, and is about the index and the files that are there.
    pub(super) fn check_statements(&self, release: &ReleaseSlots, path: &RepoPath) -> Held {
        let rule = Invariant::RebuildsAreKept;
        let (Some(stated), Some(published)) = (self.read_statements(release), self.published(release)) else {
            return rule.broken("statements cannot be read");
        };
        let digest = release[INDEX].map(|index| digest_text(self.contents.bytes(index)));
        rule.hold(release[REBUILDS].is_none() == stated.is_empty(), "a file without a statement")?;
        for said in stated.values() {
            rule.hold(said.is_valid, "a statement does not verify")?;
            let is_this = said.path == path.as_str() && Some(&said.subject) == digest.as_ref();
            rule.hold(is_this, "a statement is about another release")?;
            let is_listed = said.files.keys().all(|name| published.contains_key(name));
            rule.hold(is_listed && !said.files.is_empty(), "a statement names other files")?;
        }
        Ok(())
    }

    /// Checks that the client finds what a recount of what is stored finds, and that nothing else counts.
    pub(super) fn check_reproduction(
        &self,
        evidence: &Evidence,
        release: &ReleaseSlots,
        verified: &Result<VerifiedArtifact, VerifyError>,
    ) -> Held {
        self.checked.once(PATTERNS, &[], check_patterns)?;
        let rule = Invariant::ReproductionAgrees;
        if release[COLLECTING].is_some() {
            return Ok(());
        }
        let copy = release[COPY].and_then(|id| SignersDocument::read(self.contents.bytes(id)));
        let (Some(copy), Some(published)) = (copy, self.published(release)) else {
            return rule.broken("the signers or the files of a complete release cannot be read");
        };
        let files = self.files_between(evidence);
        let recount = |stated: &StatedBy| {
            let of = |file: &SignersDocument| Some(Recount::of(file.rebuilds.as_ref()?, &published, stated));
            let mut between = files.iter().filter_map(of);
            between.find(|found| found.is_required && !found.is_reproduced).or_else(|| of(&copy))
        };
        let stated = self.read_statements(release).unwrap_or_default();
        let expected = recount(&stated);
        let is_lacking =
            expected.as_ref().is_some_and(|expected| expected.is_required && !expected.is_reproduced);
        let is_refused = matches!(verified, Err(VerifyError::NotReproduced(_)));
        let is_refusing = is_lacking && release[REVOKED].is_none();
        rule.hold(
            is_refused == is_refusing,
            "a release that must be reproduced verifies without it, or is refused with it",
        )?;
        let found =
            |verified| find_artifact(verified).and_then(|it| it.reproduction).as_ref().map(Recount::found);
        rule.hold(found(verified.clone()) == expected, "a client counts other rebuilds than are stored")?;
        let policy = release[COPY].and_then(|id| SignersFile::parse(self.contents.bytes(id)).ok());
        let policy = policy.as_ref().and_then(SignersFile::rebuilds).zip(copy.rebuilds.as_ref());
        let Some((policy, read)) = policy else { return Ok(()) };
        let Ok(index) = ReleaseIndex::parse(evidence.index.as_bytes()) else {
            return rule.broken("an index cannot be read");
        };
        for files in [&[][..], &["notes*"], &["*.zip", "a*.tar.*"], &["x"]] {
            let parsed = files.iter().map(|pattern| FilePattern::parse(pattern)).collect::<Result<_, _>>();
            let (files, parsed) =
                (files.iter().map(ToString::to_string).collect(), parsed.unwrap_or_default());
            let policy = RebuildPolicy { files: parsed, ..policy.clone() };
            let judged = Recount::found(&Reproduction::judge(&index, &policy, &evidence.rebuilds));
            let recount = Recount::of(&RebuildsDocument { files, ..read.clone() }, &published, &stated);
            rule.hold(judged == recount, "a rule about other files is judged otherwise than a recount says")?;
        }
        let asked: Keys = files.iter().flat_map(SignersDocument::builders).collect();
        for rebuilds in self.forged(evidence, &asked) {
            let forged = Evidence { rebuilds, ..evidence.clone() };
            let found = found(verify(&forged));
            rule.hold(
                found == recount(&StatedBy::new()),
                "a client counts a rebuild that a builder did not state of this",
            )?;
        }
        Ok(())
    }

    /// The signers files from the newest that was proposed when the index was made to the one that it was signed under,
    /// or the other way round.
    fn files_between(&self, evidence: &Evidence) -> Vec<SignersDocument> {
        let time = |text: &str, pointer: &str| {
            let value: Value = serde_json::from_str(text).ok()?;
            read_time(value.pointer(pointer)?.as_str()?)
        };
        let made = time(&evidence.index, "/mirrored_on").unwrap_or(i64::MIN);
        let entries = &evidence.history.entries;
        let proposed = entries.iter().rposition(|entry| {
            time(&entry.metadata, "/origin/retrieved_at").is_some_and(|fetched| fetched <= made)
        });
        let governed_by = evidence.governed_by.to_prefixed();
        let governing =
            entries.iter().position(|entry| digest_text(entry.signers_config.as_bytes()) == governed_by);
        let (proposed, governing) = (proposed.unwrap_or(0), governing.unwrap_or(0));
        let between = &entries[proposed.min(governing)..=proposed.max(governing)];
        between.iter().filter_map(|entry| SignersDocument::read(entry.signers_config.as_bytes())).collect()
    }

    /// Statements that prove nothing, though each key is a builder's or each signature right: of a release at another
    /// path, of another index, and signed by others; and those of a key that is no builder's.
    fn forged(&self, evidence: &Evidence, builders: &Keys) -> Vec<RebuildsFile> {
        let Ok(index) = ReleaseIndex::parse(evidence.index.as_bytes()) else { return Vec::new() };
        let right = index_rebuild(&index, &evidence.path, &evidence.index);
        let elsewhere =
            Rebuild { rebuild_of: path("https/github.com/443/acme/other/svc.index.json"), ..right.clone() };
        let of_other = Rebuild { subject_digest: Sha512::of(b"another file"), ..right.clone() };
        let people = || (0..).zip(&self.world.people);
        let state = |document: &Rebuild, is_own: bool, is_builder: bool| {
            let asked =
                people().filter(|(_, person)| builders.contains(person.public.as_bytes()) == is_builder);
            let entry = |(n, person): (usize, &crate::world::Person)| {
                let text = String::from_utf8(document.write()).expect("our documents are text");
                let signer = if is_own { n } else { (n + 1) % self.world.people.len() };
                let signature = self.world.people[signer].secret.sign(&Sha512::of(text.as_bytes()));
                let collected_at = self.world.clocks[0];
                (person.public, StoredRebuild { text, document: document.clone(), signature, collected_at })
            };
            RebuildsFile { entries: asked.map(entry).collect() }
        };
        let forged = [
            state(&elsewhere, true, true),
            state(&of_other, true, true),
            state(&right, false, true),
            state(&right, true, false),
        ];
        // Each evidence is shown one of them.
        let at = evidence.rebuilds.entries.len() + evidence.history.entries.len();
        forged.into_iter().skip(at % 4).take(1).collect()
    }

    /// Checks that each text that someone signed is a document of one kind: what a builder states is no objection, and
    /// no objection, index or signers file is a rebuild.
    pub(super) fn check_texts(&self, release: &ReleaseSlots) -> Held {
        let slots = [INDEX, COPY, REVOCATION, BEGUN, OBJECTIONS, REBUILDS].map(|slot| release[slot]);
        self.checked.once(TEXTS, &slots, || {
            let whole = [INDEX, COPY, REVOCATION, BEGUN].into_iter().filter_map(|slot| release[slot]);
            let mut texts: Vec<String> =
                whole.map(|id| String::from_utf8_lossy(self.contents.bytes(id)).into_owned()).collect();
            for (slot, list) in [(OBJECTIONS, "objections"), (REBUILDS, "rebuilds")] {
                let file = release[slot].and_then(|id| self.value(id)).unwrap_or_default();
                let entries = file.get(list).and_then(Value::as_object).into_iter().flatten();
                texts.extend(
                    entries.filter_map(|(_, entry)| Some(entry.get("document")?.as_str()?.to_owned())),
                );
            }
            let is_of_one_kind = |text: &String| {
                let bytes = text.as_bytes();
                let kinds = [
                    Rebuild::parse(bytes).is_ok(),
                    Objection::parse(bytes).is_ok(),
                    Revocation::parse(bytes).is_ok(),
                    Veto::parse(bytes).is_ok(),
                    ReleaseIndex::parse(bytes).is_ok(),
                    SignersFile::parse(bytes).is_ok(),
                ];
                kinds.into_iter().filter(|is_kind| *is_kind).count() == 1
            };
            Invariant::TextsAreOfOneKind.hold(
                texts.iter().all(is_of_one_kind),
                "what someone signed is a document of several kinds, or of none",
            )
        })
    }
}

/// A rebuild of exactly these files.
fn index_rebuild(index: &ReleaseIndex, path: &RepoPath, text: &str) -> Rebuild {
    let files = index.published_files.iter();
    Rebuild {
        rebuild_of: path.clone(),
        subject_digest: Sha512::of(text.as_bytes()),
        source_commit: COMMIT.to_owned(),
        files: files
            .map(|file| RebuiltFile { file_name: file.file_name.clone(), digests: file.digests })
            .collect(),
        timestamp: index.mirrored_on,
    }
}

/// Compares every short pattern with every short name.
fn check_patterns() -> Held {
    let texts = |letters: &[u8], longest: usize| {
        let longer = |texts: &Vec<String>| -> Vec<String> {
            let of =
                |text: &String| letters.iter().map(|it| format!("{text}{}", *it as char)).collect::<Vec<_>>();
            texts.iter().flat_map(of).collect()
        };
        let lengths = std::iter::successors(Some(vec![String::new()]), |texts| Some(longer(texts)));
        lengths.skip(1).take(longest).flatten().collect::<Vec<String>>()
    };
    let names = texts(b"ab", 5);
    for pattern in texts(b"ab*", 4) {
        let Ok(files) = FilePattern::parse(&pattern).map(|pattern| vec![pattern]) else {
            return Invariant::ReproductionAgrees.broken("a pattern cannot be read");
        };
        let policy = RebuildPolicy { builders: Vec::new(), files, required: false };
        let other =
            names.iter().find(|name| policy.covers(name) != fits(pattern.as_bytes(), name.as_bytes()));
        if let Some(name) = other {
            return Invariant::ReproductionAgrees
                .broken(format!("{pattern:?} covers {name:?}, or does not, against its words"));
        }
    }
    Ok(())
}
