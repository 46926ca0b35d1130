//! What to do about it, for review: new signers files, revocations to sign, and the commands in order (D144). Nothing is
//! changed here.

use std::{collections::BTreeSet, fs, path::Path};

use countersign_api::requests::write_statement_requests;
use countersign_core::documents::signers::{Group, Signer, SignersFile, has_member, keys_of};
use countersign_core::documents::statement::{Revocation, StatementKind};
use countersign_core::documents::{history::History, layout};
use countersign_core::proof::to_state::StatementRequest;
use countersign_core::rules::{chain, chain::VerifiedChain, quorum, snapshot::Snapshot, stored};
use countersign_core::values::shown::{is_unseen, plural, shown_text, shown_within};
use countersign_core::values::{digest::Sha512, key::PublicKey, path::RepoPath, wire};
use countersign_explain::incident::{
    IncidentQuestion, KeyRemoval, KeyShortage, ListingStanding, OpenKind, OpenMatter, ProjectIncident,
};
use countersign_explain::words::{shown_hours, shown_signers};
use serde_json::{Value, json};

use crate::args::IncidentArgs;
use crate::commands::incident::fetched::{Findings, unreadable};
use crate::commands::propose::place_beside;
use crate::commands::signers::edit::without_keys;
use crate::words::error::{CliError, REASON_HINT, shown_path};
use crate::words::{output::Output, output::quote, table::when_text};
use crate::{client::now, settings::config_dir::is_free, settings::config_dir::write_new};

/// A line that names everyone in a large team.
const MOST_SHOWN: usize = 10_000;
const REASON: &str = "signed with a key that is no longer trusted";
const COMMANDS_FILE: &str = "commands.txt";
const REVOCATIONS_FILE: &str = "revocations.json";

pub(super) struct Preparation {
    pub(super) projects: Vec<PreparedProject>,
    /// What could not be prepared, and why.
    pub(super) faults: Vec<String>,
    is_written: bool,
}

pub(super) struct PreparedProject {
    pub(super) project: RepoPath,
    /// Below the directory that was asked for.
    dir_name: String,
    next: Option<SignersFile>,
    revocations: Vec<StatementRequest>,
    steps: Vec<ResponseStep>,
}

/// The revocation of one release, to be signed.
struct PreparedRevocation {
    request: StatementRequest,
    /// Whether it replaces one that only named keys began.
    replaces: bool,
}

/// One thing to do, in its turn.
struct ResponseStep {
    /// A line of our own words and of escaped text.
    about: String,
    /// The commands as they are typed.
    commands: Vec<String>,
}

impl ResponseStep {
    /// Text from outside must not become a line of its own: people paste these lines.
    fn new(about: impl AsRef<str>, commands: impl IntoIterator<Item = String>) -> Self {
        let show = |command: String| match command.chars().any(is_unseen) {
            true => format!("# not to be pasted: {}", shown_text(&command)),
            false => command,
        };
        let about = shown_within(about.as_ref(), MOST_SHOWN);
        Self { about, commands: commands.into_iter().map(show).collect() }
    }
}

/// Checks that a revocation can have this reason.
pub(super) fn check_reason(reason: &str) -> Result<(), CliError> {
    let document =
        Revocation { reason: reason.to_owned(), timestamp: now()?, subject_digest: None, initiator: None };
    let checked = Revocation::parse(&document.write()).map(drop);
    checked.map_err(|error| CliError::usage("the revocations cannot be prepared", REASON_HINT).because(error))
}

/// Checks the directory for the prepared files. It must be missing or empty.
pub(super) fn check_directory(dir: &Path) -> Result<(), CliError> {
    if is_free(dir).map_err(|error| CliError::file("read", dir, error))? {
        return Ok(());
    }
    Err(CliError::usage(
        format!("{} is not empty", shown_path(dir)),
        "name a directory that does not exist yet: nothing is overwritten",
    ))
}

