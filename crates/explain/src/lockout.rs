//! Keys that no one has used for long, and what it would mean if they were lost (D141).

use std::{collections::BTreeMap, collections::BTreeSet, fmt, time::Duration};

use countersign_core::documents::signers::{Signer, SignersFile, keys_of};
use countersign_core::values::{key::PublicKey, shown::plural, time::Timestamp};

use crate::strength::{Act, count_spare};

/// A key that has not signed for so long is idle.
pub const IDLE_AFTER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[derive(Debug, Clone)]
pub struct Lockout {
    /// Every key with which people sign, the one that was used longest ago first. A builder's key lies on a machine,
    /// and what it states is no signature that counts (D140).
    pub uses: Vec<KeyUse>,
    /// The acts to which idle keys belong.
    pub outlooks: Vec<ActOutlook>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUse {
    pub signer: Signer,
    /// The time of its last signature; `None` if it never signed, as far as is known.
    pub last_signed: Option<Timestamp>,
    pub is_idle: bool,
}

/// What is left of an act if all idle keys are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActOutlook {
    pub act: Act,
    pub idle: usize,
    pub keys: usize,
    /// How many more keys can be lost, any of them; `None` if the act is impossible already.
    pub spare: Option<usize>,
    /// Whether a rotation could still help.
    pub can_rotate: bool,
}

pub fn foresee(file: &SignersFile, last: &BTreeMap<PublicKey, Timestamp>, now: Timestamp) -> Lockout {
    let keys = file.signers();
    let is_idle = |key: &PublicKey| {
        let last = last.get(key);
        last.is_none_or(|last| now.ahead_of(*last).is_some_and(|idle| idle >= IDLE_AFTER))
    };
    let idle: BTreeSet<PublicKey> = keys.iter().copied().filter(is_idle).collect();
    let mut uses: Vec<KeyUse> = keys
        .iter()
        .map(|key| KeyUse {
            signer: file.named_signer(*key),
            last_signed: last.get(key).copied(),
            is_idle: idle.contains(key),
        })
        .collect();
    uses.sort_by_key(|used| used.last_signed);
    Lockout { uses, outlooks: foresee_acts(file, &idle) }
}

/// Foresees all acts to which one of the idle keys belongs.
fn foresee_acts(file: &SignersFile, idle: &BTreeSet<PublicKey>) -> Vec<ActOutlook> {
    let ways = |act: Act| act.ways(file).map(|(_, groups)| groups).collect::<Vec<_>>();
    let can_rotate = count_spare(ways(Act::Rotate), idle).is_some();
    let outlook = |act| {
        let ways = ways(act);
        let keys: BTreeSet<PublicKey> = ways.iter().flat_map(|groups| keys_of(groups)).collect();
        let spare = count_spare(&ways, idle);
        ActOutlook { act, idle: keys.intersection(idle).count(), keys: keys.len(), spare, can_rotate }
    };
    Act::of(file).map(outlook).filter(|outlook| outlook.idle > 0).collect()
}

impl ActOutlook {
    /// Whether one more loss, or none, ends what the team can do.
    pub fn is_alarming(&self) -> bool {
        self.spare.is_none_or(|spare| spare == 0)
    }
}

/// Says the outlook, as in `to rotate the signers: 3 of 5 keys have not signed for a year: losing one more key locks
/// you out`.
impl fmt::Display for ActOutlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { act, idle, keys, spare, can_rotate } = self;
        let (have, they) = if *idle == 1 { ("has", "it is") } else { ("have", "they are") };
        write!(f, "to {act}: {idle} of {keys} key{} {have} not signed for a year: ", plural(*keys))?;
        match (spare, act, can_rotate) {
            (None, Act::Rotate, _) => write!(f, "if {they} lost, you are locked out"),
            (None, _, true) => write!(f, "if {they} lost, no one can {act} until the signers are rotated"),
            (None, _, false) => write!(f, "if {they} lost, no one can ever {act} again"),
            (Some(0), Act::Rotate, _) => f.write_str("losing one more key locks you out"),
            (Some(0), _, true) => {
                write!(f, "losing one more key makes it impossible to {act}, until the signers are rotated")
            }
            (Some(0), _, false) => write!(f, "losing one more key makes it impossible to {act}, for ever"),
            (Some(spare), _, _) => {
                write!(f, "if {they} lost, you can lose any {spare} more key{}", plural(*spare))
            }
        }
    }
}
