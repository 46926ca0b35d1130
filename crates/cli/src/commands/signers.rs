//! `countersign signers`

pub(crate) mod edit;
pub(crate) mod history;
pub(crate) mod idle;
mod log;

use std::{collections::BTreeMap, fs, path::Path};

use countersign_core::documents::signers::{Group, RebuildPolicy, Role, Signer, SignersFile};
use countersign_core::documents::{history::History, layout};
use countersign_core::rules::{chain, chain::VerifiedChain, stored};
use countersign_core::values::{
    digest::Sha512, key::KeyFormat, key::PublicKey, path::RepoPath, shown::plural,
};
use countersign_explain::strength::{ActStrength, Strength};
use countersign_explain::words::{describe_delay, describe_rebuilds, shown_signers};
use countersign_explain::{log_strength::LogStrength, strength};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::args::{GroupName, SignersNewArgs, WantedRebuildArgs};
use crate::client::session::{Reader, Session};
use crate::client::{ServerClient, now, targets::ReleaseName, targets::ServerPath};
use crate::commands::signers::log::{LogDraft, set_log};
use crate::evidence::{proof, proof::Network, repository_copy::RepositoryView};
use crate::words::{error::CliError, error::shown_path, output::Output, output::without_empty};
use crate::{keys, settings::config_dir::write_new, settings::trust::TrustFile};

/// Runs `countersign signers new`.
pub(crate) fn make(args: &SignersNewArgs, output: Output) -> Result<(), CliError> {
    let mut draft = Draft::default();
    draft.set("servers", &args.servers.urls);
    draft.set("formats", &args.format);
    draft.set("rotation_delay_hours", args.rotation_delay);
    draft.set_rebuilds(&args.rebuilds);
    let thresholds = args.threshold.iter().map(|text| GroupName::split_threshold(text));
    let thresholds: Vec<(GroupName, usize)> = thresholds.collect::<Result<_, _>>()?;
    for (role, given) in &args.roles.0 {
        let own = thresholds.iter().filter(|(place, _)| place.role == *role);
        let own: Vec<(Option<usize>, usize)> = own.map(|(place, needed)| (place.number, *needed)).collect();
        if !given.is_empty() || !own.is_empty() {
            draft.roles.insert(*role, read_groups(*role, given, &own)?);
        }
    }
    draft.registrars = args.registrars.iter().map(|key| keys::parse_signer(key)).collect::<Result<_, _>>()?;
    set_log(&mut draft.log, &args.log)?;
    let file = draft.finish(|role| format!("--{}", role.name()))?;
    deliver(&file, args.output.as_deref(), output, json!({}))
}

/// Makes a signers file with one group of artifact signers.
pub(super) fn make_plain(artifact: Group, servers: Vec<String>) -> Result<SignersFile, CliError> {
    let mut draft = Draft { roles: [(Role::Artifact, vec![artifact])].into(), ..Draft::default() };
    draft.set("servers", servers);
    draft.finish(|_| "--signer".to_owned())
}

/// Puts the keys of a role into groups. One threshold without a number is that of all keys. Else each time that the
/// option was given is a group, and its threshold has the number of the group.
fn read_groups(
    role: Role,
    given: &[Vec<String>],
    thresholds: &[(Option<usize>, usize)],
) -> Result<Vec<Group>, CliError> {
    let all = [given.concat()];
    let groups = if let [(None, _)] = thresholds { &all[..] } else { given };
    let numbered: BTreeMap<usize, usize> =
        thresholds.iter().map(|(number, needed)| (number.unwrap_or_default(), *needed)).collect();
    let name = role.name();
    if given.is_empty() || numbered.len() != thresholds.len() || !numbered.keys().copied().eq(0..groups.len())
    {
        let (groups, given) = (given.len(), thresholds.len());
        return Err(CliError::usage(
            format!(
                "--{name} is given {groups} time{}, and --threshold {given} time{} for it",
                plural(groups),
                plural(given)
            ),
            match groups {
                0 | 1 => format!(
                    "give the keys and how many of them are needed: --{name} KEY… --threshold {name}:N"
                ),
                _ => format!("give each group its threshold: --threshold {name}.1:N for the first"),
            },
        ));
    }
    let group = |(keys, threshold): (&Vec<String>, usize)| {
        let signers = keys.iter().map(|key| keys::parse_signer(key)).collect::<Result<_, _>>()?;
        Ok(Group { threshold, signers })
    };
    groups.iter().zip(numbered.into_values()).map(group).collect()
}

