//! `countersign signers new`

use countersign_core::documents::signers::{Group, Role};
use serde_json::json;

use crate::args::{KeyGroups, SignersNewArgs, role_options};
use crate::commands::signers::{Draft, deliver, groups::GivenGroup, groups::group_keys, log::set_log};
use crate::{keys, words::error::CliError, words::output::Output};

pub(crate) fn run(args: &SignersNewArgs, output: Output) -> Result<(), CliError> {
    let (servers, formats) = (args.servers.urls.clone(), args.format.clone());
    let rotation_delay_hours = args.rotation_delay;
    let mut draft = Draft { servers, formats, rotation_delay_hours, ..Draft::default() };
    for (role, given) in args.groups.roles.iter().filter(|(_, given)| !given.keys.is_empty()) {
        draft.roles.insert(*role, read_groups(*role, given)?);
    }
    draft.registrars = args.registrars.iter().map(|key| keys::parse_signer(key)).collect::<Result<_, _>>()?;
    set_log(&mut draft.log, &args.log)?;
    deliver(&draft.finish()?, args.output.as_deref(), output, json!({}))
}

fn read_groups(role: Role, given: &KeyGroups) -> Result<Vec<Group>, CliError> {
    let group = |GivenGroup { threshold, keys }: GivenGroup| {
        let signers = keys.iter().map(|key| keys::parse_signer(key)).collect::<Result<_, _>>()?;
        Ok(Group { threshold, signers })
    };
    let groups = group_keys(role_options(role), given)?;
    groups.into_iter().map(group).collect()
}
