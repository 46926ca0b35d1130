//! D32 under fire: SIGKILL at random instants, under load and while the server starts. After each kill the repository
//! is sound, every acknowledged change is there as it was acknowledged, no change is half made, no nonce is new again,
//! and what the server has in memory is what a server on a clone makes of the commits alone.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::{fs, sync::mpsc, thread, time::Duration};

use serde_json::Value;

use super::kills_load::{Asked, Client, Course, Sent, people, read_on};
use crate::support::{FileServer, Git, Person, Request, TestServer, fsck::fsck, http};

/// How many kills; the long run takes some hundreds.
pub(super) const KILLS: (&str, u64) = ("COUNTERSIGN_KILLS", 10);
/// Where the random instants begin.
pub(super) const SEED: (&str, u64) = ("COUNTERSIGN_SEED", 1);
/// A repository that grows for ever would make every check slower than the one before.
const KILLS_PER_REPOSITORY: u64 = 25;
const ROWS: usize = 6;

#[test]
fn killed_at_any_instant_the_server_loses_nothing_and_makes_nothing_by_halves() {
    let (kills, seed) = (setting(KILLS), setting(SEED));
    let mut figures = Figures::default();
    let mut repositories = 0;
    while figures.kills < kills {
        let seed = seed + repositories;
        // Shown if the test fails, and enough to try the same again.
        eprintln!("{}={seed} after {} kills", SEED.0, figures.kills);
        let mut field = Field::start(Random(seed), &mut figures);
        let last = kills.min(figures.kills + KILLS_PER_REPOSITORY);
        while figures.kills < last {
            field.fight(&mut figures);
        }
        repositories += 1;
    }
    eprintln!("{figures:?} in {repositories} repositories");
    assert!(figures.acknowledged > kills, "the server had something to do");
}

pub(super) fn setting((name, default): (&str, u64)) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[derive(Debug, Default)]
struct Figures {
    kills: u64,
    /// The kills while the server started.
    starting: u64,
    /// The kills in the middle of writing a pack or moving the branch.
    unfinished: u64,
    acknowledged: u64,
    unanswered: u64,
    /// Changes that were made without an answer.
    unanswered_but_made: u64,
    nonces_tried_again: u64,
}

/// Random numbers that follow from the seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        // A linear congruential generator: its upper bits are good enough here.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// One server and its data, for some kills.
struct Field {
    server: TestServer,
    files: FileServer,
    random: Random,
    courses: Vec<Course>,
    shapes: BTreeMap<String, BTreeSet<String>>,
    /// The newest commit that was checked.
    checked: String,
    titles: HashSet<String>,
}

/// A commit, as `git log` shows it.
struct Commit {
    id: String,
    parent: String,
    title: String,
    message: String,
    /// What happened to which file.
    files: BTreeSet<String>,
    patch: String,
}

impl Field {
    /// A new data directory. The kills begin before there is anything in it.
    fn start(mut random: Random, figures: &mut Figures) -> Self {
        let server = TestServer::prepare(|launch| launch.arg("--dev"));
        let files = FileServer::start();
        for _ in 0..random.below(3) {
            server.start_and_kill(Duration::from_micros(random.below(40_000)));
            figures.kills += 1;
            figures.starting += 1;
        }
        let courses = (1..=ROWS).map(Course::new).collect();
        let (shapes, titles, checked) = Default::default();
        let mut field = Self { server, files, random, courses, shapes, checked, titles };
        field.server.start_again();
        field.learn();
        field
    }

    /// Takes one project through its life in peace: from then on it is known what each kind of change consists of.
    fn learn(&mut self) {
        let mut course = Course::new(0);
        let (done, _heard) = mpsc::channel();
        let sent = course.run(self.client(), Course::length(), &done);
        let commits = self.git_log("main");
        for (asked, commit) in sent.iter().filter_map(|sent| sent.change.as_ref()).zip(&commits[1..]) {
            let known = self.shapes.insert(kind_of(asked), shape_of(commit, &asked.project));
            assert!(known.is_none(), "{} is told from every other step", kind_of(asked));
        }
        assert_eq!((commits.len(), self.shapes.len()), (1 + Course::length(), Course::length()));
        self.checked = commits.last().expect("a commit").id.clone();
    }

