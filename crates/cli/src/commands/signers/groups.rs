//! Groups of keys as options give them.

use crate::{args::KeyGroups, words::error::CliError};

/// A group as its options give it. Keys are text: not every key there is a signer's.
#[derive(Debug)]
pub(super) struct GivenGroup {
    pub(super) threshold: usize,
    pub(super) keys: Vec<String>,
}

/// Puts keys into groups. One threshold is that of all keys. With more, each is that of the keys before it.
pub(super) fn group_keys(
    [keys, threshold]: [&str; 2],
    given: &KeyGroups,
) -> Result<Vec<GivenGroup>, CliError> {
    let (all, thresholds) = ([given.keys.concat()], &given.thresholds);
    let groups = if thresholds.len() == 1 { &all[..] } else { &given.keys };
    if groups.len() != thresholds.len() {
        return Err(CliError::usage(
            format!("--{keys} is given {} times, and --{threshold} {} times", groups.len(), thresholds.len()),
            format!("give each group its threshold: --{keys} KEY… --{threshold} N"),
        ));
    }
    let group =
        |(threshold, keys): (&usize, &Vec<String>)| GivenGroup { threshold: *threshold, keys: keys.clone() };
    Ok(thresholds.iter().zip(groups).map(group).collect())
}
