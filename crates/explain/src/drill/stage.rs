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
    /// What was done in the attempt so far.
    steps: Vec<DrillStep>,
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
            file_name: AssetName::parse(&file_name).map_err(DrillFault::of)?,
            project: RepoPath::parse(PROJECT).map_err(DrillFault::of)?,
            now: now.max(file.timestamp()).later(SECOND),
            cast: Actor::of_file(file),
            steps: Vec::new(),
        };
        let text = String::from_utf8(file.write()).map_err(DrillFault::of)?;
        let text = stage
            .cast
            .iter()
            .fold(text, |text, actor| text.replace(&actor.signer.key.to_string(), &actor.key().to_string()));
        let everyone = stage.actors(|key| file.lists(key));
        let first = everyone.first().ok_or_else(|| DrillFault("the signers file lists no one".to_owned()))?;
        let registered = register(&stage.scratch, &stage.proposal(&text, first), EXPIRY, stage.now);
        stage.scratch.apply(&registered.map_err(DrillFault::of)?.0);
        let pending = layout::pending_signers(&stage.project);
        for actor in &everyone {
            stage.sign(&pending, actor)?;
        }
        if !stage.register_any(FIRST, &everyone) {
            return Err(no_release("registered"));
        }
        let index = stage.index_of(FIRST);
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
        self.try_act(act, team, || self.rotate_team(team, gone, thieves).0)
    }

    /// Lets the thief try an act, while `owners` stop what they can.
    pub(super) fn try_thief(&self, act: Act, thieves: &[Actor], owners: &[Actor]) -> DrillAttempt {
        self.try_act(act, thieves, || {
            let own = Actor::thief();
            let key = own.key();
            let text = format!(
                r#"{{"version": 1, "timestamp": "{}", "artifact_signers": [{{"threshold": 1, "signers": [{{"kind": "key", "data": {{"pubkey": "{key}"}}}}]}}]}}"#,
                self.now.later(SECOND)
            );
            let opponents = Opponents { veto: owners, replace: &[] };
            self.clone().try_rotate(&text, thieves, &[own], &opponents)
        })
    }

    fn try_act(&self, act: Act, actors: &[Actor], rotate: impl FnOnce() -> DrillAttempt) -> DrillAttempt {
        match act {
            Act::Release => self.clone().try_release(actors),
            Act::Rotate => rotate(),
            Act::Revoke => self.clone().try_revoke(actors),
            Act::Reproduce => self.clone().try_reproduce(actors),
        }
    }

    /// Rotates new keys into the place of those that are gone. Gives the stage after it as well.
    pub(super) fn rotate_team(
        &self,
        team: &[Actor],
        gone: &BTreeSet<PublicKey>,
        thieves: &[Actor],
    ) -> (DrillAttempt, Self) {
        let mut stage = self.clone();
        let (Some(active), Some(mut text)) = (self.active(), self.next_text(SECOND)) else {
            stage.note("no signers file is in force");
            return (stage.end(Act::Rotate, false), stage);
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
        (stage.try_rotate(&text, team, &newcomers, &opponents), stage)
    }

    pub(super) fn list_nuisances(&self, thieves: &[Actor]) -> Vec<Nuisance> {
        let revocation = self.clone().try_revoke(thieves);
        let states_otherwise = |thief| self.state_rebuild(thief, b"something else").is_some();
        let nuisances = [
            (Nuisance::RegisterReleases, self.clone().register_any("3", thieves)),
            (Nuisance::WithdrawReleases, self.can_withdraw(thieves)),
            (Nuisance::ObjectToReleases, thieves.iter().any(|thief| self.can_object(thief))),
            (Nuisance::ReplaceProposals, self.can_replace_proposals(thieves)),
            (
                Nuisance::BeginRevocations,
                !revocation.succeeds && revocation.steps.iter().any(|step| step.who.is_some()),
            ),
            (Nuisance::StateFalseRebuilds, thieves.iter().any(states_otherwise)),
        ];
        nuisances.into_iter().filter(|(_, can)| *can).map(|(nuisance, _)| nuisance).collect()
    }

    /// Whether thieves can withdraw what someone else registered.
    fn can_withdraw(&self, thieves: &[Actor]) -> bool {
        let mut stage = self.clone();
        let is_other = |actor: &&Actor| thieves.iter().all(|thief| thief.key() != actor.key());
        let others: Vec<Actor> = stage.cast.iter().filter(is_other).cloned().collect();
        if !stage.register_any("3", &others) {
            return false;
        }
        let file_path = stage.index_of("3");
        let body = WithdrawBody { file_path, reason: DRILL.to_owned(), subject_digest: None };
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
        stage.propose(&ours, &first) && thieves.iter().any(|thief| stage.propose(&theirs, thief))
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

    fn note(&mut self, text: impl Into<String>) {
        self.steps.push(DrillStep { who: None, text: text.into() });
    }

    /// Lets each actor contribute in turn, until it is enough. `contribute` does it, and gives what the actor did and
    /// whether that is enough; `None` if the actor cannot.
    fn take_turns(
        &mut self,
        actors: &[Actor],
        mut contribute: impl FnMut(&mut Self, &Actor) -> Option<(String, bool)>,
    ) -> bool {
        actors.iter().any(|actor| {
            let Some((text, is_enough)) = contribute(self, actor) else { return false };
            self.steps.push(DrillStep { who: Some(actor.signer.clone()), text });
            is_enough
        })
    }

    /// Ends an attempt, with the steps so far.
    fn end(&mut self, act: Act, succeeds: bool) -> DrillAttempt {
        DrillAttempt {
            act,
            succeeds,
            takes_stolen_keys: false,
            is_stopped_by_owners: false,
            is_freed_by_block: false,
            steps: std::mem::take(&mut self.steps),
        }
    }

    fn try_release(mut self, actors: &[Actor]) -> DrillAttempt {
        let is_registered = self.take_turns(actors, |stage, actor| {
            stage.register_release("2", actor).then(|| ("registers a release".to_owned(), true))
        });
        if !is_registered {
            self.note("no one is left who can register a release");
            return self.end(Act::Release, false);
        }
        let index = self.index_of("2");
        let is_complete = self.take_turns(actors, |stage, actor| {
            let is_complete = stage.sign(&index, actor).ok()?;
            let text = match is_complete {
                true => "signs it: the release is complete".to_owned(),
                false => format!("signs it, and it {}", stage.count_release(&index)),
            };
            Some((text, is_complete))
        });
        if !is_complete {
            self.note(format!("no one else can sign it, and it {}", self.count_release(&index)));
        }
        self.end(Act::Release, is_complete)
    }

    fn try_rotate(
        &mut self,
        text: &str,
        actors: &[Actor],
        newcomers: &[Actor],
        opponents: &Opponents<'_>,
    ) -> DrillAttempt {
        self.now = self.now.later(2 * SECOND);
        let is_proposed = self.take_turns(actors, |stage, actor| {
            stage.propose(text, actor).then(|| ("proposes new signers".to_owned(), true))
        });
        if !is_proposed {
            self.note("no one is left who can propose new signers");
            return self.end(Act::Rotate, false);
        }
        if !self.sign_proposal(actors, "") && !self.sign_proposal(newcomers, " with a new key") {
            self.note(format!("no one else can sign them: the proposal {}", self.count_consent()));
            return self.end(Act::Rotate, false);
        }
        let is_in_force = self.settle(actors, opponents);
        self.end(Act::Rotate, is_in_force)
    }

    /// Gives whether all agree.
    fn sign_proposal(&mut self, actors: &[Actor], how: &str) -> bool {
        let pending = layout::pending_signers(&self.project);
        self.take_turns(actors, |stage, actor| {
            let is_agreed = stage.sign(&pending, actor).ok()?;
            let text = match is_agreed {
                true => format!("signs them{how}: all agree"),
                false => format!("signs them{how}: the proposal {}", stage.count_consent()),
            };
            Some((text, is_agreed))
        })
    }

    fn try_revoke(mut self, actors: &[Actor]) -> DrillAttempt {
        let index = self.index_of(FIRST);
        let subject_digest = self.scratch.read(&index).ok().flatten().map(|bytes| Sha512::of(&bytes));
        let document = Revocation {
            reason: DRILL.to_owned(),
            timestamp: self.now.to_whole_seconds(),
            subject_digest,
            initiator: None,
        };
        let document = document.write();
        let is_revoked = self.take_turns(actors, |stage, actor| {
            let statement = sign_statement(StatementKind::Revocation, &index, &document, actor);
            let revoked = revoke(&stage.scratch, &statement, &stage.request(actor), stage.now);
            let (change, outcome) = revoked.ok()?;
            stage.scratch.apply(&change);
            let result =
                if outcome.in_force { "the release is revoked" } else { "more signatures are needed" };
            Some((format!("signs a revocation: {result}"), outcome.in_force))
        });
        if !is_revoked {
            self.note("no one else can sign a revocation");
        }
        self.end(Act::Revoke, is_revoked)
    }

    /// Lets builders state the release that is there. A thief has built nothing, and no one can see that.
    fn try_reproduce(mut self, actors: &[Actor]) -> DrillAttempt {
        let is_reproduced = self.take_turns(actors, |stage, actor| {
            let change = stage.state_rebuild(actor, FIRST.as_bytes())?;
            stage.scratch.apply(&change);
            let (Tally { collected, needed }, is_reproduced) = stage.count_rebuilds().unwrap_or_default();
            let text = match is_reproduced {
                true => "states that the source gives the same: the release is reproduced".to_owned(),
                false => format!("states that the source gives the same, as {collected} of {needed} do"),
            };
            Some((text, is_reproduced))
        });
        if !is_reproduced {
            self.note("no one else can state what the source gives");
        }
        self.end(Act::Reproduce, is_reproduced)
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

    /// Registers a release by the first actor who may, and gives whether one may.
    fn register_any(&mut self, tag: &str, actors: &[Actor]) -> bool {
        actors.iter().any(|actor| self.register_release(tag, actor))
    }

    fn register_release(&mut self, tag: &str, actor: &Actor) -> bool {
        let Some(dir) = self.index_of(tag).parent() else { return false };
        let release = Release {
            dir,
            release_url: None,
            published_on: None,
            published_files: vec![PublishedFile {
                file_name: self.file_name.clone(),
                size: None,
                source: format!("https://drill.example/team/project/{tag}/app"),
                digests: digests_of(tag.as_bytes()),
            }],
        };
        let Ok(written) = release.write_index(&self.project, self.now) else { return false };
        let registered = register_assets(&self.scratch, &written, &actor.key(), MAX_COLLECTING);
        self.apply_done(registered)
    }

    /// Proposes this signers file, and gives whether the actor can.
    fn propose(&mut self, text: &str, by: &Actor) -> bool {
        let proposed = update(&self.scratch, &self.proposal(text, by), self.now);
        self.apply_done(proposed)
    }

    /// Changes what a decision changes, and gives whether it does.
    fn apply_done<T, E>(&mut self, decided: Result<(Change, T), E>) -> bool {
        decided.is_ok_and(|(change, _)| {
            self.scratch.apply(&change);
            true
        })
    }

    /// Gives whether all signatures are there.
    fn sign(&mut self, file: &RepoPath, actor: &Actor) -> Result<bool, DrillFault> {
        let files = files_to_sign(&self.scratch, file).map_err(DrillFault::of)?.unwrap_or_default();
        let sign_one = |(path, bytes): (RepoPath, Arc<[u8]>)| (path, actor.secret.sign(&Sha512::of(&bytes)));
        let submission = SignaturesBody {
            file_path: file.clone(),
            public_key: actor.key(),
            signatures: files.into_iter().map(sign_one).collect(),
            other_formats: Default::default(),
        };
        let (change, signed) = sign(&self.scratch, &submission, self.now).map_err(DrillFault::of)?;
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
    fn settle(&mut self, actors: &[Actor], opponents: &Opponents<'_>) -> bool {
        if self.is_waiting() {
            self.note(format!("the new signers wait {}", self.shown_delay()));
            let is_stopped = !self.agree_as_masters(actors)
                && (self.veto_meanwhile(opponents.veto) || self.replace_meanwhile(opponents.replace));
            if is_stopped {
                return false;
            }
            if self.is_waiting() && !self.let_time_pass() {
                self.note("the new signers do not take effect");
                return false;
            }
        }
        self.note("the new signers are in force");
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
    fn agree_as_masters(&mut self, actors: &[Actor]) -> bool {
        let pending = layout::pending_signers(&self.project);
        let is_in_force = self.take_turns(actors, |stage, actor| {
            stage.sign(&pending, actor).ok()?;
            Some(("signs them too".to_owned(), !stage.is_waiting()))
        });
        if is_in_force {
            self.note("the masters agree, so no one has to wait");
        }
        is_in_force
    }

    /// Gives whether the other side's masters are enough to stop it.
    fn veto_meanwhile(&mut self, opponents: &[Actor]) -> bool {
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
        self.take_turns(opponents, |stage, opponent| {
            let statement = sign_statement(StatementKind::Veto, &file, &document, opponent);
            let (change, outcome) = veto(&stage.scratch, &statement, stage.now).ok()?;
            stage.scratch.apply(&change);
            let text = match outcome.in_force {
                true => "signs a veto in time: the new signers are gone",
                false => "signs a veto: more masters are needed",
            };
            Some((text.to_owned(), outcome.in_force))
        })
    }

    /// Gives whether one of the other side can put another file in the place of the one that waits, which it can do
    /// each time (D174).
    fn replace_meanwhile(&mut self, opponents: &[Actor]) -> bool {
        let Some(text) = self.next_text(3 * SECOND) else { return false };
        self.take_turns(opponents, |stage, opponent| {
            let step = "puts another proposal in their place in time, and can do so each time";
            stage.propose(&text, opponent).then(|| (step.to_owned(), true))
        })
    }

    fn let_time_pass(&mut self) -> bool {
        let pending = layout::pending_signers(&self.project);
        let Ok(Some(agreement)) = stored::agreement(&self.scratch, &pending) else { return false };
        self.now = self.now.max(agreement.due_at);
        let activated = activate_due(&self.scratch, &self.project, self.now);
        self.apply_done(activated)
    }
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
