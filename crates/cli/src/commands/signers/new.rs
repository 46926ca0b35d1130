//! `countersign signers new`

use countersign_core::documents::signers::Group;
use serde_json::json;

use super::{
    Draft, deliver,
    groups::{GivenGroup, group_keys},
    log::set_log,
};
use crate::{
    args::{RoleArgs, SignersNewArgs, role_options},
    error::CliError,
    keys,
    output::Output,
};

pub(crate) fn run(args: &SignersNewArgs, output: Output) -> Result<(), CliError> {
    let (servers, formats) = (args.servers.urls.clone(), args.format.clone());
    let rotation_delay_hours = args.rotation_delay;
    let mut draft = Draft { servers, formats, rotation_delay_hours, ..Draft::default() };
    for role in args.groups.roles.iter().filter(|role| !role.keys.is_empty()) {
        draft.roles.insert(role.role, read_groups(role)?);
    }
    draft.registrars = args.registrars.iter().map(|key| keys::parse_signer(key)).collect::<Result<_, _>>()?;
    set_log(&mut draft.log, &args.log)?;
    deliver(&draft.finish()?, args.output.as_deref(), output, json!({}))
}

fn read_groups(given: &RoleArgs) -> Result<Vec<Group>, CliError> {
    let group = |GivenGroup { threshold, keys }: GivenGroup| {
        let signers = keys.iter().map(|key| keys::parse_signer(key)).collect::<Result<_, _>>()?;
        Ok(Group { threshold, signers })
    };
    let groups = group_keys(role_options(given.role), &given.keys, &given.thresholds)?;
    groups.into_iter().map(group).collect()
}