/// Whether a word means a signers file. The name of a project has a slash.
fn means_file(source: &str) -> bool {
    source.ends_with(".json") || !source.contains('/') || Path::new(source).is_file()
}

/// Runs `countersign signers check FILE`.
pub(crate) fn check(path: &Path, output: Output) -> Result<(), CliError> {
    let (file, bytes) = read(path)?;
    let (lines, value) = describe_file(&shown_path(path), &file, &Sha512::of(&bytes), output);
    output.answer(&output.list(&lines.join("\n")), &value)
}

/// What a signers file withstands. `name`: safe to show.
fn describe_file(name: &str, file: &SignersFile, digest: &Sha512, output: Output) -> (Vec<String>, Value) {
    let strength = strength::assess(file);
    let registrars = file.registrars();
    let digest = digest.to_prefixed();
    let mut lines = vec![format!("{name} is valid, of {}", file.timestamp())];
    lines.push(format!("digest: {digest}"));
    lines.extend(describe_strength(&strength, output));
    lines.extend(describe_delay(file));
    lines.extend(describe_rebuilds(file));
    if !registrars.is_empty() {
        lines.push("To register releases, and nothing else:".to_owned());
        lines.push(format!("  alone: {}", shown_signers(registrars)));
    }
    let all = file.keys().into_iter().chain(registrars.iter().map(|registrar| registrar.key));
    let touched: Vec<Signer> =
        all.map(|key| file.named_signer(key)).filter(|signer| signer.format == KeyFormat::Fido).collect();
    if !touched.is_empty() {
        lines
            .push(format!("FIDO keys, which sign only if someone touches them: {}", shown_signers(&touched)));
    }
    if !file.formats().is_empty() {
        let names: Vec<&str> = file.formats().iter().map(|format| format.name()).collect();
        lines.push(format!("Artifact signers are asked to sign for {} as well.", names.join(", ")));
    }
    if !file.unknown_formats().is_empty() {
        let names = file.unknown_formats().join(", ");
        lines.push(format!("This version does not know these formats, and ignores them: {names}."));
    }
    let mut value = json!({
        "valid": true,
        "timestamp": file.timestamp(),
        "digest": digest,
        "keys": file.keys().len(),
        "registrars": keys_of(registrars),
        "fido_keys": keys_of(&touched),
        "formats": file.formats(),
        "unknown_formats": file.unknown_formats(),
        "rotation_delay_hours": file.rotation_delay_hours(),
        "rebuilds": rebuilds_to_json(file),
    });
    add_strength(&mut value, &strength);
    (lines, value)
}

fn read(path: &Path) -> Result<(SignersFile, Vec<u8>), CliError> {
    let bytes = fs::read(path).map_err(|error| CliError::file("read", path, error))?;
    let file = SignersFile::parse(&bytes).map_err(|error| {
        CliError::other(
            format!("{} is not a valid signers file", shown_path(path)),
            "correct what it names; `countersign signers new` writes a valid one",
        )
        .because(error)
    })?;
    Ok((file, bytes))
}

/// What a signers file is made of.
#[derive(Debug, Default)]
struct Draft {
    /// The fields as the file is to have them, without those below. What no option changes stays as it was.
    fields: Map<String, Value>,
    roles: BTreeMap<Role, Vec<Group>>,
    /// The files that builders make, as patterns.
    rebuild_files: Vec<String>,
    /// Whether clients refuse a release before builders have reproduced it.
    requires_rebuilds: bool,
    registrars: Vec<Signer>,
    log: Option<LogDraft>,
}

impl Draft {
    fn set(&mut self, field: &str, value: impl Serialize) {
        self.fields.insert(field.to_owned(), json!(value));
    }

