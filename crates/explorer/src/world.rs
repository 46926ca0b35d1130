//! A finite world: people, projects with the signers files and releases that they can have, and what is asked.

use std::sync::Arc;

use countersign_core::values::{key::PublicKey, key::SecretKey, path::RepoPath, time::Timestamp};
use countersign_testing::{Signers, at, key, path};

use crate::action::{Action, Document, Got, Offered, Says, Seen, Word};
use crate::roles::{ProjectNames, RoleNames};

#[derive(Debug)]
pub struct World {
    pub name: &'static str,
    /// The description for the table: who has to agree.
    pub about: &'static str,
    pub people: Vec<Person>,
    pub projects: Vec<ProjectPlan>,
    /// What the clock can show; the first is the one to begin with.
    pub clocks: Vec<Timestamp>,
    /// What has been asked before all else, and accepted.
    pub beginning: Vec<Action>,
    pub actions: Vec<Action>,
    pub care: Care,
    /// People who can stand for each other.
    pub equals: Vec<Vec<u8>>,
}

#[derive(Debug)]
pub struct Person {
    pub name: &'static str,
    pub secret: SecretKey,
    pub public: PublicKey,
}

#[derive(Debug)]
pub struct ProjectPlan {
    pub id: RepoPath,
    pub files: Vec<PlannedFile>,
    /// A signers file later than all others, by which a proposal can always be replaced.
    pub rescue: Arc<[u8]>,
    pub releases: Vec<&'static str>,
    pub contents: Vec<&'static str>,
    /// The files of each release, sorted.
    pub published: Vec<&'static str>,
}

#[derive(Debug)]
pub struct PlannedFile {
    pub name: &'static str,
    pub bytes: Arc<[u8]>,
}

/// How much of what is costly is checked: one of so many steps or states, chosen by hash. Each different change is
/// replayed in any case, and the index brought up to date with it.
#[derive(Debug, Clone, Copy)]
pub struct Care {
    pub replay: u64,
    pub staple: u64,
    pub index: u64,
    /// Whether an admin can always propose other signers.
    pub rescue: bool,
    /// Whether a long run changes every byte of one step of each kind.
    pub every_byte: bool,
}

impl Care {
    pub const ALL: Self = Self { replay: 1, staple: 1, index: 1, rescue: true, every_byte: true };
    pub const SOME: Self = Self { replay: 64, staple: 64, index: 16, rescue: true, every_byte: false };
}

/// The menu of a world: who asks for what.
#[derive(Debug, Clone, Default)]
pub struct Menu {
    pub registering: Vec<u8>,
    pub proposing: Vec<u8>,
    pub signing: Vec<u8>,
    /// The people who sign releases in other formats as well.
    pub in_formats: Vec<u8>,
    pub releasing: Vec<u8>,
    pub revoking: Vec<u8>,
    pub documents: Vec<Document>,
    pub withdrawing: Vec<u8>,
    pub objecting: Vec<u8>,
    pub words: Vec<Word>,
    pub rebuilding: Vec<u8>,
    pub got: Vec<Got>,
    pub vetoing: Vec<u8>,
    pub vetoes: Vec<Says>,
    /// Signers that wait are put into effect when they are due.
    pub waits: bool,
    /// Signatures that do not fit are offered, too.
    pub wrong: bool,
    pub drops: bool,
}

pub const PEOPLE: [&str; 6] = ["alice", "bob", "carol", "dave", "erin", "mallory"];
/// The person in none of the signers files.
pub const MALLORY: u8 = 5;

pub fn secret(person: u8) -> SecretKey {
    if person == MALLORY { countersign_testing::mallory() } else { key(person + 1) }
}

