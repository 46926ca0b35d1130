//! What witnesses have seen of the log, on disk (D208). The log signs nothing before it knows that it continues that,
//! and neither a restart nor new commits make it forget.

use std::{collections::BTreeMap, collections::BTreeSet, io, path::Path, path::PathBuf};

use countersign_core::log::tree::{Hash, Tree, TreeHead, parse_hash, write_hash};
use countersign_core::log::{checkpoint::SignedCheckpoint, note::Note, note::parse_number, policy::Policy};
use countersign_core::values::bounds::{LOST_HEADS, NOTE_BYTES};
use countersign_core::values::{verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_store::{Disk, machine::disk};

use crate::error::{LogError, LogRefusal};

const FORM: &str = "countersign/seen/v1";
/// A note, and a few lines for each witness.
const MAX_BYTES: u64 = 4 * NOTE_BYTES as u64;

/// What witnesses have seen, in one file that is replaced as a whole.
#[derive(Debug)]
pub(crate) struct SeenMemory {
    disk: Disk,
    path: PathBuf,
    /// The key of the log.
    key: VerifierKey,
    /// What the file says; `None` until it was read.
    kept: Option<Seen>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    /// Witnesses that have cosigned this log.
    cosigned: BTreeSet<VerifierKey>,
    /// What each witness says now, by its name, if that is more than the log remembers to have signed.
    claims: BTreeMap<String, SeenSize>,
    /// What enough witnesses have claimed. It stands, whatever they say later.
    guard: Option<SeenSize>,
    /// The largest checkpoint of the log's own key that was shown to it.
    shown: Option<Shown>,
    /// What the operator has given up.
    lost: Vec<LostHead>,
}

/// A witness says that it has seen so many commits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeenSize {
    witness: VerifierKey,
    size: u64,
    root: Option<Hash>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    /// Who has shown the claim, for messages.
    by: String,
    signed: SignedCheckpoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LostHead {
    size: u64,
    /// The root; `None` if it was never known.
    root: Option<Hash>,
}

/// What there is, to be compared with what was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogStanding<'a> {
    pub(crate) tree: &'a Tree,
    /// Commits in the newest checkpoint that the log remembers.
    pub(crate) signed: u64,
    pub(crate) policy: Option<&'a Policy>,
    /// What each witness has said since the start, by its name.
    pub(crate) answered: &'a BTreeMap<String, u64>,
}

impl SeenMemory {
    /// A log with another key or origin has a file of its own.
    pub(crate) fn new(disk: &Disk, dir: &Path, key: &VerifierKey) -> Self {
        let id: String = key.id().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { disk: disk.clone(), path: dir.join(format!("seen-{id}")), key: key.clone(), kept: None }
    }

    /// What the file says. It is read once.
    fn kept(&mut self) -> Result<&Seen, LogError> {
        if self.kept.is_none() {
            let fail = LogError::cache(&self.path);
            let text = disk::read_text(&self.path, MAX_BYTES).map_err(&fail)?;
            let seen = text.map(|text| Seen::parse(&text, &self.key)).transpose();
            self.kept = Some(seen.map_err(&fail)?.unwrap_or_default());
        }
        Ok(self.kept.get_or_insert_default())
    }

    /// Changes the memory. When this returns, the change is durable.
    fn change(&mut self, change: impl FnOnce(&mut Seen)) -> Result<(), LogError> {
        let kept = self.kept()?;
        let mut next = kept.clone();
        change(&mut next);
        if next != *kept {
            let replaced = self.disk.replace(&self.path, &next.write(&self.key));
            replaced.map_err(LogError::cache(&self.path))?;
            self.kept = Some(next);
        }
        Ok(())
    }

