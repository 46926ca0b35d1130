//! A project in memory, on which both sides try what they can.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use countersign_core::documents::index::{AssetName, Digests, PublishedFile};
use countersign_core::documents::layout;
use countersign_core::documents::signed_request::{SignedRequest, WithdrawBody, Withdrawal};
use countersign_core::documents::signers::{FilePattern, SignersFile, SignersOrigin, SourceKind};
use countersign_core::documents::statement::{
    Objection, Rebuild, RebuiltFile, Revocation, SignedStatement, StatementKind, Veto,
};
use countersign_core::rules::decide::assets::{Release, register_assets};
use countersign_core::rules::decide::sign::{SignaturesBody, sign};
use countersign_core::rules::decide::statement::{object, revoke, veto};
use countersign_core::rules::decide::{
    activate::activate_due, proposal::Proposal, rebuild::rebuild, register::register, update::update,
    withdraw::withdraw,
};
use countersign_core::rules::snapshot::{Change, Scratch, Snapshot as _};
use countersign_core::rules::stored::{ActiveSigners, StoredProposal, files_to_sign};
use countersign_core::rules::{auth::sign_request, quorum::Tally, reproduction::Reproduction, stored};
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};

use crate::drill::outcome::{Actor, DrillAttempt, DrillFault, DrillStep, Nuisance};
use crate::{describe::proposal::tally_proposal, describe::release::summarise_release};
use crate::{strength::Act, words::shown_hours};

const PROJECT: &str = "https/drill.example/443/team/project";
const ORIGIN: &str = "https://drill.example/team/project/svc.signers.json";
const NONCE: &str = "00000000-0000-4000-8000-000000000000";
/// The reason that every act of a drill gives.
const DRILL: &str = "a drill";
/// The release that everyone signed before the drill begins.
const FIRST: &str = "1";
const MAX_COLLECTING: usize = 10;
const EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);
const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Stage {
    scratch: Scratch,
    project: RepoPath,
    now: Timestamp,
    /// The name of the file in each release: one that builders make, if there are builders.
    file_name: AssetName,
    /// Every key of the real file, builders and registrars too, in the order of the file.
    cast: Vec<Actor>,
}

/// The other side, while a rotation waits.
struct Opponents<'a> {
    /// The actors who veto the rotation if they can.
    veto: &'a [Actor],
    /// The actors who propose something else each time.
    replace: &'a [Actor],
}

impl Stage {
    /// The project with its signers in force, and one release that everyone signed.
    pub(super) fn found(file: &SignersFile, now: Timestamp) -> Result<Self, DrillFault> {
        let pattern = file.rebuilds().and_then(|rebuilds| rebuilds.files.first());
        let file_name = pattern.map_or_else(|| "app".to_owned(), FilePattern::example);
        let mut stage = Self {
            scratch: Scratch::default(),
            file_name: AssetName::parse(&file_name).map_err(|error| DrillFault(error.to_string()))?,
            project: parse_path(PROJECT)?,
            now: now.max(file.timestamp()).later(SECOND),
            cast: Actor::of_file(file),
        };
        let text = String::from_utf8(file.write()).map_err(|error| DrillFault(error.to_string()))?;
        let text = stage
            .cast
            .iter()
            .fold(text, |text, actor| text.replace(&actor.signer.key.to_string(), &actor.key().to_string()));
        let everyone: Vec<Actor> =
            stage.cast.iter().filter(|actor| file.lists(&actor.signer.key)).cloned().collect();
        let first = everyone.first().ok_or_else(|| DrillFault("the signers file lists no one".to_owned()))?;
        let registered = register(&stage.scratch, &stage.proposal(&text, first), EXPIRY, stage.now);
        stage.scratch.apply(&registered.map_err(|error| DrillFault(error.to_string()))?.0);
        let pending = layout::pending_signers(&stage.project);
        for actor in &everyone {
            stage.sign(&pending, actor)?;
        }
        let index = stage.register_release(FIRST, &everyone).ok_or_else(|| no_release("registered"))?.1;
        for actor in &everyone {
            // Only artifact signers are accepted, and only until there are enough.
            let _ = stage.sign(&index, actor);
        }
        match stage.scratch.contains(&layout::signatures_of(&index)) {
            true => Ok(stage),
            false => Err(no_release("completed")),
        }
    }

