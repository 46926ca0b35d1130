//! `countersign signers new`

use countersign_core::documents::signers::Group;
use serde_json::json;

use super::{Draft, deliver};
use crate::{
    args::{RoleArgs, SignersNewArgs, role_options},
    error::CliError,
    keys,
    output::Output,
};

pub(crate) fn run(args: &SignersNewArgs, output: Output) -> Result<(), CliError> {
    let mut draft = Draft { servers: args.servers.urls.clone(), ..Draft::default() };
    for role in args.groups.roles.iter().filter(|role| !role.keys.is_empty()) {
        draft.roles.insert(role.role, read_groups(role)?);
    }
    deliver(&draft.finish()?, args.output.as_deref(), output, json!({}))
}

/// The first threshold is that of the first keys, and so on.
fn read_groups(given: &RoleArgs) -> Result<Vec<Group>, CliError> {
    let [keys, threshold] = role_options(given.role);
    if given.keys.len() != given.thresholds.len() {
        return Err(CliError::usage(
            format!(
                "--{keys} is given {} times, and --{threshold} {} times",
                given.keys.len(),
                given.thresholds.len()
            ),
            format!("give each group its threshold: --{keys} KEY… --{threshold} N"),
        ));
    }
    let group = |(keys, threshold): (&Vec<String>, &usize)| {
        let signers = keys.iter().map(|key| keys::parse_signer(key)).collect::<Result<_, _>>()?;
        Ok(Group { threshold: *threshold, signers })
    };
    given.keys.iter().zip(&given.thresholds).map(group).collect()
}