    /// Takes what is given of the builders' work, and leaves the rest as it is.
    fn set_rebuilds(&mut self, given: &WantedRebuildArgs) {
        if !given.rebuild_files.is_empty() {
            self.rebuild_files.clone_from(&given.rebuild_files);
        }
        self.requires_rebuilds |= given.require_rebuilds;
    }

    /// The one reader of signers files says what is wrong, and the one writer how they look.
    /// `keys`: the option that gives a role its keys.
    fn finish(&self, keys: impl Fn(Role) -> String) -> Result<SignersFile, CliError> {
        let builders = self.roles.get(&Role::Builder);
        if builders.is_none() && (self.requires_rebuilds || !self.rebuild_files.is_empty()) {
            let option = if self.requires_rebuilds { "--require-rebuilds" } else { "--rebuild-files" };
            let hint = format!("say who rebuilds: {} and --threshold builder:N", keys(Role::Builder));
            return Err(CliError::usage(format!("{option} needs builders"), hint));
        }
        let mut file = Value::Object(self.fields.clone());
        file["version"] = json!(1);
        file["timestamp"] = json!(now()?.to_whole_milliseconds());
        for role in Role::ALL.into_iter().filter(|role| *role != Role::Builder) {
            file[role.field()] = json!(self.roles.get(&role));
        }
        file["registrars"] = json!(self.registrars);
        file["transparency"] = json!(self.log.as_ref().map(|log| without_empty(log.to_json())));
        let rebuilds = |builders| json!({"builders": builders, "required": self.requires_rebuilds, "files": self.rebuild_files});
        file["rebuilds"] = builders.map_or(Value::Null, |builders| without_empty(rebuilds(builders)));
        SignersFile::parse(without_empty(file).to_string().as_bytes()).map_err(|error| {
            let message = match option_of(&error.field, keys) {
                Some(option) => format!("{option} makes no valid signers file: {}", error.reason),
                None => format!("this is no valid signers file: {error}"),
            };
            CliError::usage(message, "correct it; `countersign signers new --help` shows all forms")
        })
    }
}