    pub(super) fn actors(&self, is_wanted: impl Fn(&PublicKey) -> bool) -> Vec<Actor> {
        self.cast.iter().filter(|actor| is_wanted(&actor.signer.key)).cloned().collect()
    }

    /// Lets the team try an act, while `thieves` stop what they can.
    pub(super) fn try_team(
        &self,
        act: Act,
        team: &[Actor],
        gone: &BTreeSet<PublicKey>,
        thieves: &[Actor],
    ) -> DrillAttempt {
        match act {
            Act::Release => self.clone().try_release(team),
            Act::Rotate => self.rotate_team(team, gone, thieves).0,
            Act::Revoke => self.clone().try_revoke(team),
            Act::Reproduce => self.clone().try_reproduce(team),
        }
    }

    /// Lets the thief try an act, while `owners` stop what they can.
    pub(super) fn try_thief(&self, act: Act, thieves: &[Actor], owners: &[Actor]) -> DrillAttempt {
        match act {
            Act::Release => self.clone().try_release(thieves),
            Act::Rotate => {
                let own = Actor::thief();
                let key = own.key();
                let text = format!(
                    r#"{{"version": 1, "timestamp": "{}", "artifact_signers": [{{"threshold": 1, "signers": [{{"kind": "key", "data": {{"pubkey": "{key}"}}}}]}}]}}"#,
                    self.now.later(SECOND)
                );
                let opponents = Opponents { veto: owners, replace: &[] };
                self.clone().try_rotate(&text, thieves, &[own], &opponents).0
            }
            Act::Revoke => self.clone().try_revoke(thieves),
            Act::Reproduce => self.clone().try_reproduce(thieves),
        }
    }

    /// Rotates new keys into the place of those that are gone. Gives the stage after it, if it takes effect.
    pub(super) fn rotate_team(
        &self,
        team: &[Actor],
        gone: &BTreeSet<PublicKey>,
        thieves: &[Actor],
    ) -> (DrillAttempt, Option<Self>) {
        let (Some(active), Some(mut text)) = (self.active(), self.next_text(SECOND)) else {
            return (failed(Act::Rotate, vec![DrillStep::of_no_one("no signers file is in force")]), None);
        };
        let mut newcomers = Vec::new();
        for actor in self.cast.iter().filter(|actor| gone.contains(&actor.signer.key)) {
            let fresh = actor.renewed();
            let (old, new) = (actor.key(), fresh.key());
            text = text.replace(&old.to_string(), &new.to_string());
            if active.file.lists(&old) {
                newcomers.push(fresh);
            }
        }
        let opponents = Opponents { veto: thieves, replace: thieves };
        self.clone().try_rotate(&text, team, &newcomers, &opponents)
    }

    pub(super) fn list_nuisances(&self, thieves: &[Actor]) -> Vec<Nuisance> {
        let mut nuisances = Vec::new();
        if self.clone().register_release("3", thieves).is_some() {
            nuisances.push(Nuisance::RegisterReleases);
        }
        if self.can_withdraw(thieves) {
            nuisances.push(Nuisance::WithdrawReleases);
        }
        if thieves.iter().any(|thief| self.can_object(thief)) {
            nuisances.push(Nuisance::ObjectToReleases);
        }
        if self.can_replace_proposals(thieves) {
            nuisances.push(Nuisance::ReplaceProposals);
        }
        let attempt = self.clone().try_revoke(thieves);
        if !attempt.succeeds && attempt.steps.iter().any(|step| step.who.is_some()) {
            nuisances.push(Nuisance::BeginRevocations);
        }
        if thieves.iter().any(|thief| self.state_rebuild(thief, b"something else").is_some()) {
            nuisances.push(Nuisance::StateFalseRebuilds);
        }
        nuisances
    }

