//! Says the changes of a signers file in sentences.

use std::fmt;

use countersign_core::documents::signers::{Role, Signer};

use crate::difference::{GroupChange, SignersChange};
use crate::words::{rule_text, shown_group, shown_groups, shown_hours, shown_signer, shown_signers};

impl fmt::Display for SignersChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RegistrarJoined(signer) => {
                write!(
                    f,
                    "{} becomes a registrar: it can register new releases, and nothing else",
                    shown_signer(signer)
                )
            }
            Self::RegistrarLeft(signer) => write!(f, "{} is no longer a registrar", shown_signer(signer)),
            Self::Delay { before, after } => write_delay(f, *before, *after),
            Self::Servers(servers) if servers.is_empty() => f.write_str("the file names no servers"),
            Self::Servers(servers) => write!(f, "servers: {}", servers.join(", ")),
            Self::Formats(formats) if formats.is_empty() => {
                f.write_str("artifact signers are asked for no other formats")
            }
            Self::Formats(formats) => {
                let names: Vec<_> = formats.iter().map(|format| format.name()).collect();
                write!(f, "artifact signers are asked to sign for {} as well", names.join(" and "))
            }
            Self::Founded { role, groups: Some(groups) } => write!(f, "{role}: {}", shown_groups(groups)),
            Self::Founded { role, groups: None } => write!(f, "no {role}: {}", default_of(*role)),
            Self::NameMoved { from, to } => write!(
                f,
                "WARNING: a name now stands for another key: it was {}, and is to be {}",
                shown_signer(from),
                shown_signer(to)
            ),
            Self::Weakened { role, before, after } => {
                let is_certain = before.is_exact() && after.is_exact();
                let mark = if is_certain { "WEAKER" } else { "PERHAPS WEAKER" };
                write!(f, "{mark}: {after} can {}; before, it took {before}", power_of(*role))
            }
            Self::Joined { signer, roles } => {
                write!(f, "{} joins as {}", shown_signer(signer), shown_titles(roles))
            }
            Self::Left { signer, roles } => {
                write!(f, "{} leaves, and was {}", shown_signer(signer), shown_titles(roles))
            }
            Self::RolesChanged { signer, gained, lost } => {
                write!(f, "{} stays", shown_signer(signer))?;
                if !gained.is_empty() {
                    write!(f, ", becomes {}", shown_titles(gained))?;
                }
                if !lost.is_empty() {
                    write!(f, ", is no longer {}", shown_titles(lost))?;
                }
                Ok(())
            }
            Self::Renamed { before, after } => write_renamed(f, before, after),
            Self::GroupChanged(change) => change.fmt(f),
            Self::Log(change) => change.fmt(f),
            Self::GroupAdded { role, group } => {
                write!(f, "{role}: one more group must agree, {}", shown_group(group))
            }
            Self::GroupRemoved { role, group } => {
                write!(f, "{role}: a group need no longer agree, {}", shown_group(group))
            }
            Self::RoleListed { role, groups } => {
                let (default, groups) = (default_of(*role), shown_groups(groups));
                write!(f, "{role} are listed, and it no longer holds that {default}; {groups}")
            }
            Self::RoleUnlisted { role, groups } => {
                let (default, groups) = (default_of(*role), shown_groups(groups));
                write!(f, "{role} are no longer listed, so that {default}; they were {groups}")
            }
        }
    }
}

impl fmt::Display for GroupChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, before, after, is_only } = self;
        write!(f, "{role}")?;
        if !is_only {
            write!(f, ", the group of {}", shown_signers(&self.stayed()))?;
        }
        let [was, is] = [before, after].map(|group| rule_text(group.threshold, group.signers.len()));
        let verb = if was == is { "stays" } else { "becomes" };
        write!(f, ": {was} {verb} {is}")?;
        for (verb, signers) in [("adds", self.came()), ("removes", self.went())] {
            if !signers.is_empty() {
                write!(f, "; {verb} {}", shown_signers(&signers))?;
            }
        }
        Ok(())
    }
}

fn write_delay(f: &mut fmt::Formatter<'_>, before: Option<u64>, after: Option<u64>) -> fmt::Result {
    match (before.map(shown_hours), after.map(shown_hours)) {
        (None, None) => f.write_str("rotations do not wait"),
        (None, Some(hours)) => {
            write!(f, "rotations wait {hours} from then on, unless the masters agree, who can veto meanwhile")
        }
        (Some(hours), None) => {
            write!(f, "WEAKER: rotations take effect at once; before, they waited {hours}")
        }
        (Some(waited), Some(wait)) => {
            let mark = if after < before { "WEAKER: " } else { "" };
            write!(f, "{mark}rotations wait {wait}; before, they waited {waited}")
        }
    }
}

fn write_renamed(f: &mut fmt::Formatter<'_>, before: &Signer, after: &Signer) -> fmt::Result {
    match (&before.name, &after.name) {
        (None, _) => write!(f, "{} gets a name: {}", before.key, shown_signer(after)),
        (Some(_), None) => write!(f, "{} loses its name", shown_signer(before)),
        (Some(_), Some(_)) => {
            write!(f, "{} gets another name: {}", shown_signer(before), shown_signer(after))
        }
    }
}

fn shown_titles(roles: &[Role]) -> String {
    let title = |role: &Role| match role {
        Role::Artifact => "artifact signer",
        Role::Admin => "admin",
        Role::Master => "master",
        Role::Revocation => "revoker",
    };
    roles.iter().map(title).collect::<Vec<_>>().join(" and ")
}

fn power_of(role: Role) -> &'static str {
    match role {
        Role::Artifact => "release",
        Role::Admin => "rotate the signers as admins",
        Role::Master => "rotate the signers as masters",
        Role::Revocation => "revoke",
    }
}

/// What holds where the file does not list the role (D8).
fn default_of(role: Role) -> &'static str {
    match role {
        Role::Artifact => "no one releases",
        Role::Admin => "the artifact signers are the admins",
        Role::Master => "no one is master",
        Role::Revocation => "any one admin key revokes",
    }
}
