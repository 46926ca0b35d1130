//! How many signatures there are, and how many are needed: "1 of 2 signatures". No rule depends on these numbers; whether
//! a role has agreed, `quorum` says.

use std::{collections::BTreeSet, fmt};

use serde::Serialize;

use crate::documents::signers::{Group, SignersFile};
use crate::json_fields;
use crate::rules::consent::{Condition, Consent};
use crate::rules::quorum;
use crate::values::{key::PublicKey, shown::plural};

/// Signatures that count, and signatures that are needed. Each group of signers counts up to its threshold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SignatureCount))]
pub struct Tally {
    pub collected: usize,
    pub needed: usize,
}

json_fields!(part Tally { collected, needed });

impl Tally {
    pub fn of<'a>(groups: impl IntoIterator<Item = &'a Group>, signed: &BTreeSet<PublicKey>) -> Self {
        let counted = groups.into_iter().map(|group| (quorum::count(group, signed), group.threshold));
        counted.fold(Self::default(), |tally, (count, threshold)| Self {
            collected: tally.collected + count.min(threshold),
            needed: tally.needed + threshold,
        })
    }

    /// The tally of a proposed signers file, over all conditions.
    pub fn of_consent(consent: &Consent<'_>, signed: &BTreeSet<PublicKey>) -> Self {
        consent.conditions().iter().fold(Self::default(), |tally, condition| {
            let Self { collected, needed } = Self::of_condition(condition, signed);
            Self { collected: tally.collected + collected, needed: tally.needed + needed }
        })
    }

    /// The tally of a condition, for which one way is enough. It counts the begun way that needs the fewest further
    /// signatures; before that the first way, so that the numbers do not change from way to way (D183).
    pub fn of_condition(condition: &Condition<'_>, signed: &BTreeSet<PublicKey>) -> Self {
        let ways: Vec<Self> = condition.ways.iter().map(|way| Self::of(way.groups.iter(), signed)).collect();
        let begun = ways.iter().filter(|way| way.collected > 0);
        let nearest = begun.min_by_key(|way| way.needed - way.collected);
        nearest.or(ways.first()).copied().unwrap_or_default()
    }

    /// The tally of a revocation under this signers file.
    pub fn of_revocation(signers: &SignersFile, signed: &BTreeSet<PublicKey>) -> Self {
        Self::of(signers.revocation_groups().iter(), signed)
    }
}

/// Says how far something has come, as in `1 of 2 signatures`.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collected, needed } = self;
        write!(f, "{collected} of {needed} signature{}", plural(*needed))
    }
}
