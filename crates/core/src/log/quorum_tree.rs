//! How many witnesses are enough: a tree of groups, as policies define it (D85).

use std::collections::BTreeSet;

use crate::{rules::quorum, values::key::PublicKey};

/// Each key occurs once in a tree, which is why what follows is exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuorumTree {
    Witness(PublicKey),
    Group { threshold: usize, members: Vec<QuorumTree> },
}

/// What a quorum needs and withstands, in witnesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tolerance {
    /// All that count.
    pub witnesses: usize,
    /// The fewest that are enough.
    pub needed: usize,
    /// So many can be down, whichever they are, and the rest is still enough.
    pub may_be_down: usize,
    /// The fewest that must collude with the log, so that two views of it both have enough cosignatures. 0: the log alone
    /// can show two views.
    pub must_collude: usize,
}

impl QuorumTree {
    pub fn is_met(&self, cosigned: &BTreeSet<PublicKey>) -> bool {
        match self {
            Self::Witness(key) => cosigned.contains(key),
            Self::Group { threshold, members } => {
                quorum::is_reached(*threshold, members, |member| member.is_met(cosigned))
            }
        }
    }

    pub fn keys(&self) -> BTreeSet<PublicKey> {
        match self {
            Self::Witness(key) => BTreeSet::from([*key]),
            Self::Group { members, .. } => members.iter().flat_map(Self::keys).collect(),
        }
    }

    pub fn tolerance(&self) -> Tolerance {
        Tolerance {
            witnesses: self.keys().len(),
            needed: self.sum_of_smallest(&|threshold, _| threshold),
            // A group is out of reach when so many members are that too few remain.
            may_be_down: self.sum_of_smallest(&|threshold, members| members - threshold + 1) - 1,
            // Two selections of members have at least so many in common.
            must_collude: self.sum_of_smallest(&|threshold, members| (2 * threshold).saturating_sub(members)),
        }
    }

    /// The fewest witnesses, if in each group as many members must be won as `count` says of its threshold and size.
    fn sum_of_smallest(&self, count: &impl Fn(usize, usize) -> usize) -> usize {
        match self {
            Self::Witness(_) => 1,
            Self::Group { threshold, members } => {
                let mut costs: Vec<usize> =
                    members.iter().map(|member| member.sum_of_smallest(count)).collect();
                costs.sort_unstable();
                costs.iter().take(count(*threshold, members.len())).sum()
            }
        }
    }
}
