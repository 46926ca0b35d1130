//! What to do about it, for review: new signers files, revocations to sign, and the commands in order (D144). Nothing
//! is changed here.

use std::{collections::BTreeSet, fs, path::Path, path::PathBuf};

use countersign_api::requests::write_statement_requests;
use countersign_core::documents::signers::{Group, Signer, SignersFile, has_member, keys_of};
use countersign_core::documents::statement::{Revocation, StatementKind};
use countersign_core::documents::{history::History, layout};
use countersign_core::proof::to_state::StatementRequest;
use countersign_core::rules::{chain, chain::VerifiedChain, quorum, snapshot::Snapshot, stored};
use countersign_core::values::shown::{is_unseen, plural, shown_text, shown_within};
use countersign_core::values::{digest::Sha512, key::PublicKey, path::RepoPath, wire};
use countersign_explain::incident::{
    KeyRemoval, KeyShortage, ListingStanding, OpenKind, OpenMatter, ProjectIncident,
};
use countersign_explain::words::{shown_hours, shown_signer, shown_signers};
use serde::Serialize;

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
    pub(super) steps: Vec<ResponseStep>,
}

/// One thing to do, in its turn.
#[derive(Serialize)]
pub(super) struct ResponseStep {
    /// A line of our own words and of escaped text.
    about: String,
    /// The commands as they are typed.
    commands: Vec<String>,
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
        let dir = args.output.as_deref().unwrap_or(Path::new("DIR"));
        let server = server.map(|server| format!(" --server {}", quote(server))).unwrap_or_default();
        for incident in &findings.projects {
            let (project, Some(removal)) = (&incident.project, &incident.removal) else { continue };
            let dir_name = dir_name(projects.len() + 1, project);
            let mut note = |error: CliError| faults.push(format!("{project}: {}", error.describe()));
            let Ok((history, chain)) = read_history(snapshot, project).map_err(&mut note) else { continue };
            let planner = Planner {
                snapshot,
                incident,
                removal,
                keys: &findings.question.keys,
                history: &history,
                chain: &chain,
                reason: args.reason.as_deref().unwrap_or(REASON),
                dir: dir.join(&dir_name),
                client: format!("countersign{server}"),
            };
            let (prepared, unprepared) = planner.plan(dir_name);
            unprepared.into_iter().for_each(note);
            // What to do about a stranger's project is nothing that its owner leaves to us.
            if !findings.is_strangers(incident) && !prepared.steps.is_empty() {
                projects.push(prepared);
            }
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
    /// Adds what to do next. Text from outside must not become a line of its own: people paste these lines.
    fn step(&mut self, about: impl AsRef<str>, commands: impl IntoIterator<Item = String>) {
        let show = |command: String| match command.chars().any(is_unseen) {
            true => format!("# not to be pasted: {}", shown_text(&command)),
            false => command,
        };
        let about = shown_within(about.as_ref(), MOST_SHOWN);
        self.steps.push(ResponseStep { about, commands: commands.into_iter().map(show).collect() });
    }
}

/// `1-acme-app`: a number, so that no two are the same, and letters that every file system has.
fn dir_name(number: usize, project: &RepoPath) -> String {
    let names: Vec<&str> = project.names().collect();
    let plain: String =
        names.join("-").chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
    format!("{number}-{}", plain.trim_matches('-'))
}

fn read_history(snapshot: &impl Snapshot, project: &RepoPath) -> Result<(History, VerifiedChain), CliError> {
    let entries = 1..=stored::history_len(snapshot, project);
    let history = stored::history(snapshot, project, entries).map_err(unreadable)?;
    let chain = chain::verify(&history, project).map_err(unreadable)?;
    Ok((history, chain))
}

struct Planner<'a, S> {
    snapshot: &'a S,
    incident: &'a ProjectIncident,
    removal: &'a KeyRemoval,
    /// The named keys.
    keys: &'a BTreeSet<PublicKey>,
    history: &'a History,
    chain: &'a VerifiedChain,
    /// Why a release is revoked.
    reason: &'a str,
    /// The directory for the prepared files of the project.
    dir: PathBuf,
    /// How a command begins.
    client: String,
}