    pub(crate) fn note_cosigned<'a>(
        &mut self,
        witnesses: impl IntoIterator<Item = &'a VerifierKey>,
    ) -> Result<(), LogError> {
        self.change(|seen| seen.cosigned.extend(witnesses.into_iter().cloned()))
    }

    /// Whether the witness with these keys has cosigned before. If the file cannot be read, it counts as one that has.
    pub(crate) fn has_cosigned(&mut self, keys: &[&VerifierKey]) -> bool {
        self.kept().map_or(true, |seen| keys.iter().any(|key| seen.cosigned.contains(*key)))
    }

    /// A witness says that it has seen more than the log remembers. What it said before about more stays.
    pub(crate) fn claim(
        &mut self,
        witness: &VerifierKey,
        head: (u64, Option<Hash>),
        standing: LogStanding<'_>,
    ) -> Result<(), LogError> {
        let (size, root) = head;
        self.change(|seen| {
            if size <= seen.known(standing.signed).max(seen.lost_size()) {
                return;
            }
            let claim = SeenSize { witness: witness.clone(), size, root };
            let kept = seen.claims.entry(witness.name().to_owned()).or_insert_with(|| claim.clone());
            if size > kept.size || (size == kept.size && root.is_some()) {
                *kept = claim;
            }
            let open = seen.open_claims(standing);
            let confirmed = find_most(&open, standing.policy, BTreeSet::new()).cloned();
            // One that is less would end too early.
            if let Some(confirmed) = confirmed
                && seen.guard.as_ref().is_none_or(|guard| guard.size < confirmed.size)
            {
                seen.guard = Some(confirmed);
            }
        })
    }

    /// A witness says that it has seen no more than the log remembers.
    pub(crate) fn withdraw(&mut self, witness: &VerifierKey) -> Result<(), LogError> {
        self.change(|seen| drop(seen.claims.remove(witness.name())))
    }

    /// A checkpoint that the log's own key has signed. It counts more than the word of a witness.
    pub(crate) fn show(&mut self, by: &str, signed: SignedCheckpoint) -> Result<(), LogError> {
        self.change(|seen| {
            let size = signed.checkpoint().size;
            if size > seen.known(0).max(seen.lost_size()) {
                seen.shown = Some(Shown { by: by.to_owned(), signed });
            }
        })
    }

    /// The log has signed so many commits, and continues what was seen before.
    pub(crate) fn note_signed(&mut self, size: u64) -> Result<(), LogError> {
        self.change(|seen| {
            seen.claims.retain(|_, claim| claim.size > size);
            seen.guard.take_if(|guard| guard.size <= size);
            seen.shown.take_if(|shown| shown.signed.checkpoint().size <= size);
        })
    }

    /// The operator gives up these commits. `heads` are the checkpoints of them that the log knows.
    pub(crate) fn accept_loss(&mut self, size: u64, heads: &[TreeHead]) -> Result<(), LogError> {
        self.change(|seen| {
            let shown = seen.shown.take_if(|shown| shown.signed.checkpoint().size <= size);
            let shown = shown.map(|shown| shown.signed.checkpoint().head());
            let known = heads.iter().copied().chain(shown);
            let mut lost: Vec<LostHead> =
                known.map(|head| LostHead { size: head.size, root: Some(head.root) }).collect();
            lost.push(LostHead { size, root: None });
            lost.retain(|head| !seen.lost.contains(head));
            seen.lost.extend(lost);
            let excess = seen.lost.len().saturating_sub(LOST_HEADS);
            seen.lost.drain(..excess);
            seen.claims.retain(|_, claim| claim.size > size);
            seen.guard.take_if(|guard| guard.size <= size);
        })
    }

    /// Checkpoints of the log's own key that it does not continue any more.
    pub(crate) fn lost_heads(&mut self) -> Result<Vec<TreeHead>, LogError> {
        let lost = self.kept()?.lost.iter();
        Ok(lost.filter_map(|head| Some(TreeHead { size: head.size, root: head.root? })).collect())
    }

    /// The largest checkpoint of the log's own key that was shown, as a note.
    pub(crate) fn shown_note(&mut self) -> Result<Option<Note>, LogError> {
        Ok(self.kept()?.shown.as_ref().map(|shown| shown.signed.note()))
    }

    /// Commits that the log knows to have been signed, by its own memory and by what was shown to it.
    pub(crate) fn known(&mut self, signed: u64) -> Result<u64, LogError> {
        Ok(self.kept()?.known(signed))
    }

    /// Whether there is something to compare the tree with.
    pub(crate) fn has_guard(&mut self) -> bool {
        self.kept().map_or(true, |seen| seen.guard.is_some() || seen.shown.is_some())
    }

    /// Why the log must not sign, if what witnesses have seen says so.
    pub(crate) fn find_refusal(&mut self, standing: LogStanding<'_>) -> Result<Option<LogRefusal>, LogError> {
        let seen = self.kept()?;
        if let Some(Shown { by, signed }) = &seen.shown {
            let TreeHead { size, root } = signed.checkpoint().head();
            if standing.tree.root(size) != Some(root) {
                return Ok(Some(refuse(by, size, Some(root), standing.tree)));
            }
        }
        if let Some(guard) = seen.guard.as_ref().filter(|guard| seen.is_open(guard, standing)) {
            return Ok(Some(guard.refusal(standing.tree)));
        }
        let open = seen.open_claims(standing);
        if open.is_empty() {
            return Ok(None);
        }
        // Those that have said nothing since the start can have seen it as well (D190).
        let has_spoken = |key: &VerifierKey| {
            let is_open = open.iter().any(|claim| claim.witness.name() == key.name());
            is_open || standing.answered.contains_key(key.name())
        };
        let keys = standing.policy.map(Policy::witness_keys).unwrap_or_default();
        let silent = keys.into_iter().filter(|key| !has_spoken(key)).collect();
        let most = find_most(&open, standing.policy, silent);
        Ok(most.map(|claim| claim.refusal(standing.tree)))
    }
}

/// The claim of the most commits that enough witnesses confirm, together with these others.
fn find_most<'a>(
    open: &[&'a SeenSize],
    policy: Option<&Policy>,
    mut others: BTreeSet<VerifierKey>,
) -> Option<&'a SeenSize> {
    let mut open = open.to_vec();
    open.sort_by_key(|claim| std::cmp::Reverse(claim.size));
    open.into_iter().find(|claim| {
        policy.is_none_or(|policy| {
            others.extend(policy.keys_of(claim.witness.name()).cloned());
            policy.is_met(&others)
        })
    })
}

