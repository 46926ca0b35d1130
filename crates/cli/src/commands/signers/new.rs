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

/// One threshold is that of all keys of a role. With more, each is that of the keys before it.
fn read_groups(given: &RoleArgs) -> Result<Vec<Group>, CliError> {
    let [keys, threshold] = role_options(given.role);
    let all = vec![given.keys.concat()];
    let groups = if given.thresholds.len() == 1 { &all } else { &given.keys };
    if groups.len() != given.thresholds.len() {
        return Err(CliError::usage(
            format!(
                "--{keys} is given {} times, and --{threshold} {} times",
                groups.len(),
                given.thresholds.len()
            ),
            format!("give each group its threshold: --{keys} KEY… --{threshold} N"),
        ));
    }
    let group = |(keys, threshold): (&Vec<String>, &usize)| {
        let signers = keys.iter().map(|key| keys::parse_signer(key)).collect::<Result<_, _>>()?;
        Ok(Group { threshold: *threshold, signers })
    };
    groups.iter().zip(&given.thresholds).map(group).collect()
}