impl Preparation {
    pub(super) fn plan(
        snapshot: &impl Snapshot,
        findings: &Findings,
        args: &IncidentArgs,
        server: Option<&str>,
    ) -> Self {
        let (mut projects, mut faults) = (Vec::new(), Vec::new());
        for incident in &findings.projects {
            let Some(removal) = &incident.removal else { continue };
            let planner = Planner {
                snapshot,
                incident,
                removal,
                question: &findings.question,
                dir: args.output.as_deref().unwrap_or(Path::new("DIR")),
                dir_name: dir_name(projects.len() + 1, &incident.project),
                client: match server {
                    Some(server) => format!("countersign --server {}", quote(server)),
                    None => "countersign".to_owned(),
                },
            };
            let (prepared, unprepared) = planner.plan(args.reason.as_deref().unwrap_or(REASON));
            faults.extend(unprepared.iter().map(|reason| format!("{}: {reason}", incident.project)));
            // What to do about a stranger's project is nothing that its owner leaves to us.
            let is_ours = !findings.is_strangers(incident);
            projects.extend(prepared.filter(|prepared| is_ours && !prepared.steps.is_empty()));
        }
        Self { projects, faults, is_written: args.output.is_some() }
    }

    pub(super) fn describe(&self, output: Output) -> Vec<String> {
        if self.projects.is_empty() {
            return vec![String::new(), "There is nothing to rotate and nothing to revoke.".to_owned()];
        }
        let mut lines = vec![String::new(), output.strong("What to do, in this order:")];
        lines.extend(self.list_steps());
        if !self.is_written {
            lines.push("To have these files made for review, pass -o DIR. Nothing was changed.".to_owned());
        }
        lines
    }

    /// Lines that can be pasted: what is not a command is a comment.
    fn list_steps(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for prepared in &self.projects {
            lines.push(format!("# {}", prepared.project));
            for (i, step) in prepared.steps.iter().enumerate() {
                lines.push(format!("# {}. {}", i + 1, step.about));
                lines.extend(step.commands.iter().cloned());
            }
        }
        lines
    }

    pub(super) fn write(&self, dir: &Path) -> Result<(), CliError> {
        let make = |dir: &Path| fs::create_dir_all(dir).map_err(|error| CliError::file("made", dir, error));
        make(dir)?;
        for prepared in &self.projects {
            let below = dir.join(&prepared.dir_name);
            make(&below)?;
            if let Some(next) = &prepared.next {
                write_new(&below.join(wire::SIGNERS_FILE), &next.write(), 0o666)?;
            }
            if !prepared.revocations.is_empty() {
                let requests = write_statement_requests(StatementKind::Revocation, &prepared.revocations);
                write_new(&below.join(REVOCATIONS_FILE), &requests, 0o666)?;
            }
        }
        let commands = self.list_steps().join("\n") + "\n";
        write_new(&dir.join(COMMANDS_FILE), commands.as_bytes(), 0o666)
    }
}

impl PreparedProject {
    pub(super) fn to_json(&self) -> Value {
        let steps = self.steps.iter();
        steps.map(|step| json!({ "about": step.about, "commands": step.commands })).collect()
    }
}

/// `1-acme-app`: a number, so that no two are the same, and letters that every file system has.
fn dir_name(number: usize, project: &RepoPath) -> String {
    let names: Vec<&str> = project.names().collect();
    let plain: String =
        names.join("-").chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
    format!("{number}-{}", plain.trim_matches('-'))
}

struct Planner<'a, S> {
    snapshot: &'a S,
    incident: &'a ProjectIncident,
    removal: &'a KeyRemoval,
    question: &'a IncidentQuestion,
    dir: &'a Path,
    dir_name: String,
    /// How a command begins.
    client: String,
}

