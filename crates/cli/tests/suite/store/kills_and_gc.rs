//! D200: SIGKILL during registrations leaves objects that the branch does not reach, and `git gc --prune=now` takes
//! them away at any moment. The same content is registered again meanwhile. In the end nothing is missing.

use std::{process::Child, process::Command, process::Stdio, thread, time::Duration};

use serde_json::json;

use super::kills::{KILLS, Random, SEED, setting};
use crate::support::{FileServer, Git, Person, Request, SignersFile, TestServer, fsck::fsck, http};

/// How many people register at once.
const ROWS: usize = 4;
/// A repository that grows for ever would make every check slower than the one before.
const ROUNDS_PER_REPOSITORY: u64 = 40;

#[test]
fn content_that_a_kill_left_and_gc_takes_away_is_stored_again() {
    let (rounds, mut random) = (setting(KILLS), Random(setting(SEED)));
    let (mut orphans, mut done) = (0, 0);
    while done < rounds {
        eprintln!("{}={} after {done} rounds", SEED.0, random.0);
        let mut field = Field::start();
        let last = rounds.min(done + ROUNDS_PER_REPOSITORY);
        for round in done..last {
            orphans += u64::from(field.play(round, &mut random));
        }
        done = last;
    }
    eprintln!("{rounds} rounds, {orphans} of which left a pack that the branch did not reach");
}

struct Field {
    server: TestServer,
    files: FileServer,
}

impl Field {
    fn start() -> Self {
        let mut server = TestServer::prepare(|launch| launch.arg("--dev"));
        server.start_again();
        Self { server, files: FileServer::start() }
    }

    /// Whether the kill left a pack that the branch did not reach.
    fn play(&mut self, round: u64, random: &mut Random) -> bool {
        let early = (random.below(3) == 0).then(|| self.start_gc());
        let (answers, delay) = (random.below(4), random.below(12_000));
        let registrations: Vec<Registration> =
            (0..ROWS).map(|row| Registration::new(&self.files, round, row)).collect();
        let Self { server, .. } = self;
        let address = server.address();
        thread::scope(|scope| {
            let workers: Vec<_> = registrations
                .iter()
                .map(|one| scope.spawn(move || http::try_send(address, &one.request()).is_ok()))
                .collect();
            while (workers.iter().filter(|worker| worker.is_finished()).count() as u64) < answers {
                thread::yield_now();
            }
            thread::sleep(Duration::from_micros(delay));
            server.kill9();
        });
        early.into_iter().for_each(end_gc);
        let has_orphan = self.has_marked_pack();
        let (before, during) = (random.below(2) == 0, random.below(60_000));
        if before {
            end_gc(self.start_gc());
        }
        self.server.start_again();
        // While the same content comes again.
        thread::scope(|scope| {
            let (repository, address) = (self.server.repository(), self.server.address());
            scope.spawn(move || {
                thread::sleep(Duration::from_micros(during));
                end_gc(git_gc(&repository));
            });
            for one in &registrations {
                scope.spawn(move || {
                    let reply = http::send(address, &one.request());
                    assert!(matches!(reply.status, 200 | 409), "{}", reply.text());
                });
            }
        });
        self.check(&registrations);
        has_orphan
    }

    fn start_gc(&self) -> Child {
        git_gc(&self.server.repository())
    }

    fn has_marked_pack(&self) -> bool {
        let names = std::fs::read_dir(self.server.repository().join("objects/pack")).expect("packs");
        names.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(".keep"))
    }

    fn check(&self, registrations: &[Registration]) {
        let (repository, git) = (self.server.repository(), Git::at(self.server.repository()));
        git.assert_sound();
        fsck(&repository, &[]).is_clean();
        for one in registrations {
            let shown = self.server.get(&format!("/v1/files/{}", one.pending_path(&self.files)));
            assert_eq!((shown.status, shown.body), (200, one.signers.bytes()), "{}", one.name);
        }
        let copy = tempfile::TempDir::new().expect("a directory");
        let (clone, import) = (copy.path().join("clone"), copy.path().join("import"));
        git.run(&["clone", "--quiet", "--mirror", ".", clone.to_str().expect("a plain name")]);
        let journal = self.server.get("/v1/journal");
        let imported = Git::init_bare(&import);
        imported.run_with_input(&["fast-import", "--quiet"], &journal.body);
        let tips = [&git, &Git::at(clone), &imported].map(|git| git.run(&["rev-parse", "main"]));
        assert!(tips.iter().all(|tip| *tip == tips[0]), "{tips:?}");
    }
}

/// A project's first signers file. Registered twice, it is the same content.
struct Registration {
    name: String,
    person: Person,
    signers: SignersFile,
    url: String,
}

impl Registration {
    fn new(files: &FileServer, round: u64, row: usize) -> Self {
        let name = format!("row{row}/project{round}");
        let person = Person::named(&name);
        let signers = SignersFile::of(1, &[&person]);
        let path = format!("/{name}/svc.signers.json");
        files.put(&path, signers.bytes());
        Self { name, person, signers, url: files.url(&path) }
    }

    fn request(&self) -> Request {
        let body = json!({ "signers_file_url": self.url, "public_key": self.person.body_key() });
        self.person.sign(Request::post("/v1/register_repo", &body))
    }

    fn pending_path(&self, files: &FileServer) -> String {
        format!("{}/svc.signers.pending/svc.signers.json", files.mirror_path(&format!("/{}", self.name)))
    }
}

fn git_gc(repository: &std::path::Path) -> Child {
    let mut command = Command::new("git");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    command.arg("-C").arg(repository).args(["gc", "--quiet", "--prune=now"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("`git` is on the path")
}

/// It may find the branch locked, and give up.
fn end_gc(mut gc: Child) {
    gc.wait().expect("git ends");
}
