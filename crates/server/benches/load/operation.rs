//! The measured operations.

use std::{collections::HashMap, fmt, str::FromStr};

use countersign_core::values::key::SecretKey;

use crate::plan::{Plan, key_of, owner_name};
use crate::{Failure, client::Request, documents::Collecting, request, seed::IDLE_OWNER};

/// Public reads. The last of them are sent first, as a warm-up.
const READS: usize = WARM_UP + MEASURED_READS;
pub(crate) const WARM_UP: usize = 2_000;
const MEASURED_READS: usize = 250_000;
const SIGNED_READS: usize = 10_000;
const LISTS: usize = 2_000;
/// Files that are requested again and again, like those of recent releases.
const HOT: usize = 1_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Files,
    FilesHot,
    Signers,
    Chain,
    Status,
    Pending,
    PendingMany,
    Submit,
}

impl Operation {
    pub(crate) const ALL: [Self; 8] = [
        Self::Files,
        Self::FilesHot,
        Self::Signers,
        Self::Chain,
        Self::Status,
        Self::Pending,
        Self::PendingMany,
        Self::Submit,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::FilesHot => "files-hot",
            Self::Signers => "signers",
            Self::Chain => "chain",
            Self::Status => "status",
            Self::Pending => "pending",
            Self::PendingMany => "pending-many",
            Self::Submit => "submit",
        }
    }

    pub(crate) fn clients(self, asked: usize) -> usize {
        if self == Self::Pending { 1 } else { asked }
    }

    /// Whether the read is public and unlimited. Such reads are compared with the bare handler.
    pub(crate) fn is_public(self) -> bool {
        matches!(self, Self::Files | Self::FilesHot | Self::Signers | Self::Chain)
    }

    /// How often each contestant has its turn. What takes microseconds is measured in many short turns, since the speed
    /// of a shared machine changes from one second to the next.
    pub(crate) fn turns(self) -> usize {
        if self.is_public() { 25 } else { 5 }
    }

    pub(crate) fn requests(self, plan: Plan) -> Result<Vec<Request>, Failure> {
        match self {
            Self::Files => public("files", plan, READS),
            Self::FilesHot => public("files", plan, HOT),
            Self::Signers => public("get_signers", plan, READS),
            Self::Chain => public("get_signers_chain", plan, READS),
            Self::Status => status(plan),
            Self::Pending => Ok((0..LISTS).map(|_| list_of_idle()).collect()),
            Self::PendingMany => Ok((0..SIGNED_READS).map(|_| list_of_idle()).collect()),
            Self::Submit => Err("submissions need releases that wait for them".into()),
        }
    }
}

/// Reads of so many different indexes, picked at random.
fn public(route: &str, plan: Plan, different: usize) -> Result<Vec<Request>, Failure> {
    let mut random = Random::default();
    let picked = (0..different).map(|_| {
        let index = plan.index(random.below(plan.releases()))?;
        Ok(request::get(&format!("/v1/{route}/{index}")))
    });
    let picked: Vec<Request> = picked.collect::<Result<_, Failure>>()?;
    Ok(picked.into_iter().cycle().take(READS).collect())
}

/// Each file's signers ask for it.
fn status(plan: Plan) -> Result<Vec<Request>, Failure> {
    let mut random = Random::default();
    let mut keys: HashMap<usize, SecretKey> = HashMap::new();
    (0..SIGNED_READS)
        .map(|_| {
            let release = random.below(plan.releases());
            let owner = plan.owner_of(release);
            let key = keys.entry(owner).or_insert_with(|| key_of(&owner_name(owner), 0));
            Ok(request::signed_get(key, &format!("/v1/signatures/{}", plan.index(release)?)))
        })
        .collect()
}

/// Lists what waits for the signer that signs nothing.
pub(crate) fn list_of_idle() -> Request {
    request::signed_get(&key_of(IDLE_OWNER, 0), "/v1/pending_signatures")
}

/// Two of three signers sign each index, so that every second submission completes one.
pub(crate) fn submissions(indexes: &[Collecting]) -> Vec<Request> {
    let signed_twice =
        |index: &Collecting| [0, 1].map(|signer| request::submit(&key_of(&index.owner, signer), index));
    indexes.iter().flat_map(signed_twice).collect()
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Operation {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let found = Self::ALL.into_iter().find(|operation| operation.name() == text);
        found.ok_or_else(|| "no such operation; see --help".into())
    }
}

/// Splitmix64: spread evenly, and the same in every run.
#[derive(Default)]
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}
