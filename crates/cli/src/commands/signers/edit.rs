//! `countersign signers edit`: the next signers file, made from the one in force.

use std::collections::BTreeSet;

use countersign_core::documents::signers::{Group, Role, Signer, SignersFile};
use countersign_core::values::{key::PublicKey, shown::quoted, shown::shown_text};
use countersign_explain::{difference::list_changes, strength};
use serde_json::json;

use crate::args::{GlobalArgs, GroupName, SignersEditArgs};
use crate::commands::signers::log::{LogDraft, set_log};
use crate::commands::signers::{Draft, add_strength, deliver, describe_strength, find_signers};
use crate::settings::client_config::ClientConfigFile;
use crate::{client::session::Session, evidence::review::change_lines, keys, words::error::CliError};

/// The word before a key that registers releases. Registrars have no groups and no threshold (D105).
const REGISTRAR: &str = "registrar:";
const SERVER_VARIABLE: &str = "COUNTERSIGN_SERVER";

/// `--server` names servers for the file. One of them is asked only where no other is known.
pub(crate) fn choose_server(mut global: GlobalArgs, args: &SignersEditArgs) -> GlobalArgs {
    if args.servers.urls.is_empty() {
        return global;
    }
    let config = ClientConfigFile::locate().and_then(|file| file.read()).unwrap_or_default();
    let known = std::env::var(SERVER_VARIABLE).ok().filter(|server| !server.is_empty());
    global.server = match known {
        None if config.all_servers().is_empty() => args.servers.urls.first().cloned(),
        known => known,
    };
    global
}

pub(crate) async fn run(session: &Session, args: &SignersEditArgs) -> Result<(), CliError> {
    let current = find_signers(session, &args.source, None).await?;
    let mut draft = Draft::of(&current);
    draft.edit(args)?;
    let next = draft.finish_after(&current)?;
    let changes = list_changes(Some(&current), &next);
    if changes.is_empty() {
        return Err(CliError::usage(
            "nothing changes",
            "say what to change: `countersign signers edit --help` shows the options",
        ));
    }
    let strength = strength::assess(&next);
    let mut lines = vec![session.output.strong("What changes:")];
    lines.extend(change_lines(&changes, session.output));
    lines.push(session.output.strong("What the new file withstands:"));
    lines.extend(describe_strength(&strength, session.output));
    session.output.note(&lines.join("\n"));
    let mut value = json!({"changes": changes.iter().map(ToString::to_string).collect::<Vec<_>>()});
    add_strength(&mut value, &strength);
    deliver(&next, args.output.as_deref(), session.output, value)
}

/// The next file, without these keys.
pub(crate) fn without_keys(
    current: &SignersFile,
    keys: &BTreeSet<PublicKey>,
) -> Result<SignersFile, CliError> {
    let mut draft = Draft::of(current);
    keys.iter().for_each(|key| draft.remove(key));
    draft.check_thresholds()?;
    draft.finish_after(current)
}

impl Draft {
    fn of(file: &SignersFile) -> Self {
        let listed = |role| Some((role, file.explicit_groups(role)?.to_vec()));
        let patterns = file.rebuilds().into_iter().flat_map(|rebuilds| &rebuilds.files);
        Self {
            fields: json!(file).as_object().cloned().unwrap_or_default(),
            roles: Role::ALL.into_iter().filter_map(listed).collect(),
            rebuild_files: patterns.map(|pattern| pattern.as_str().to_owned()).collect(),
            requires_rebuilds: file.rebuilds().is_some_and(|rebuilds| rebuilds.required),
            registrars: file.registrars().to_vec(),
            log: file.transparency().map(LogDraft::of),
        }
    }

    /// Keys leave before others come, so that a name can be given again.
    fn edit(&mut self, args: &SignersEditArgs) -> Result<(), CliError> {
        if args.no_rebuilds {
            self.roles.remove(&Role::Builder);
            self.forget_rebuilds();
        }
        for text in &args.replace {
            self.replace(text)?;
        }
        for text in &args.remove {
            let key = self.find_key(text)?;
            self.remove(&key);
        }
        let mut founded = Vec::new();
        for text in &args.add {
            founded.extend(self.add(text)?);
        }
        let mut set = Vec::new();
        for text in &args.threshold {
            let (group, threshold) = GroupName::split_threshold(text)?;
            self.group_mut(group)?.threshold = threshold;
            set.push(group.role);
        }
        // A role without keys is none. Of the artifact signers the reader says that they are needed.
        for groups in self.roles.values_mut() {
            groups.retain(|group| !group.signers.is_empty());
        }
        self.roles.retain(|role, groups| *role == Role::Artifact || !groups.is_empty());
        self.requires_rebuilds &= !args.no_require_rebuilds;
        if !self.roles.contains_key(&Role::Builder) {
            self.leave_without_builders()?;
        }
        self.set_rebuilds(&args.rebuilds);
        if let Some(role) = founded.into_iter().find(|role| !set.contains(role)) {
            let name = role.name();
            return Err(CliError::usage(
                format!("{role} are new, and nothing says how many of them are needed"),
                format!("pass --threshold {name}:N"),
            ));
        }
        self.check_thresholds()?;
        if !args.servers.urls.is_empty() {
            self.set("servers", &args.servers.urls);
        }
        if args.no_formats || !args.format.is_empty() {
            self.set("formats", &args.format);
        }
        if args.no_rotation_delay || args.rotation_delay.is_some() {
            self.set("rotation_delay_hours", args.rotation_delay);
        }
        if args.no_log {
            self.log = None;
        }
        set_log(&mut self.log, &args.log)?;
        Ok(())
    }