    /// Whether thieves can withdraw what someone else registered.
    fn can_withdraw(&self, thieves: &[Actor]) -> bool {
        let mut stage = self.clone();
        let is_other = |actor: &&Actor| thieves.iter().all(|thief| thief.key() != actor.key());
        let others: Vec<Actor> = stage.cast.iter().filter(is_other).cloned().collect();
        let Some((_, index)) = stage.register_release("3", &others) else { return false };
        let body = WithdrawBody { file_path: index, reason: DRILL.to_owned(), subject_digest: None };
        let withdraws = |thief: &Actor| {
            let withdrawal = Withdrawal { request: stage.request(thief), body: body.clone() };
            withdraw(&stage.scratch, &withdrawal).is_ok()
        };
        thieves.iter().any(withdraws)
    }

    fn can_object(&self, thief: &Actor) -> bool {
        let index = self.index_of(FIRST);
        let Ok(Some(bytes)) = self.scratch.read(&index) else { return false };
        let objection = Objection {
            text: Some(DRILL.to_owned()),
            subject_digest: Sha512::of(&bytes),
            timestamp: self.now.to_whole_seconds(),
        };
        let statement = sign_statement(StatementKind::Objection, &index, &objection.write(), thief);
        object(&self.scratch, &statement, self.now).is_ok()
    }

    fn can_replace_proposals(&self, thieves: &[Actor]) -> bool {
        let texts = [SECOND, 2 * SECOND].map(|later| self.next_text(later));
        let [Some(ours), Some(theirs)] = texts else { return false };
        let mut stage = self.clone();
        stage.now = stage.now.later(2 * SECOND);
        let Some(first) = stage.cast.first().cloned() else { return false };
        match update(&stage.scratch, &stage.proposal(&ours, &first), stage.now) {
            Ok((change, _)) => stage.scratch.apply(&change),
            Err(_) => return false,
        }
        let replaces = |thief| update(&stage.scratch, &stage.proposal(&theirs, thief), stage.now).is_ok();
        thieves.iter().any(replaces)
    }

    fn active(&self) -> Option<ActiveSigners> {
        stored::active_signers(&self.scratch, &self.project).ok().flatten()
    }

    /// The signers file in force, dated so much later than now.
    fn next_text(&self, later: Duration) -> Option<String> {
        let active = self.active()?;
        let text = String::from_utf8_lossy(&active.bytes).into_owned();
        let at = self.now.later(later);
        Some(text.replacen(&active.file.timestamp().to_string(), &at.to_string(), 1))
    }

    fn try_release(mut self, actors: &[Actor]) -> DrillAttempt {
        let Some((actor, index)) = self.register_release("2", actors) else {
            return failed(
                Act::Release,
                vec![DrillStep::of_no_one("no one is left who can register a release")],
            );
        };
        let mut steps = vec![DrillStep::by(&actor.signer, "registers a release")];
        for actor in actors {
            let Ok(is_complete) = self.sign(&index, actor) else { continue };
            let text = match is_complete {
                true => "signs it: the release is complete".to_owned(),
                false => format!("signs it, and it {}", self.count_release(&index)),
            };
            steps.push(DrillStep::by(&actor.signer, text));
            if is_complete {
                return succeeded(Act::Release, steps);
            }
        }
        steps.push(DrillStep::of_no_one(format!(
            "no one else can sign it, and it {}",
            self.count_release(&index)
        )));
        failed(Act::Release, steps)
    }

    fn try_rotate(
        mut self,
        text: &str,
        actors: &[Actor],
        newcomers: &[Actor],
        opponents: &Opponents<'_>,
    ) -> (DrillAttempt, Option<Self>) {
        self.now = self.now.later(2 * SECOND);
        let mut steps = Vec::new();
        let proposed = actors.iter().find_map(|actor| {
            let done = update(&self.scratch, &self.proposal(text, actor), self.now);
            done.ok().map(|(change, _)| (actor, change))
        });
        let Some((actor, change)) = proposed else {
            steps.push(DrillStep::of_no_one("no one is left who can propose new signers"));
            return (failed(Act::Rotate, steps), None);
        };
        steps.push(DrillStep::by(&actor.signer, "proposes new signers"));
        self.scratch.apply(&change);
        let pending = layout::pending_signers(&self.project);
        let signing = actors
            .iter()
            .map(|actor| (actor, ""))
            .chain(newcomers.iter().map(|new| (new, " with a new key")));
        for (actor, how) in signing {
            let Ok(is_agreed) = self.sign(&pending, actor) else { continue };
            if !is_agreed {
                steps.push(DrillStep::by(
                    &actor.signer,
                    format!("signs them{how}: the proposal {}", self.count_consent()),
                ));
                continue;
            }
            steps.push(DrillStep::by(&actor.signer, format!("signs them{how}: all agree")));
            let is_in_force = self.settle(&mut steps, actors, opponents);
            let done = if is_in_force { succeeded } else { failed };
            return (done(Act::Rotate, steps), is_in_force.then_some(self));
        }
        steps.push(DrillStep::of_no_one(format!(
            "no one else can sign them: the proposal {}",
            self.count_consent()
        )));
        (failed(Act::Rotate, steps), None)
    }