    fn client(&self) -> Client<'_> {
        Client { address: self.server.address(), files: &self.files, ahead: 0 }
    }

    /// One kill under load, sometimes some more while the server starts again, and then every check.
    fn fight(&mut self, figures: &mut Figures) {
        let (changes, reads) = self.kill_under_load();
        figures.kills += 1;
        self.check_at_rest(figures);
        if self.random.below(3) == 0 {
            age_folded_packs(&self.server);
        }
        for _ in 0..self.random.below(4) / 2 {
            self.server.start_and_kill(Duration::from_micros(self.random.below(40_000)));
            self.check_at_rest(figures);
            figures.kills += 1;
            figures.starting += 1;
        }
        self.server.start_again();
        let made = self.check_history(&changes);
        let mut used: Vec<&Sent> = reads.iter().collect();
        for (row, sent) in changes.iter().enumerate() {
            for sent in sent {
                let asked = sent.change.as_ref().expect("a change");
                let is_made = made.contains(&key_of(asked));
                match &sent.answer {
                    Some(answer) => {
                        assert!(is_made, "acknowledged and lost: {}", asked.title);
                        assert_includes(answer, &asked.expected);
                        figures.acknowledged += 1;
                    }
                    None => {
                        figures.unanswered += 1;
                        figures.unanswered_but_made += u64::from(is_made);
                    }
                }
                if is_made {
                    used.push(sent);
                }
                if is_made && sent.answer.is_none() {
                    self.courses[row].advance();
                }
            }
        }
        for sent in &used {
            http::send(self.server.address(), &sent.request).refused(401, "nonce");
        }
        figures.nonces_tried_again += used.len() as u64;
        self.check_index();
    }

    /// What was sent, of each row and by the reader, until the server was gone.
    fn kill_under_load(&mut self) -> (Vec<Vec<Sent>>, Vec<Sent>) {
        // Some instants follow an answer closely, others are anywhere.
        let (answers, delay) = (self.random.below(60), self.random.below(30_000));
        let Self { server, files, courses, .. } = self;
        let client = Client { address: server.address(), files, ahead: 0 };
        let beginning = courses.clone();
        thread::scope(|scope| {
            let (done, heard) = mpsc::channel();
            let workers: Vec<_> = courses
                .iter_mut()
                .map(|course| {
                    let done = done.clone();
                    scope.spawn(move || course.run(client, usize::MAX, &done))
                })
                .collect();
            let reader = scope.spawn(|| read_on(client, &beginning));
            for _ in 0..answers {
                heard.recv().expect("someone is at work");
            }
            thread::sleep(Duration::from_micros(delay));
            server.kill9();
            let sent = workers.into_iter().map(|worker| worker.join().expect("every answer is a success"));
            (sent.collect(), reader.join().expect("every answer is a success"))
        })
    }

    /// What a kill leaves is sound as it is, and each commit a legal change, before anything repairs it.
    fn check_at_rest(&self, figures: &mut Figures) {
        self.git().assert_sound();
        fsck(&self.server.repository(), &[]).is_clean();
        let names =
            ["objects/pack", "refs/heads"].map(|dir| fs::read_dir(self.server.repository().join(dir)));
        let mut names = names.into_iter().flatten().flatten().flatten().map(|entry| entry.file_name());
        let is_unfinished = names.any(|name| name.to_string_lossy().ends_with("-tmp") || name == "main.lock");
        figures.unfinished += u64::from(is_unfinished);
    }

    fn git(&self) -> Git {
        Git::at(self.server.repository())
    }

    /// Everything since the last look is a line of whole changes that someone asked for, each once. Returns which.
    fn check_history(&mut self, changes: &[Vec<Sent>]) -> HashSet<String> {
        let asked: BTreeMap<String, &Asked> = changes
            .iter()
            .flatten()
            .filter_map(|sent| sent.change.as_ref())
            .map(|a| (key_of(a), a))
            .collect();
        let mut made = HashSet::new();
        for commit in self.git_log(&format!("{}..main", self.checked)) {
            assert_eq!(commit.parent, self.checked, "the history is a line");
            let by = commit.message.lines().find_map(|line| line.strip_prefix("By: ")).expect("an author");
            let key = format!("{} by {by}", commit.title);
            let asked = asked.get(&key).unwrap_or_else(|| panic!("no one asked for {key}"));
            assert_eq!(shape_of(&commit, &asked.project), self.shapes[&kind_of(asked)], "{key} is whole");
            for content in &asked.content {
                assert!(commit.patch.contains(content), "{key} has {content}: {}", commit.patch);
            }
            assert!(self.titles.insert(key.clone()), "{key} was made twice");
            made.insert(key);
            self.checked = commit.id;
        }
        made
    }

    fn git_log(&self, range: &str) -> Vec<Commit> {
        let format = "--format=%x01%H%x02%P%x02%s%x02%B%x02";
        let log = ["log", "--reverse", "--no-renames", "--raw", "-p", format, range];
        let shown = self.git().run(&log);
        let parse = |text: &str| {
            let [id, parent, title, message, changed] = text.splitn(5, '\u{2}').collect::<Vec<_>>()[..]
            else {
                panic!("not the form that was asked for: {text}")
            };
            let raw = changed.lines().filter(|line| line.starts_with(':'));
            let files =
                raw.map(|line| line.split(' ').nth(4).expect("a status and a name").replace('\t', " "));
            Commit {
                id: id.to_owned(),
                parent: parent.to_owned(),
                title: title.to_owned(),
                message: message.to_owned(),
                files: files.collect(),
                patch: changed.to_owned(),
            }
        };
        shown.split('\u{1}').skip(1).map(parse).collect()
    }

    /// What the server answers from memory is what one answers that has read the commits and nothing else.
    fn check_index(&self) {
        let copy = self.server.clone_mirror();
        let ask = |server: &TestServer, person: &Person, target: &str| {
            let reply = http::send(server.address(), &person.sign(Request::get(target)));
            (reply.status, reply.text())
        };
        let mut targets = vec!["/v1/pending_signatures".to_owned()];
        for path in self.courses.iter().flat_map(|course| course.signable(&self.files)) {
            targets.extend([format!("/v1/signatures/{path}"), format!("/v1/files/{path}.signatures.json")]);
        }
        for target in targets {
            for person in people() {
                assert_eq!(ask(&self.server, &person, &target), ask(&copy, &person, &target), "{target}");
            }
        }
    }
}

/// What makes one change different from every other.
fn key_of(asked: &Asked) -> String {
    format!("{} by {}", asked.title, asked.by)
}

/// The kind of a change, without its project.
fn kind_of(asked: &Asked) -> String {
    key_of(asked).replace(&asked.project, "PROJECT")
}

fn shape_of(commit: &Commit, project: &str) -> BTreeSet<String> {
    commit.files.iter().map(|file| file.replace(project, "PROJECT")).collect()
}

#[track_caller]
fn assert_includes(answer: &Value, expected: &Value) {
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&answer[name], value, "{name} in {answer}");
    }
}

/// Makes the last folds seem long ago: the packs that they took in go at the next start.
fn age_folded_packs(server: &TestServer) {
    for entry in fs::read_dir(server.repository().join("objects/pack")).expect("packs") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|ending| ending == "folded") {
            let file = fs::File::options().write(true).open(path).expect("a file");
            let folded = file.metadata().and_then(|file| file.modified()).expect("a time");
            file.set_modified(folded - Duration::from_secs(3_600)).expect("our own file");
        }
    }
}