    fn finish_after(&self, current: &SignersFile) -> Result<SignersFile, CliError> {
        let next = self.finish(|role| format!("--add {}:KEY", role.name()))?;
        if next.timestamp() <= current.timestamp() {
            return Err(CliError::other(
                format!(
                    "the signers file in force is dated {}, which is not in the past",
                    current.timestamp()
                ),
                "check this computer's clock: the next file must have a later time",
            ));
        }
        Ok(next)
    }

    fn remove(&mut self, key: &PublicKey) {
        for group in self.roles.values_mut().flatten() {
            group.signers.retain(|signer| signer.key != *key);
        }
        self.registrars.retain(|registrar| registrar.key != *key);
    }

    fn forget_rebuilds(&mut self) {
        self.rebuild_files.clear();
        self.requires_rebuilds = false;
    }

    /// What was wanted of builders goes with the last of them, unless clients count on it.
    fn leave_without_builders(&mut self) -> Result<(), CliError> {
        if self.requires_rebuilds {
            return Err(CliError::usage(
                "no builder is left, and clients refuse releases that no builder has reproduced",
                "pass --no-rebuilds if releases need no builders any more, or name another: --add builder:NAME=KEY",
            ));
        }
        self.forget_rebuilds();
        Ok(())
    }

    fn check_thresholds(&self) -> Result<(), CliError> {
        for (role, groups) in &self.roles {
            let Some(i) = groups.iter().position(|group| group.threshold > group.signers.len()) else {
                continue;
            };
            let (needed, left) = (groups[i].threshold, groups[i].signers.len());
            let group = GroupName { role: *role, number: (groups.len() > 1).then_some(i) };
            return Err(CliError::usage(
                match left {
                    1 => format!("{role} need {needed} signatures, and 1 key is left"),
                    _ => format!("{role} need {needed} signatures, and {left} keys are left"),
                },
                format!("pass --threshold {}:N too, or keep more keys", group.name()),
            ));
        }
        Ok(())
    }

    fn replace(&mut self, text: &str) -> Result<(), CliError> {
        let (old, new) = text.split_once('=').ok_or_else(|| {
            let message = format!("`{}` must be OLD=NEW", shown_text(text));
            CliError::usage(message, "as in --replace bob=bob-new.pub")
        })?;
        let old = self.find_key(old)?;
        let new = keys::parse_signer(new)?;
        let in_roles = self.roles.values_mut().flatten().flat_map(|group| &mut group.signers);
        for signer in in_roles.chain(&mut self.registrars) {
            if signer.key == old {
                (signer.key, signer.format) = (new.key, new.format);
                // A name means a person, who may have lost a key.
                signer.name = new.name.clone().or(signer.name.take());
            }
        }
        Ok(())
    }

    /// The role, if the file did not list it.
    fn add(&mut self, text: &str) -> Result<Option<Role>, CliError> {
        if let Some(registrar) = text.strip_prefix(REGISTRAR) {
            self.registrars.push(keys::parse_signer(registrar)?);
            return Ok(None);
        }
        let (group, signer) = GroupName::split(text)?;
        let signer: Signer = keys::parse_signer(signer)?;
        if self.roles.contains_key(&group.role) {
            self.group_mut(group)?.signers.push(signer);
            return Ok(None);
        }
        self.roles.insert(group.role, vec![Group { threshold: 1, signers: vec![signer] }]);
        Ok(Some(group.role))
    }

    fn group_mut(&mut self, group: GroupName) -> Result<&mut Group, CliError> {
        let GroupName { role, number } = group;
        let groups = self.roles.get_mut(&role).map(Vec::as_mut_slice).unwrap_or_default();
        let count = groups.len();
        let name = role.name();
        if number.is_none() && count > 1 {
            return Err(CliError::usage(
                format!("{role} have {count} groups"),
                format!("say which one: {name}.1 is the first"),
            ));
        }
        groups.get_mut(number.unwrap_or_default()).ok_or_else(|| {
            let hint = format!("--add {name}:NAME=KEY adds a key to a role");
            CliError::usage(format!("there is no group {} of {role}", group.name()), hint)
        })
    }

    /// Finds a key by the name that the file gives it, or by the key itself.
    fn find_key(&self, text: &str) -> Result<PublicKey, CliError> {
        let in_roles = || self.roles.values().flatten().flat_map(|group| &group.signers);
        let signers = || in_roles().chain(&self.registrars);
        if let Some(signer) = signers().find(|signer| signer.name.as_deref() == Some(text)) {
            return Ok(signer.key);
        }
        let key = keys::parse_key(text).ok().filter(|key| signers().any(|signer| signer.key == *key));
        key.ok_or_else(|| {
            let mut names: Vec<&str> = signers().filter_map(|signer| signer.name.as_deref()).collect();
            names.sort_unstable();
            names.dedup();
            let names: Vec<String> = names.into_iter().map(quoted).collect();
            CliError::usage(
                format!("the signers file lists no {}", quoted(text)),
                format!(
                    "name a key that it lists, by its name or in full; the names are {}",
                    names.join(", ")
                ),
            )
        })
    }
}