    fn try_revoke(mut self, actors: &[Actor]) -> DrillAttempt {
        let index = self.index_of(FIRST);
        let mut steps = Vec::new();
        let subject_digest = self.scratch.read(&index).ok().flatten().map(|bytes| Sha512::of(&bytes));
        let document = Revocation {
            reason: DRILL.to_owned(),
            timestamp: self.now.to_whole_seconds(),
            subject_digest,
            initiator: None,
        };
        let document = document.write();
        for actor in actors {
            let statement = sign_statement(StatementKind::Revocation, &index, &document, actor);
            let revoked = revoke(&self.scratch, &statement, &self.request(actor), self.now);
            let Ok((change, outcome)) = revoked else { continue };
            self.scratch.apply(&change);
            if outcome.in_force {
                steps.push(DrillStep::by(&actor.signer, "signs a revocation: the release is revoked"));
                return succeeded(Act::Revoke, steps);
            }
            steps.push(DrillStep::by(&actor.signer, "signs a revocation: more signatures are needed"));
        }
        steps.push(DrillStep::of_no_one("no one else can sign a revocation"));
        failed(Act::Revoke, steps)
    }

    /// Lets builders state the release that is there. A thief has built nothing, and no one can see that.
    fn try_reproduce(mut self, actors: &[Actor]) -> DrillAttempt {
        let mut steps = Vec::new();
        for actor in actors {
            let Some(change) = self.state_rebuild(actor, FIRST.as_bytes()) else { continue };
            self.scratch.apply(&change);
            let tally = match self.count_rebuilds() {
                Some((_, true)) => {
                    let step = "states that the source gives the same: the release is reproduced";
                    steps.push(DrillStep::by(&actor.signer, step));
                    return succeeded(Act::Reproduce, steps);
                }
                counted => counted.map(|(tally, _)| tally).unwrap_or_default(),
            };
            let Tally { collected, needed } = tally;
            let step = format!("states that the source gives the same, as {collected} of {needed} do");
            steps.push(DrillStep::by(&actor.signer, step));
        }
        steps.push(DrillStep::of_no_one("no one else can state what the source gives"));
        failed(Act::Reproduce, steps)
    }

    /// Gives what changes if this actor states that the source of the first release gives this content.
    fn state_rebuild(&self, actor: &Actor, content: &[u8]) -> Option<Change> {
        let index = self.index_of(FIRST);
        let document = Rebuild {
            rebuild_of: index.clone(),
            subject_digest: Sha512::of(&self.scratch.read(&index).ok()??),
            source_commit: "0".repeat(40),
            files: vec![RebuiltFile { file_name: self.file_name.clone(), digests: digests_of(content) }],
            timestamp: self.now.to_whole_seconds(),
        };
        let statement = sign_statement(StatementKind::Rebuild, &index, &document.write(), actor);
        rebuild(&self.scratch, &statement, self.now).ok().map(|(change, _)| change)
    }

    /// Gives how many builders got the same, and whether that is enough.
    fn count_rebuilds(&self) -> Option<(Tally, bool)> {
        let path = self.index_of(FIRST);
        let signers = stored::signers_copy(&self.scratch, &path).ok()?;
        let found = Reproduction::read(&self.scratch, &path, &signers).ok()??;
        Some((found.tally, found.is_reproduced()))
    }

