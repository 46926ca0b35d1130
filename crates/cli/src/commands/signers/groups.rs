//! Groups of keys as options give them.

use crate::error::CliError;

/// One threshold is that of all keys. With more, each is that of the keys before it.
pub(super) fn group_keys(
    [keys, threshold]: [&str; 2],
    given: &[Vec<String>],
    thresholds: &[usize],
) -> Result<Vec<(usize, Vec<String>)>, CliError> {
    let all = [given.concat()];
    let groups = if thresholds.len() == 1 { &all[..] } else { given };
    if groups.len() != thresholds.len() {
        return Err(CliError::usage(
            format!("--{keys} is given {} times, and --{threshold} {} times", groups.len(), thresholds.len()),
            format!("give each group its threshold: --{keys} KEY… --{threshold} N"),
        ));
    }
    Ok(thresholds.iter().copied().zip(groups.iter().cloned()).collect())
}
