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
    /// The number of all witnesses that count.
    pub witnesses: usize,
    /// The fewest witnesses that are enough.
    pub needed: usize,
    /// How many witnesses can be down, any of them, while the rest is still enough.
    pub may_be_down: usize,
    /// The fewest that must collude with the log, so that two views of it both have enough cosignatures. 0: the log alone
    /// can show two views.
    pub must_collude: usize,
    /// The fewest witnesses, all said to replay the rules, that must collude with the log, so that a state which its commits
    /// do not give has enough cosignatures. 0: the log alone can lie about the state.
    pub must_lie: usize,
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

    /// Computes what the quorum withstands. `replaying` are the witnesses that replay the rules.
    pub fn tolerance(&self, replaying: &BTreeSet<PublicKey>) -> Tolerance {
        let each = &|_: &PublicKey| 1;
        Tolerance {
            witnesses: self.keys().len(),
            needed: self.sum_of_smallest(&|threshold, _| threshold, each),
            // A group is out of reach when so many members are that too few remain.
            may_be_down: self.sum_of_smallest(&|threshold, members| members - threshold + 1, each) - 1,
            // Two selections of members have at least so many in common.
            must_collude: self
                .sum_of_smallest(&|threshold, members| (2 * threshold).saturating_sub(members), each),
            // A witness that does not look at the commits cosigns a lie about them in good faith.
            must_lie: self
                .sum_of_smallest(&|threshold, _| threshold, &|key| usize::from(replaying.contains(key))),
        }
    }

    /// The fewest witnesses, each counted as `cost` says, if in each group as many members must be won as `count` says of
    /// its threshold and size.
    fn sum_of_smallest(
        &self,
        count: &impl Fn(usize, usize) -> usize,
        cost: &impl Fn(&PublicKey) -> usize,
    ) -> usize {
        match self {
            Self::Witness(key) => cost(key),
            Self::Group { threshold, members } => {
                let mut costs: Vec<usize> =
                    members.iter().map(|member| member.sum_of_smallest(count, cost)).collect();
                costs.sort_unstable();
                costs.iter().take(count(*threshold, members.len())).sum()
            }
        }
    }
}