    /// Registers a release by the first actor who may.
    fn register_release(&mut self, tag: &str, actors: &[Actor]) -> Option<(Actor, RepoPath)> {
        let index = self.index_of(tag);
        let content = tag.as_bytes();
        let release = Release {
            dir: index.parent()?,
            release_url: None,
            published_on: None,
            published_files: vec![PublishedFile {
                file_name: self.file_name.clone(),
                size: None,
                source: format!("https://drill.example/team/project/{tag}/app"),
                digests: digests_of(content),
            }],
        };
        let written = release.write_index(&self.project, self.now).ok()?;
        let (actor, change) = actors.iter().find_map(|actor| {
            let done = register_assets(&self.scratch, &written, &actor.key(), MAX_COLLECTING);
            done.ok().map(|(change, _)| (actor, change))
        })?;
        self.scratch.apply(&change);
        Some((actor.clone(), index))
    }

    /// Gives whether all signatures are there.
    fn sign(&mut self, file: &RepoPath, actor: &Actor) -> Result<bool, DrillFault> {
        let fault = |error: &dyn std::fmt::Display| DrillFault(error.to_string());
        let files = files_to_sign(&self.scratch, file).map_err(|error| fault(&error))?.unwrap_or_default();
        let sign_one = |(path, bytes): (RepoPath, Arc<[u8]>)| (path, actor.secret.sign(&Sha512::of(&bytes)));
        let submission = SignaturesBody {
            file_path: file.clone(),
            public_key: actor.key(),
            signatures: files.into_iter().map(sign_one).collect(),
            other_formats: Default::default(),
        };
        let (change, signed) = sign(&self.scratch, &submission, self.now).map_err(|error| fault(&error))?;
        self.scratch.apply(&change);
        Ok(signed.is_complete)
    }

    fn count_release(&self, index: &RepoPath) -> Tally {
        let summary = summarise_release(&self.scratch, index).ok().flatten();
        summary.map(|summary| summary.tally).unwrap_or_default()
    }

    fn count_consent(&self) -> Tally {
        tally_proposal(&self.scratch, &self.project).ok().flatten().unwrap_or_default()
    }

    fn proposal(&self, text: &str, by: &Actor) -> Proposal {
        Proposal {
            project: self.project.clone(),
            signers_bytes: text.as_bytes().into(),
            origin: SignersOrigin {
                kind: SourceKind::FileServer,
                url: ORIGIN.to_owned(),
                retrieval_url: ORIGIN.to_owned(),
                retrieved_at: self.now,
            },
            submitter: by.key(),
            request: self.request(by),
        }
    }

    fn request(&self, by: &Actor) -> SignedRequest {
        SignedRequest {
            timestamp: self.now.to_header(),
            nonce: NONCE.to_owned(),
            payload: String::new(),
            public_key: by.key(),
            signature: sign_request(&by.secret, self.now, NONCE, b""),
        }
    }

    fn index_of(&self, tag: &str) -> RepoPath {
        let dir = RepoPath::parse(&format!("{}/{tag}", self.project)).expect("a number is a name");
        layout::index_in(&dir)
    }
}

// What lies between consent and force: a time to wait, in which the masters can veto (D130–D136).

impl Stage {
    /// Settles a rotation to which everyone who has to has agreed. Gives whether the new signers take effect.
    fn settle(&mut self, steps: &mut Vec<DrillStep>, actors: &[Actor], opponents: &Opponents<'_>) -> bool {
        if self.is_waiting() {
            steps.push(DrillStep::of_no_one(format!("the new signers wait {}", self.shown_delay())));
            let is_stopped = !self.agree_as_masters(steps, actors)
                && (self.veto_meanwhile(steps, opponents.veto)
                    || self.replace_meanwhile(steps, opponents.replace));
            if is_stopped {
                return false;
            }
            if self.is_waiting() && !self.let_time_pass() {
                steps.push(DrillStep::of_no_one("the new signers do not take effect"));
                return false;
            }
        }
        steps.push(DrillStep::of_no_one("the new signers are in force"));
        true
    }

    fn is_waiting(&self) -> bool {
        self.scratch.contains(&layout::pending_signers(&self.project))
    }