impl ProjectPlan {
    /// A project on GitHub whose files follow each other in this order, as far as their times allow.
    pub fn new(name: &str, files: &[(&'static str, Signers)], rescue: &Signers) -> Self {
        let bytes = |signers: &Signers| Arc::from(signers.text().into_bytes());
        Self {
            id: path(&format!("https/github.com/443/{name}")),
            files: files.iter().map(|(name, file)| PlannedFile { name, bytes: bytes(file) }).collect(),
            rescue: bytes(rescue),
            releases: Vec::new(),
            contents: vec!["one"],
            published: vec!["app.tar.gz"],
        }
    }

    pub fn releasing(self, releases: &[&'static str], contents: &[&'static str]) -> Self {
        Self { releases: releases.to_vec(), contents: contents.to_vec(), ..self }
    }

    pub fn publishing(self, files: &[&'static str]) -> Self {
        Self { published: files.to_vec(), ..self }
    }

    /// The name `acme/app`, as in its URLs.
    pub fn name(&self) -> &str {
        self.id.as_str().splitn(4, '/').nth(3).expect("scheme, host, port and a name")
    }

    pub fn release_dir(&self, release: u8) -> RepoPath {
        path(&format!("{}/releases/tag/{}", self.id, self.releases[usize::from(release)]))
    }

    pub fn index_path(&self, release: u8) -> RepoPath {
        path(&format!("{}/svc.index.json", self.release_dir(release)))
    }

    pub fn pending_path(&self) -> RepoPath {
        path(&format!("{}/svc.signers.pending/svc.signers.json", self.id))
    }
}

impl World {
    pub fn new(name: &'static str, about: &'static str, projects: Vec<ProjectPlan>, menu: &Menu) -> Self {
        let person = |(n, name): (usize, &&'static str)| {
            let secret = secret(u8::try_from(n).expect("few people"));
            Person { name, public: secret.public_key(), secret }
        };
        let actions = (0..).zip(&projects).flat_map(|(n, plan)| menu.actions(n, plan)).collect();
        Self {
            name,
            about,
            people: PEOPLE.iter().enumerate().map(person).collect(),
            projects,
            clocks: vec![at("2026-02-01T12:00:00Z")],
            beginning: Vec::new(),
            actions,
            care: Care::SOME,
            equals: Vec::new(),
        }
    }

    pub fn with_care(self, care: Care) -> Self {
        Self { care, ..self }
    }

    /// Lets time pass, from one of these clocks to a later one. It never goes back: the writer gives no decision an
    /// earlier time than the one before it had (D191).
    pub fn with_time(mut self, clocks: &[&str]) -> Self {
        self.clocks = clocks.iter().map(|clock| at(clock)).collect();
        let steps =
            (0..clocks.len()).map(|to| Action::SetClock { to: u8::try_from(to).expect("few clocks") });
        self.actions.extend(steps);
        self
    }

    /// Begins with the first signers file in force: all of these people have signed it, the first of them registered
    /// it.
    pub fn registered(self, everyone: &[u8]) -> Self {
        let sign = |by: &u8| Action::SignProposal { project: 0, by: *by, offered: Offered::Right };
        let register = Action::Register { project: 0, file: 0, by: everyone[0] };
        let beginning = [register].into_iter().chain(everyone.iter().map(sign)).collect();
        Self { beginning, ..self }
    }

    /// The action by the number that scripts have it under: what was asked in the beginning follows the actions.
    pub fn action(&self, number: u16) -> Action {
        let number = usize::from(number);
        *self.actions.get(number).unwrap_or_else(|| &self.beginning[number - self.actions.len()])
    }

    pub fn with_equals(self, equals: &[&[u8]]) -> Self {
        Self { equals: equals.iter().map(|group| group.to_vec()).collect(), ..self }
    }

    pub fn role_names(&self) -> RoleNames {
        let names = |plan: &ProjectPlan| ProjectNames {
            id: plan.id.to_string(),
            release_dirs: plan.releases.iter().map(|tag| format!("releases/tag/{tag}")).collect(),
        };
        RoleNames { projects: self.projects.iter().map(names).collect() }
    }

    /// Shows the action as a line of a script of requests.
    pub fn show(&self, action: &Action) -> String {
        let who = |by: u8| self.people[usize::from(by)].name;
        let plan = |project: u8| &self.projects[usize::from(project)];
        let file = |project, file: u8| plan(project).files[usize::from(file)].name;
        let tag = |project, release: u8| plan(project).releases[usize::from(release)];
        let id = |project: u8| plan(project).id.as_str();
        match *action {
            Action::Register { project, file: n, by } => {
                format!("{}: register_repo {} with {}", who(by), id(project), file(project, n))
            }
            Action::Update { project, file: n, by } => {
                format!("{}: update_signers {} to {}", who(by), id(project), file(project, n))
            }
            Action::SignProposal { project, by, offered } => {
                format!("{}: signatures on the proposed signers of {}{offered}", who(by), id(project))
            }
            Action::SignIndex { project, release, by, offered } => {
                format!("{}: signatures on {} {}{offered}", who(by), id(project), tag(project, release))
            }
            Action::Assets { project, release, content, by } => {
                let content = plan(project).contents[usize::from(content)];
                format!("{}: assets {} {} with {content:?}", who(by), id(project), tag(project, release))
            }
            Action::Revoke { project, release, document, by, offered } => {
                let (id, tag) = (id(project), tag(project, release));
                format!("{}: revoke {id} {tag} by the document {document:?}{offered}", who(by))
            }
            Action::Withdraw { project, release, by, seen } => {
                let seen = if seen == Seen::This { "" } else { ", having seen another" };
                format!("{}: withdraw {} {}{seen}", who(by), id(project), tag(project, release))
            }
            Action::Object { project, release, word, by, offered } => {
                let (id, tag) = (id(project), tag(project, release));
                format!("{}: object to {id} {tag} by the word {word:?}{offered}", who(by))
            }
            Action::Rebuild { project, release, got, by, offered } => {
                let (id, tag) = (id(project), tag(project, release));
                format!("{}: rebuild {id} {tag} with the result {got:?}{offered}", who(by))
            }
            Action::Veto { project, says, by, offered } => {
                let id = id(project);
                format!("{}: veto the proposed signers of {id} by the document {says:?}{offered}", who(by))
            }
            Action::Activate { project } => {
                format!("server: puts the signers of {} into effect that are due", id(project))
            }
            Action::Drop { project } => format!("operator: drop what is pending of {}", id(project)),
            Action::SetClock { to } => format!("the clock shows {}", self.clocks[usize::from(to)]),
        }
    }
}

impl Menu {
    fn actions(&self, project: u8, plan: &ProjectPlan) -> Vec<Action> {
        let mut actions = Vec::new();
        let count = |len: usize| 0..u8::try_from(len).expect("a small world");
        let wrong = [Offered::OfAnother, Offered::OnOther].into_iter().filter(|_| self.wrong);
        let offers: Vec<Offered> = [Offered::Right].into_iter().chain(wrong).collect();
        for file in count(plan.files.len()) {
            actions.extend(self.registering.iter().map(|by| Action::Register { project, file, by: *by }));
            actions.extend(self.proposing.iter().map(|by| Action::Update { project, file, by: *by }));
        }
        for (by, offered) in pairs(&self.signing, &offers) {
            actions.push(Action::SignProposal { project, by, offered });
            for release in count(plan.releases.len()) {
                actions.push(Action::SignIndex { project, release, by, offered });
            }
        }
        for release in count(plan.releases.len()) {
            for (by, offered) in pairs(&self.in_formats, &[Offered::InFormats, Offered::WrongFormats]) {
                actions.push(Action::SignIndex { project, release, by, offered });
            }
            for content in count(plan.contents.len()) {
                let of = |by: &u8| Action::Assets { project, release, content, by: *by };
                actions.extend(self.releasing.iter().map(of));
            }
            for (by, document) in pairs(&self.revoking, &self.documents) {
                let of = |offered| Action::Revoke { project, release, document, by, offered };
                let offers = offers.iter().copied();
                actions
                    .extend(offers.filter(|it| *it == Offered::Right || document == Document::First).map(of));
            }
            for by in self.withdrawing.iter().copied() {
                let seen = [Seen::This, Seen::Other].into_iter().filter(|it| *it == Seen::This || self.wrong);
                actions.extend(seen.map(|seen| Action::Withdraw { project, release, by, seen }));
            }
            for (by, word) in pairs(&self.objecting, &self.words) {
                let of = |offered| Action::Object { project, release, word, by, offered };
                let offers = offers.iter().copied();
                actions.extend(offers.filter(|it| *it == Offered::Right || word == Word::First).map(of));
            }
            for (by, got) in pairs(&self.rebuilding, &self.got) {
                let of = |offered| Action::Rebuild { project, release, got, by, offered };
                let offers = offers.iter().copied();
                actions.extend(offers.filter(|it| *it == Offered::Right || got == Got::Same).map(of));
            }
        }
        for (by, says) in pairs(&self.vetoing, &self.vetoes) {
            let of = |offered| Action::Veto { project, says, by, offered };
            let offers = offers.iter().copied();
            actions.extend(offers.filter(|it| *it == Offered::Right || says == Says::First).map(of));
        }
        if self.waits {
            actions.push(Action::Activate { project });
        }
        if self.drops {
            actions.push(Action::Drop { project });
        }
        actions
    }
}

fn pairs<'a, T: Copy>(people: &'a [u8], others: &'a [T]) -> impl Iterator<Item = (u8, T)> + 'a {
    people.iter().flat_map(move |by| others.iter().map(move |other| (*by, *other)))
}