/// The option that a field of a signers file comes from.
fn option_of(field: &str, keys: impl Fn(Role) -> String) -> Option<String> {
    let first = field.split(['.', '[']).next().unwrap_or_default();
    let is_of = |role: &Role| {
        field.strip_prefix(role.field()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let role = Role::ALL.into_iter().find(is_of);
    let option = match (first, role) {
        (_, Some(role)) if field.ends_with("threshold") => {
            return Some(format!("--threshold {}:N", role.name()));
        }
        (_, Some(role)) => return Some(keys(role)),
        ("rebuilds", None) => "--rebuild-files",
        ("registrars", None) => "--registrar",
        ("servers", None) => "--server",
        ("formats", None) => "--format",
        ("rotation_delay_hours", None) => "--rotation-delay",
        ("transparency", None) if field.contains("log") => "--log",
        ("transparency", None) if field.contains("max_age") => "--max-age",
        ("transparency", None) if field.contains("threshold") => "--witness-threshold",
        ("transparency", None) if field.contains("replaying") => "--replaying",
        ("transparency", None) => "--witness",
        (_, None) => return None,
    };
    Some(option.to_owned())
}

/// Prints the file, or writes it to a path that does not exist yet.
fn deliver(
    file: &SignersFile,
    target: Option<&Path>,
    output: Output,
    mut value: Value,
) -> Result<(), CliError> {
    let text = file.write();
    match target {
        None => {
            let text = String::from_utf8_lossy(&text);
            value["signers_file"] = json!(text);
            output.answer(&text, &value)
        }
        Some(path) => {
            // A signers file says who is trusted: one that is there is never replaced by accident.
            write_new(path, &text, 0o666)?;
            value["file"] = json!(path.display().to_string());
            let shown = shown_path(path);
            let hint = format!("Wrote {shown}. `countersign signers check {shown}` says what it withstands.");
            output.result(&hint, &value)
        }
    }
}

fn describe_strength(strength: &Strength, output: Output) -> Vec<String> {
    let mut lines: Vec<String> = strength.acts().map(ActStrength::to_string).collect();
    if let Some(log) = &strength.log {
        lines.push("To prove the newest state:".to_owned());
        lines.extend(log.to_string().lines().map(|line| format!("  {line}")));
    }
    lines.extend(strength.warnings.iter().map(|warning| format!("{} {warning}", output.bad("warning:"))));
    lines
}

fn add_strength(value: &mut Value, strength: &Strength) {
    if let Some(LogStrength { transparency, tolerance, .. }) = &strength.log {
        value["log"] = json!(transparency);
        value["log"]["must_collude"] = json!(tolerance.map_or(0, |tolerance| tolerance.must_collude));
        value["log"]["must_lie"] = json!(tolerance.map_or(0, |tolerance| tolerance.must_lie));
        value["log"]["may_be_down"] = json!(tolerance.map_or(0, |tolerance| tolerance.may_be_down));
    }
    value["acts"] = strength.acts().map(act_to_json).collect();
    value["warnings"] = strength.warnings.iter().map(|warning| json!(warning.to_string())).collect();
}

/// What is wanted of builders. Who they are stands with the other roles and acts.
pub(crate) fn rebuilds_to_json(file: &SignersFile) -> Value {
    let wanted = |rebuilds: &RebuildPolicy| json!({"files": rebuilds.files, "required": rebuilds.required});
    file.rebuilds().map_or(Value::Null, wanted)
}

fn act_to_json(act: &ActStrength) -> Value {
    json!({
        "act": act.act.to_string(),
        "ways": act.ways.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "alone": keys_of(&act.alone),
        "harmless_thefts": act.harmless_thefts,
        "survivable_losses": act.survivable_losses,
    })
}

fn keys_of(signers: &[Signer]) -> Vec<PublicKey> {
    signers.iter().map(|signer| signer.key).collect()
}

// Where a signers file comes from: a file that is here, a project on a server, or one in a repository.

/// A file that is here, or the file in force of a project, verified from the first one on.
pub(crate) async fn find_signers(
    session: &Session,
    source: &str,
    repository: Option<&Path>,
) -> Result<SignersFile, CliError> {
    if let Some(dir) = repository {
        let view = RepositoryView::open(dir, session.output)?;
        return Ok(find_in_repository(&view, source)?.last().signers.clone());
    }
    if means_file(source) {
        return Ok(read(Path::new(source))?.0);
    }
    Ok(find_on_server(session, source).await?.1.last().signers.clone())
}

fn find_in_repository(view: &RepositoryView, name: &str) -> Result<VerifiedChain, CliError> {
    let project = view.find_project(name)?;
    let entries = 1..=stored::history_len(&view.head, &project);
    let history = stored::history(&view.head, &project, entries).map_err(|error| {
        CliError::other(
            format!("the history of {project} cannot be read"),
            "`countersign fsck` says what is damaged",
        )
        .because(error)
    })?;
    verify_history(&history, &project, "the repository")
}

/// The server as well, for what else there is to ask.
async fn find_on_server(session: &Session, source: &str) -> Result<(ServerClient, VerifiedChain), CliError> {
    let name = ReleaseName::parse_project(source)?;
    let ServerPath { client, path, .. } = session.find_path(&name, Reader::Signer).await?;
    let shown = client.state_at(&layout::active_signers(&path)).await?;
    let chain = verify_history(shown.history(), &path, &format!("the server {}", client.address()))?;
    Ok((client, chain))
}

fn verify_history(history: &History, path: &RepoPath, whose: &str) -> Result<VerifiedChain, CliError> {
    if history.entries.is_empty() {
        return Err(CliError::other(
            format!("{whose} has no signers in force at {path}"),
            "name a project whose signers are in force, or a signers file that is here",
        ));
    }
    let chain = chain::verify(history, path).map_err(|error| {
        CliError::unverified(
            format!("the history that {whose} shows for {path} is not valid"),
            "do not build on it: the server lies or is broken",
        )
        .because(error)
    })?;
    proof::check_pin(&TrustFile::locate()?.read()?, &chain, Network::Online)?;
    Ok(chain)
}