    fn shown_delay(&self) -> String {
        self.active()
            .and_then(|active| active.file.rotation_delay_hours())
            .map_or_else(String::new, shown_hours)
    }

    /// Signers that the masters agree to do not wait. Gives whether they are in force.
    fn agree_as_masters(&mut self, steps: &mut Vec<DrillStep>, actors: &[Actor]) -> bool {
        let pending = layout::pending_signers(&self.project);
        for actor in actors {
            if self.sign(&pending, actor).is_ok() {
                steps.push(DrillStep::by(&actor.signer, "signs them too"));
                if !self.is_waiting() {
                    steps.push(DrillStep::of_no_one("the masters agree, so no one has to wait"));
                    return true;
                }
            }
        }
        false
    }

    /// Gives whether the other side's masters are enough to stop it.
    fn veto_meanwhile(&mut self, steps: &mut Vec<DrillStep>, opponents: &[Actor]) -> bool {
        let file = layout::pending_signers(&self.project);
        let proposal = StoredProposal::load(&self.scratch, &file).ok().flatten();
        let (Some(proposal), Some(active)) = (proposal, self.active()) else { return false };
        let document = Veto {
            veto: DRILL.to_owned(),
            project_id: self.project.clone(),
            signers_file_digest: proposal.digest(),
            previous: Sha512::of(&active.bytes),
            timestamp: self.now.to_whole_seconds(),
        };
        let document = document.write();
        for opponent in opponents {
            let statement = sign_statement(StatementKind::Veto, &file, &document, opponent);
            let Ok((change, outcome)) = veto(&self.scratch, &statement, self.now) else { continue };
            self.scratch.apply(&change);
            if outcome.in_force {
                steps.push(DrillStep::by(&opponent.signer, "signs a veto in time: the new signers are gone"));
                return true;
            }
            steps.push(DrillStep::by(&opponent.signer, "signs a veto: more masters are needed"));
        }
        false
    }

    /// Gives whether one of the other side can put another file in the place of the one that waits, which it can do each
    /// time (D174).
    fn replace_meanwhile(&mut self, steps: &mut Vec<DrillStep>, opponents: &[Actor]) -> bool {
        let Some(text) = self.next_text(3 * SECOND) else { return false };
        for opponent in opponents {
            let done = update(&self.scratch, &self.proposal(&text, opponent), self.now);
            if let Ok((change, _)) = done {
                self.scratch.apply(&change);
                let step = "puts another proposal in their place in time, and can do so each time";
                steps.push(DrillStep::by(&opponent.signer, step));
                return true;
            }
        }
        false
    }

    fn let_time_pass(&mut self) -> bool {
        let pending = layout::pending_signers(&self.project);
        let Ok(Some(agreement)) = stored::agreement(&self.scratch, &pending) else { return false };
        self.now = self.now.max(agreement.due_at);
        let Ok((change, ())) = activate_due(&self.scratch, &self.project, self.now) else { return false };
        self.scratch.apply(&change);
        true
    }
}

fn parse_path(text: &str) -> Result<RepoPath, DrillFault> {
    RepoPath::parse(text).map_err(|error| DrillFault(error.to_string()))
}

fn no_release(what: &str) -> DrillFault {
    DrillFault(format!("no release can be {what} under this signers file"))
}

fn digests_of(content: &[u8]) -> Digests {
    Digests { sha256: Some(Sha256::of(content)), sha512: None }
}

fn sign_statement(kind: StatementKind, file: &RepoPath, text: &[u8], actor: &Actor) -> SignedStatement {
    SignedStatement {
        kind,
        file_path: file.clone(),
        text: String::from_utf8_lossy(text).into_owned(),
        signature: actor.secret.sign(&Sha512::of(text)),
        public_key: actor.key(),
    }
}

fn succeeded(act: Act, steps: Vec<DrillStep>) -> DrillAttempt {
    DrillAttempt { succeeds: true, ..failed(act, steps) }
}

fn failed(act: Act, steps: Vec<DrillStep>) -> DrillAttempt {
    DrillAttempt {
        act,
        succeeds: false,
        takes_stolen_keys: false,
        is_stopped_by_owners: false,
        is_freed_by_block: false,
        steps,
    }
}