fn refuse(by: &str, seen: u64, root: Option<Hash>, tree: &Tree) -> LogRefusal {
    let (witness, size) = (by.to_owned(), tree.len());
    match root {
        _ if size < seen => LogRefusal::BehindWitness { witness, seen, size },
        Some(_) => LogRefusal::ForkedWitness { witness, seen },
        None => LogRefusal::UnknownRoot { witness, seen, size },
    }
}

impl SeenSize {
    fn refusal(&self, tree: &Tree) -> LogRefusal {
        refuse(&format!("the witness {}", self.witness.name()), self.size, self.root, tree)
    }
}

impl Seen {
    fn known(&self, signed: u64) -> u64 {
        let shown = self.shown.as_ref().map_or(0, |shown| shown.signed.checkpoint().size);
        signed.max(shown)
    }

    fn lost_size(&self) -> u64 {
        self.lost.iter().map(|head| head.size).max().unwrap_or(0)
    }

    /// What the log's own key has signed settles every claim of no more commits: it has signed one history.
    fn is_open(&self, claim: &SeenSize, standing: LogStanding<'_>) -> bool {
        let is_there = claim.root.is_some_and(|root| standing.tree.root(claim.size) == Some(root));
        claim.size > self.known(standing.signed) && !is_there
    }

    fn open_claims(&self, standing: LogStanding<'_>) -> Vec<&SeenSize> {
        self.claims.values().filter(|claim| self.is_open(claim, standing)).collect()
    }

    fn write(&self, log: &VerifierKey) -> String {
        let mut text = format!("{FORM}\nlog {log}\n");
        let root = |root: Option<Hash>| root.map_or_else(|| "-".to_owned(), |root| write_hash(&root));
        let claim = |word: &str, claim: &SeenSize| {
            format!("{word} {} {} {}\n", claim.witness, claim.size, root(claim.root))
        };
        self.cosigned.iter().for_each(|witness| text += &format!("cosigned {witness}\n"));
        self.claims.values().for_each(|claimed| text += &claim("claimed", claimed));
        self.guard.iter().for_each(|guard| text += &claim("guard", guard));
        self.lost.iter().for_each(|head| text += &format!("lost {} {}\n", head.size, root(head.root)));
        if let Some(Shown { by, signed }) = &self.shown {
            text += &format!("shown {by}\n\n{}", signed.note());
        }
        text
    }

    /// A file that says anything else is refused: a log that forgets what was seen can contradict it.
    fn parse(text: &str, log: &VerifierKey) -> io::Result<Self> {
        Self::read(text, log).ok_or_else(|| {
            let reason = "it does not say what witnesses have seen of this log. Put it back from a backup. \
                          If you have none, remove it: the witnesses are then asked again";
            io::Error::new(io::ErrorKind::InvalidData, reason)
        })
    }

    fn read(text: &str, log: &VerifierKey) -> Option<Self> {
        let (head, note) = text.split_once("\n\n").map_or((text, None), |(head, note)| (head, Some(note)));
        let (mut seen, mut lines) = (Self::default(), head.lines());
        let is_ours = lines.next()? == FORM && lines.next()? == format!("log {log}");
        let mut by = None;
        for line in lines {
            let (word, rest) = line.split_once(' ')?;
            match word {
                "cosigned" => drop(seen.cosigned.insert(read_witness(rest)?)),
                "claimed" => {
                    let claim = read_claim(rest)?;
                    seen.claims.insert(claim.witness.name().to_owned(), claim);
                }
                "guard" => seen.guard = Some(read_claim(rest)?),
                "lost" => {
                    let (size, root) = rest.split_once(' ')?;
                    seen.lost.push(LostHead { size: parse_number(size)?, root: read_root(root)? });
                }
                "shown" => by = Some(rest.to_owned()),
                _ => return None,
            }
        }
        if let (Some(by), Some(note)) = (by, note) {
            let note = Note::parse(note.as_bytes()).ok()?;
            let signed = SignedCheckpoint::open(&note, std::slice::from_ref(log), &[]).ok()?;
            seen.shown = Some(Shown { by, signed });
        } else if note.is_some() {
            return None;
        }
        is_ours.then_some(seen)
    }
}

fn read_claim(text: &str) -> Option<SeenSize> {
    let mut words = text.split(' ');
    let (witness, size, root) = (words.next()?, words.next()?, words.next()?);
    Some(SeenSize { witness: read_witness(witness)?, size: parse_number(size)?, root: read_root(root)? })
}

fn read_witness(text: &str) -> Option<VerifierKey> {
    VerifierKey::parse_kind(text, KeyKind::Witness).ok()
}

fn read_root(text: &str) -> Option<Option<Hash>> {
    if text == "-" { Some(None) } else { parse_hash(text).map(Some) }
}