impl<S: Snapshot> Planner<'_, S> {
    /// Gives what could be prepared, and why the rest could not.
    fn plan(&self, dir_name: String) -> (PreparedProject, Vec<CliError>) {
        let (current, is_listed) = (self.current(), self.incident.is_listed());
        let mut faults = Vec::new();
        let next = match is_listed && self.removal.shortages.is_empty() {
            true => without_keys(current, self.keys).map_err(|error| faults.push(error)).ok(),
            false => None,
        };
        let prepare = |path| self.prepare_revocation(path).map_err(|error| faults.push(error)).ok();
        let prepared = self.incident.releases_to_revoke().filter_map(prepare);
        let (revocations, replaces): (Vec<StatementRequest>, Vec<bool>) = prepared.unzip();
        let (project, steps) = (self.incident.project.clone(), Vec::new());
        let mut prepared = PreparedProject { project, dir_name, next, revocations, steps };
        let mut standings = self.incident.listings.iter().map(|listing| listing.standing);
        if standings.any(|standing| standing == ListingStanding::Proposed) {
            let about = "Do not sign the proposed signers file: it lists a named key. An admin or master can propose another \
                         one, which takes its place";
            prepared.step(about, []);
        }
        self.veto(&mut prepared);
        if is_listed {
            for fault in faults.iter().map(CliError::describe) {
                prepared.step(format!("This is not prepared, so run the command again later: {fault}"), []);
            }
            self.rotate(&mut prepared);
        }
        self.withdraw(&mut prepared);
        self.rebuild(&mut prepared);
        if !prepared.revocations.is_empty() {
            self.revoke(&mut prepared, replaces.iter().filter(|replaces| **replaces).count());
        }
        (prepared, faults)
    }

    /// The signers file in force.
    fn current(&self) -> &SignersFile {
        &self.chain.last().signers
    }

    /// The keys of the signers file in force that are not named.
    fn others(&self) -> BTreeSet<PublicKey> {
        self.current().keys().difference(self.keys).copied().collect()
    }

    /// What a named key registered or signed and still waits may be the thief's, or the team's own: people decide.
    fn touched_matters(&self, kind: OpenKind) -> impl Iterator<Item = &OpenMatter> {
        let is_touched = |open: &OpenMatter| open.is_registered || !open.signed.is_empty();
        self.incident.open.iter().filter(move |open| open.kind == kind && is_touched(open))
    }

    fn veto(&self, prepared: &mut PreparedProject) {
        let Some(matter) = self.touched_matters(OpenKind::Rotation).next() else { return };
        let due = matter.waits_until.map(|until| format!(", which takes effect on {}", when_text(until)));
        let begin = format!("A named key signed the proposed signers file{}", due.unwrap_or_default());
        let (others, masters) = (self.others(), self.current().master_groups());
        if !quorum::is_met(masters, &others) {
            let instead = "If it is not yours, propose another one at once, which takes its place";
            return prepared.step(format!("{begin}. {instead}"), []);
        }
        let masters = self.name_all(keys_of(masters).filter(|key| others.contains(key)));
        let about = format!("{begin}. If it is not yours, enough of these have to veto it: {masters}");
        let (project, reason) = (quote(self.incident.project.as_str()), quote(self.reason));
        prepared.step(about, [format!("# {} veto {project} --reason {reason}", self.client)]);
    }

    fn withdraw(&self, prepared: &mut PreparedProject) {
        let command = |open: &OpenMatter| {
            let (path, reason) = (quote(open.path.as_str()), quote(self.reason));
            format!("# {} withdraw {path} --reason {reason}", self.client)
        };
        let mut commands = self.touched_matters(OpenKind::Release).map(command).peekable();
        let about = "A named key registered or signed releases that still wait for signatures. Those that are not yours, an \
                     admin can withdraw";
        if commands.peek().is_some() {
            prepared.step(about, commands);
        }
    }

    /// A file may not be what the source gives, where only the named keys say so.
    fn rebuild(&self, prepared: &mut PreparedProject) {
        let names = self.incident.releases_to_rebuild().map(|path| format!("# {}", quote(path.as_str())));
        let mut names = names.peekable();
        let about = "These releases are reproduced only if the named keys tell the truth. Have other builders of their \
                     signers files build them, and see whether they get the same";
        if names.peek().is_some() {
            prepared.step(about, names);
        }
    }

    fn rotate(&self, prepared: &mut PreparedProject) {
        let place = &self.chain.links[0].metadata.origin.url;
        let url = quote(&place_beside(place));
        let file = self.path_of(wire::SIGNERS_FILE);
        let has_next = prepared.next.is_some();
        for shortage in self.removal.shortages.iter().filter(|_| !has_next) {
            self.decide(prepared, shortage, &file);
        }
        let publish = match has_next {
            true => format!("Review {file} and publish it"),
            false => "Publish the file that you decided on".to_owned(),
        };
        prepared.step(format!("{publish} beside the one in force, at {url}"), []);
        let command = format!("{} update {url}", self.client);
        prepared.step("Propose it, with the key of one who signs it next", [command]);
        let signers = self.name_rotators();
        let who = match self.removal.others_can_rotate {
            true => format!("Enough of these have to sign: {signers}"),
            false => format!(
                "The others cannot rotate without a named key. Its owner must sign too, if the key is not lost: {signers}. A \
                 thief can do the same, so be first"
            ),
        };
        let pending = layout::pending_signers(&self.incident.project);
        prepared.step(who, [format!("{} sign {}", self.client, quote(pending.as_str()))]);
        if let Some(hours) = self.current().rotation_delay_hours().map(shown_hours) {
            let about = format!(
                "The signers file in force lets rotations wait {hours}. If enough masters sign as well, it takes effect at once"
            );
            prepared.step(about, []);
        }
        prepared.step(format!("Once it is in force, put it in the place of {}", quote(place)), []);
    }

    /// The admins without the named keys if they are enough, else the masters, else all who are there.
    fn name_rotators(&self) -> String {
        let (others, admins) = (self.others(), self.current().admin_groups());
        let mut groups = [admins, self.current().master_groups()].into_iter();
        match groups.find(|groups| quorum::is_met(groups, &others)) {
            Some(enough) => self.name_all(keys_of(enough).filter(|key| others.contains(key))),
            None => self.name_all(keys_of(admins)),
        }
    }

    fn name_all(&self, keys: impl Iterator<Item = PublicKey>) -> String {
        let keys: BTreeSet<PublicKey> = keys.collect();
        let signers = keys.into_iter().map(|key| self.current().named_signer(key));
        shown_signers(&signers.collect::<Vec<_>>())
    }

    /// A group that would have too few keys is a question for people.
    fn decide(&self, prepared: &mut PreparedProject, shortage: &KeyShortage, file: &str) {
        let KeyShortage { role, number, threshold, left } = shortage;
        let (name, s) = (role.name(), plural(*threshold));
        let group = number.map_or_else(|| name.to_owned(), |number| format!("{name}.{number}"));
        let lower = match left {
            0 => "a role without keys is left to its default".to_owned(),
            left => format!("--threshold {group}:{left} or less"),
        };
        let about = format!(
            "Decide: {role} need {threshold} signature{s}, and without these keys {left} would be left. Either put new keys \
             in their place, or remove them and lower the threshold ({lower})"
        );
        let edit = format!("# {} signers edit {}", self.client, quote(self.incident.project.as_str()));
        let replace: String = self.keys.iter().map(|key| format!(" --replace {key}=NEW.pub")).collect();
        let remove: String = self.keys.iter().map(|key| format!(" --remove {key}")).collect();
        let lowered = format!("{edit}{remove} --threshold {group}:N -o {file}");
        prepared.step(about, [format!("{edit}{replace} -o {file}"), lowered]);
    }

    /// The revocation of a release, and whether it replaces one that only named keys began.
    fn prepare_revocation(&self, path: &RepoPath) -> Result<(StatementRequest, bool), CliError> {
        let index = self.read_text(path)?;
        let document = Revocation {
            reason: self.reason.to_owned(),
            timestamp: now()?.to_whole_seconds(),
            subject_digest: Some(Sha512::of(index.as_bytes())),
            initiator: None,
        };
        let text = String::from_utf8_lossy(&document.write()).into_owned();
        let (kind, history) = (StatementKind::Revocation, self.history.clone());
        let mut request = StatementRequest::of_release(kind, path.clone(), index, history, text);
        let mut replaces = false;
        if self.snapshot.contains(&layout::pending_revocation_of(path)) {
            let begun = layout::pending_revocation_signatures_of(path);
            let collected = self.snapshot.read_signatures(&begun).map_err(unreadable)?.unwrap_or_default();
            let text = self.read_text(&layout::pending_revocation_of(path))?;
            let joined = StatementRequest { text, collected, ..request.clone() };
            let groups = self.current().revocation_groups();
            let counts = |key: &PublicKey| has_member(&groups, key);
            match joined.check() {
                // One that another revoker began or joined is joined: the server takes no second one.
                Ok(begun) if begun.signed.iter().any(|key| counts(key) && !self.keys.contains(key)) => {
                    request = joined;
                }
                // One that only the named keys began says what a thief says. The server lets go of it with the
                // rotation.
                Ok(begun) => replaces = begun.signed.iter().any(counts),
                Err(_) => {}
            }
        }
        request.check().map_err(|error| {
            CliError::other(format!("the revocation of {path} cannot be prepared"), "").because(error)
        })?;
        Ok((request, replaces))
    }

    /// `replaced`: how many revocations replace one that only named keys began.
    fn revoke(&self, prepared: &mut PreparedProject, replaced: usize) {
        let requests = self.path_of(REVOCATIONS_FILE);
        let revokers = self.choose_revokers(prepared.next.as_ref().unwrap_or(self.current()));
        let count = match prepared.revocations.len() {
            1 => "release".to_owned(),
            count => format!("{count} releases"),
        };
        if revokers.is_empty() {
            let first = "rotate first, then run this again";
            let about = format!("The {count} cannot be revoked without a named key: {first}");
            return prepared.step(about, []);
        }
        if replaced > 0 {
            let about = format!(
                "Only named keys began to revoke {replaced} of them. The prepared revocations take the place of these, once \
                 the new signers are in force. Until then the server refuses them"
            );
            prepared.step(about, []);
        }
        for (signer, number) in revokers.iter().zip(1..) {
            let signed = self.path_of(&format!("revocations-{number}.json"));
            let key = shown_signer(signer);
            let sign = format!("{} revoke --detached {requests} -o {signed}", self.client);
            let submit = format!("{} revoke --submit {signed}", self.client);
            let about = format!("Review {requests}, and revoke the {count}. With the key of {key}");
            prepared.step(about, [sign, submit]);
        }
    }

    /// Chooses as many revokers as are needed, without the named keys. Returns none if there are not enough.
    fn choose_revokers(&self, signers: &SignersFile) -> Vec<Signer> {
        let groups = signers.revocation_groups();
        let (mut chosen, mut keys) = (Vec::new(), BTreeSet::new());
        let is_useful = |group: &Group, key: &PublicKey, keys: &BTreeSet<PublicKey>| {
            group.contains(key) && quorum::count(group, keys) < group.threshold
        };
        for key in keys_of(&groups).filter(|key| !self.keys.contains(key)) {
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
        quote(&self.dir.join(name).display().to_string())
    }
}