impl<S: Snapshot> Planner<'_, S> {
    /// Gives what could be prepared, and why the rest could not.
    fn plan(self, reason: &str) -> (Option<PreparedProject>, Vec<String>) {
        let project = &self.incident.project;
        let (history, chain) = match self.read_history() {
            Ok(read) => read,
            Err(error) => return (None, vec![error.describe()]),
        };
        let current = &chain.last().signers;
        let is_listed = self.incident.is_listed();
        let mut faults = Vec::new();
        let mut note = |error: CliError| faults.push(error.describe());
        let next = match is_listed && self.removal.shortages.is_empty() {
            true => without_keys(current, &self.question.keys).map_err(&mut note).ok(),
            false => None,
        };
        let revocations: Vec<PreparedRevocation> = self
            .incident
            .releases_to_revoke()
            .filter_map(|path| {
                self.prepare_revocation(path, &history, current, reason).map_err(&mut note).ok()
            })
            .collect();
        let mut steps = Vec::new();
        let is_proposed =
            self.incident.listings.iter().any(|listing| listing.standing == ListingStanding::Proposed);
        if is_proposed {
            let about = "Do not sign the proposed signers file: it lists a named key. An admin or master can propose another \
                         one, which takes its place";
            steps.push(ResponseStep::new(about, []));
        }
        steps.extend(self.veto(current, reason));
        if is_listed {
            let about = |fault| format!("This is not prepared, so run the command again later: {fault}");
            steps.extend(faults.iter().map(|fault| ResponseStep::new(about(fault), [])));
            steps.extend(self.rotate(&chain, next.is_some()));
        }
        steps.extend(self.withdraw(reason));
        steps.extend(self.rebuild());
        if !revocations.is_empty() {
            steps.extend(self.revoke(next.as_ref().unwrap_or(current), &revocations));
        }
        let revocations = revocations.into_iter().map(|prepared| prepared.request).collect();
        let project = project.clone();
        (Some(PreparedProject { project, dir_name: self.dir_name, next, revocations, steps }), faults)
    }

    fn read_history(&self) -> Result<(History, VerifiedChain), CliError> {
        let project = &self.incident.project;
        let entries = 1..=stored::history_len(self.snapshot, project);
        let history = stored::history(self.snapshot, project, entries).map_err(unreadable)?;
        let chain = chain::verify(&history, project).map_err(unreadable)?;
        Ok((history, chain))
    }

    /// What a named key registered or signed and still waits may be the thief's, or the team's own: people decide.
    fn touched_matters(&self, kind: OpenKind) -> impl Iterator<Item = &OpenMatter> {
        let is_touched = |open: &OpenMatter| open.is_registered || !open.signed.is_empty();
        self.incident.open.iter().filter(move |open| open.kind == kind && is_touched(open))
    }

    fn veto(&self, current: &SignersFile, reason: &str) -> Option<ResponseStep> {
        let matter = self.touched_matters(OpenKind::Rotation).next()?;
        let due = matter.waits_until.map(|until| format!(", which takes effect on {}", when_text(until)));
        let begin = format!("A named key signed the proposed signers file{}", due.unwrap_or_default());
        let (others, masters) = (self.others(current), current.master_groups());
        if !quorum::is_met(masters, &others) {
            let about =
                format!("{begin}. If it is not yours, propose another one at once, which takes its place");
            return Some(ResponseStep::new(about, []));
        }
        let masters = name_all(current, keys_of(masters).filter(|key| others.contains(key)).collect());
        let about = format!(
            "{begin}. If it is not yours, enough of these have to veto it: {}",
            shown_signers(&masters)
        );
        let (project, reason) = (quote(self.incident.project.as_str()), quote(reason));
        let command = format!("# {} veto {project} --reason {reason}", self.client);
        Some(ResponseStep::new(about, [command]))
    }

    fn withdraw(&self, reason: &str) -> Option<ResponseStep> {
        let command = |open: &OpenMatter| {
            format!("# {} withdraw {} --reason {}", self.client, quote(open.path.as_str()), quote(reason))
        };
        let commands: Vec<String> = self.touched_matters(OpenKind::Release).map(command).collect();
        let about = "A named key registered or signed releases that still wait for signatures. Those that are not yours, an \
                     admin can withdraw";
        (!commands.is_empty()).then(|| ResponseStep::new(about, commands))
    }

    /// A file may not be what the source gives, where only the named keys say so.
    fn rebuild(&self) -> Option<ResponseStep> {
        let names: Vec<String> =
            self.incident.releases_to_rebuild().map(|path| format!("# {}", quote(path.as_str()))).collect();
        let about = "These releases are reproduced only if the named keys tell the truth. Have other builders of their \
                     signers files build them, and see whether they get the same";
        (!names.is_empty()).then(|| ResponseStep::new(about, names))
    }

    fn rotate(&self, chain: &VerifiedChain, has_next: bool) -> Vec<ResponseStep> {
        let current = &chain.last().signers;
        let place = &chain.links[0].metadata.origin.url;
        let url = &place_beside(place);
        let file = self.path_of(wire::SIGNERS_FILE);
        let mut steps = Vec::new();
        if !has_next {
            steps.extend(self.removal.shortages.iter().map(|shortage| self.decide(shortage, &file)));
        }
        let publish = match has_next {
            true => format!("Review {file} and publish it"),
            false => "Publish the file that you decided on".to_owned(),
        };
        let about = format!("{publish} beside the one in force, at {}", quote(url));
        steps.push(ResponseStep::new(about, []));
        let signers = self.list_rotators(current);
        let who = match self.removal.others_can_rotate {
            true => format!("Enough of these have to sign: {}", shown_signers(&signers)),
            false => format!(
                "The others cannot rotate without a named key. Its owner must sign too, if the key is not lost: {}. \
                 A thief can do the same, so be first",
                shown_signers(&signers)
            ),
        };
        let command = format!("{} update {}", self.client, quote(url));
        steps.push(ResponseStep::new("Propose it, with the key of one who signs it next", [command]));
        let pending = layout::pending_signers(&self.incident.project);
        let command = format!("{} sign {}", self.client, quote(pending.as_str()));
        steps.push(ResponseStep::new(who, [command]));
        if let Some(hours) = current.rotation_delay_hours() {
            let about = format!(
                "The signers file in force lets rotations wait {}. If enough masters sign as well, it takes effect at once",
                shown_hours(hours)
            );
            steps.push(ResponseStep::new(about, []));
        }
        let about = format!("Once it is in force, put it in the place of {}", quote(place));
        steps.push(ResponseStep::new(about, []));
        steps
    }

    /// The admins without the named keys if they are enough, else the masters, else all who are there.
    fn list_rotators(&self, current: &SignersFile) -> Vec<Signer> {
        let (others, admins) = (self.others(current), current.admin_groups());
        let enough =
            [admins, current.master_groups()].into_iter().find(|groups| quorum::is_met(groups, &others));
        let keys = keys_of(enough.unwrap_or(admins));
        name_all(current, keys.filter(|key| enough.is_none() || others.contains(key)).collect())
    }

    /// The keys of the file that are not named.
    fn others(&self, current: &SignersFile) -> BTreeSet<PublicKey> {
        current.keys().difference(&self.question.keys).copied().collect()
    }

    /// A group that would have too few keys is a question for people.
    fn decide(&self, shortage: &KeyShortage, file: &str) -> ResponseStep {
        let KeyShortage { role, number, threshold, left } = shortage;
        let project = quote(self.incident.project.as_str());
        let name = role.name();
        let group = number.map_or_else(|| name.to_owned(), |number| format!("{name}.{number}"));
        let keys = &self.question.keys;
        let replace: String = keys.iter().map(|key| format!(" --replace {key}=NEW.pub")).collect();
        let remove: String = keys.iter().map(|key| format!(" --remove {key}")).collect();
        let lower = match left {
            0 => "a role without keys is left to its default".to_owned(),
            left => format!("--threshold {group}:{left} or less"),
        };
        ResponseStep::new(
            format!(
                "Decide: {role} need {threshold} signature{}, and without these keys {left} would be left. Either put new \
                 keys in their place, or remove them and lower the threshold ({lower})",
                plural(*threshold)
            ),
            [
                format!("# {} signers edit {project}{replace} -o {file}", self.client),
                format!("# {} signers edit {project}{remove} --threshold {group}:N -o {file}", self.client),
            ],
        )
    }

    fn prepare_revocation(
        &self,
        path: &RepoPath,
        history: &History,
        current: &SignersFile,
        reason: &str,
    ) -> Result<PreparedRevocation, CliError> {
        let index = self.read_text(path)?;
        let document = Revocation {
            reason: reason.to_owned(),
            timestamp: now()?.to_whole_seconds(),
            subject_digest: Some(Sha512::of(index.as_bytes())),
            initiator: None,
        };
        let text = String::from_utf8_lossy(&document.write()).into_owned();
        let (kind, history) = (StatementKind::Revocation, history.clone());
        let request = StatementRequest::of_release(kind, path.clone(), index, history, text);
        let mut prepared = PreparedRevocation { request, replaces: false };
        if self.snapshot.contains(&layout::pending_revocation_of(path)) {
            let begun = layout::pending_revocation_signatures_of(path);
            let collected = self.snapshot.read_signatures(&begun).map_err(unreadable)?.unwrap_or_default();
            let text = self.read_text(&layout::pending_revocation_of(path))?;
            let joined = StatementRequest { text, collected, ..prepared.request.clone() };
            let groups = current.revocation_groups();
            let counts = |key: &PublicKey| has_member(&groups, key);
            match joined.check() {
                // One that another revoker began or joined is joined: the server takes no second one.
                Ok(begun)
                    if begun.signed.iter().any(|key| counts(key) && !self.question.keys.contains(key)) =>
                {
                    prepared.request = joined;
                }
                // One that only the named keys began says what a thief says. The server lets go of it with the rotation.
                Ok(begun) => prepared.replaces = begun.signed.iter().any(counts),
                Err(_) => {}
            }
        }
        prepared.request.check().map_err(|error| {
            CliError::other(format!("the revocation of {path} cannot be prepared"), "").because(error)
        })?;
        Ok(prepared)
    }

    fn revoke(&self, signers: &SignersFile, revocations: &[PreparedRevocation]) -> Vec<ResponseStep> {
        let requests = self.path_of(REVOCATIONS_FILE);
        let revokers = self.choose_revokers(signers);
        let count = revocations.len();
        let count = if count == 1 { "release".to_owned() } else { format!("{count} releases") };
        if revokers.is_empty() {
            let about = format!(
                "The {count} cannot be revoked without a named key: rotate first, then run this again"
            );
            return vec![ResponseStep::new(about, [])];
        }
        let step = |(i, signer): (usize, Signer)| {
            let signed = self.path_of(&format!("revocations-{}.json", i + 1));
            let about = format!(
                "Review {requests}, and revoke the {count}. With the key of {}",
                shown_signers(&[signer])
            );
            let sign = format!("{} revoke --detached {requests} -o {signed}", self.client);
            ResponseStep::new(about, [sign, format!("{} revoke --submit {signed}", self.client)])
        };
        let mut steps = Vec::new();
        let replaced = revocations.iter().filter(|prepared| prepared.replaces).count();
        if replaced > 0 {
            let about = format!(
                "Only named keys began to revoke {replaced} of them. The prepared revocations take the place of these, once \
                 the new signers are in force. Until then the server refuses them"
            );
            steps.push(ResponseStep::new(about, []));
        }
        steps.extend(revokers.into_iter().enumerate().map(step));
        steps
    }

    /// Chooses as many revokers as are needed, without the named keys. Returns none if there are not enough.
    fn choose_revokers(&self, signers: &SignersFile) -> Vec<Signer> {
        let groups = signers.revocation_groups();
        let (mut chosen, mut keys) = (Vec::new(), BTreeSet::new());
        let is_useful = |group: &Group, key: &PublicKey, keys: &BTreeSet<PublicKey>| {
            group.contains(key) && quorum::count(group, keys) < group.threshold
        };
        for key in keys_of(&groups).filter(|key| !self.question.keys.contains(key)) {
            if groups.iter().any(|group| is_useful(group, &key, &keys)) && keys.insert(key) {
                chosen.push(signers.named_signer(key));
            }
        }
        if quorum::is_met(&groups, &keys) { chosen } else { Vec::new() }
    }

    fn read_text(&self, path: &RepoPath) -> Result<String, CliError> {
        let bytes = stored::require(self.snapshot, path).map_err(unreadable)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The path of a prepared file, as it is typed.
    fn path_of(&self, name: &str) -> String {
        quote(&self.dir.join(&self.dir_name).join(name).display().to_string())
    }
}

fn name_all(file: &SignersFile, keys: BTreeSet<PublicKey>) -> Vec<Signer> {
    keys.into_iter().map(|key| file.named_signer(key)).collect()
}
