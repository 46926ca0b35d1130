//! What a drill says, against what a real server does when people really try.

use serde_json::{Value, json};

use super::scene::{named_group, start_team};
use crate::support::{Person, SignersFile, World, client::Computer, days_ago, person};

/// One signers file, and who loses what.
struct Case {
    roles: &'static [(&'static str, usize, &'static [&'static str])],
    lost: &'static [&'static str],
    stolen: &'static [&'static str],
}

const TEAM: &[(&str, usize, &[&str])] = &[("artifact_signers", 2, &["alice", "bob", "carol"])];
const ROLES: &[(&str, usize, &[&str])] = &[
    ("artifact_signers", 1, &["alice", "bob"]),
    ("admin_keys", 2, &["carol", "dave", "erin"]),
    ("revocation_keys", 2, &["alice", "carol", "dave"]),
];
const MASTERS: &[(&str, usize, &[&str])] =
    &[("artifact_signers", 2, &["alice", "bob"]), ("master_keys", 1, &["mary", "mike"])];

const CASES: &[Case] = &[
    Case { roles: TEAM, lost: &["alice"], stolen: &[] },
    Case { roles: TEAM, lost: &["alice", "bob"], stolen: &["carol"] },
    Case { roles: TEAM, lost: &[], stolen: &["alice", "bob"] },
    Case { roles: ROLES, lost: &["carol"], stolen: &["alice"] },
    Case { roles: ROLES, lost: &["carol", "dave"], stolen: &["erin"] },
    Case { roles: ROLES, lost: &["alice"], stolen: &["carol", "dave"] },
    Case { roles: MASTERS, lost: &["alice"], stolen: &["bob"] },
    Case { roles: MASTERS, lost: &["mary"], stolen: &["mike"] },
];

impl Case {
    fn people(&self) -> Vec<&'static str> {
        let mut people: Vec<&str> =
            self.roles.iter().flat_map(|(_, _, people)| people.iter().copied()).collect();
        people.sort_unstable();
        people.dedup();
        people
    }

    fn file(&self, name_of: impl Fn(&str) -> String) -> SignersFile {
        self.roles.iter().fold(SignersFile::new(), |file, (role, threshold, people)| {
            let names: Vec<String> = people.iter().map(|name| name_of(name)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            file.with(role, named_group(*threshold, &names))
        })
    }

    /// Everyone whose key is neither lost nor stolen.
    fn team(&self) -> Vec<&'static str> {
        let is_left = |name: &&str| !self.lost.contains(name) && !self.stolen.contains(name);
        self.people().into_iter().filter(is_left).collect()
    }

    /// A signers file with all people, in which those whose key is gone have a new one.
    fn next(&self) -> SignersFile {
        let team = self.team();
        let file =
            self.file(|name| if team.contains(&name) { name.to_owned() } else { format!("{name}-new") });
        file.redated(days_ago(5))
    }
}

/// A project in which people really try.
struct Attempt<'a> {
    world: &'a World,
    project: String,
    people: Vec<Person>,
}

impl<'a> Attempt<'a> {
    fn new(world: &'a World, project: String, case: &Case, people: &[&str]) -> Self {
        let everyone: Vec<Person> = case.people().into_iter().map(person).collect();
        world.activate(&project, &case.file(str::to_owned), &everyone.iter().collect::<Vec<_>>());
        let first = world.add_release(&everyone[0], &format!("{project}/1.0"));
        everyone.iter().for_each(|person| drop(world.sign(person, &first)));
        Self { world, project, people: people.iter().map(|name| person(name)).collect() }
    }

    fn signs(&self, path: &str, people: &[Person]) {
        for person in people {
            if self.world.exists(path) {
                self.world.sign(person, path);
            }
        }
    }

    fn can_release(&self) -> bool {
        let dir = format!("{}/2.0", self.project);
        let url = self.world.publish_checksums(&dir, &crate::support::world::checksums(&dir));
        let registered =
            self.people.iter().any(|person| self.world.register_assets(person, &[&url]).status == 200);
        let index = self.world.index_path(&dir);
        self.signs(&index, &self.people);
        registered && self.world.exists(&format!("{index}.signatures.json"))
    }

    fn can_revoke(&self) -> bool {
        let index = self.world.index_path(&format!("{}/1.0", self.project));
        let document = self.world.revocation_of(&index, "a test");
        self.people.iter().for_each(|person| drop(self.world.revoke_with(person, &index, &document)));
        self.world.exists(&format!("{index}.revocation.json"))
    }

    fn can_rotate(&self, next: &SignersFile, newcomers: &[Person]) -> bool {
        self.people.iter().any(|person| self.world.propose(person, &self.project, next).status == 200);
        let pending = self.world.pending_path(&self.project);
        self.signs(&pending, &self.people);
        self.signs(&pending, newcomers);
        self.world.read(&self.world.active_path(&self.project)) == next.bytes()
    }
}

/// Release, rotate, revoke.
#[track_caller]
fn possible(attempts: &Value) -> Vec<bool> {
    let list = attempts.as_array().expect("a list");
    list.iter()
        .map(|attempt| attempt["possible"] == json!(true) && attempt["takes_stolen_keys"] == json!(false))
        .collect()
}

#[test]
fn the_drill_agrees_with_a_real_server() {
    let world = World::start();
    let computer = Computer::of(&world.server);
    for (i, case) in CASES.iter().enumerate() {
        let team = Attempt::new(&world, format!("team/p{i}"), case, &case.team());
        let id = world.id(&team.project);
        let mut args = vec!["drill", id.as_str()];
        for (option, names) in [("--lose", case.lost), ("--steal", case.stolen)] {
            args.extend(names.first().map(|_| option));
            args.extend(names);
        }
        let before = world.git().commit_count();
        let played = computer.json(&args);
        assert_eq!(world.git().commit_count(), before, "a drill changes nothing");
        let newcomers: Vec<Person> =
            case.lost.iter().chain(case.stolen).map(|name| person(&format!("{name}-new"))).collect();
        let (released, revoked) = (team.can_release(), team.can_revoke());
        let real = vec![released, team.can_rotate(&case.next(), &newcomers), revoked];
        assert_eq!(possible(&played["team"]), real, "the team of case {i}: {played}");
        if case.stolen.is_empty() {
            assert_eq!(played["thief"], json!([]));
            continue;
        }
        let thief = Attempt::new(&world, format!("thief/p{i}"), case, case.stolen);
        let own = person("thief");
        let (released, revoked) = (thief.can_release(), thief.can_revoke());
        let takeover = SignersFile::dated(days_ago(5)).artifact(1, &[&own]);
        let real = vec![released, thief.can_rotate(&takeover, &[own]), revoked];
        assert_eq!(possible(&played["thief"]), real, "the thief of case {i}: {played}");
    }
}

#[test]
fn a_drill_reads_a_server_a_file_and_a_repository_alike_and_tells_people_step_by_step() {
    let world = start_team();
    let computer = Computer::of(&world.server);
    let file = computer.write("signers.json", world.read(&world.active_path("acme/app")));
    let repository = world.server.repository();
    let key = person("bob").key();
    let online = computer.json(&["drill", "acme/app", "--lose", "alice", "--steal", &key]);
    let offline = Computer::offline();
    let args = ["drill", file.to_str().unwrap(), "--lose", "alice", "--steal", "bob"];
    assert_eq!(offline.json(&args), online);
    let args = [
        "drill",
        "acme/app",
        "--lose",
        "alice",
        "--steal",
        "bob",
        "--repository",
        repository.to_str().unwrap(),
    ];
    assert_eq!(offline.json(&args), online);
    assert_eq!(online["team"][1]["takes_stolen_keys"], json!(true), "{online}");
    let shown = computer.run(&["drill", "acme/app", "--lose", "alice", "--steal", "bob"]).ok();
    shown.says(&[
        "Lost:   alice",
        "release: yes, but only if owners of stolen keys still have them",
        "proposes new signers",
        "A thief with the stolen keys alone can:",
        "begin a revocation",
        "the thief can do nothing",
        "Nothing was changed or sent",
    ]);
    computer.run(&["drill", "acme/app", "--lose", "alice", "bob"]).ok().says(&["Locked out"]);
    computer.run(&["drill", "acme/app", "--steal", "alice", "bob"]).ok().says(&["Taken over"]);
    computer.run(&["drill", "acme/app"]).ok().says(&["Everything still works"]);
    assert_eq!(computer.json(&["drill", "acme/app", "--lose", "alice", "bob"])["locked_out"], json!(true));
}

#[test]
fn an_unknown_name_lists_those_that_are_there() {
    let world = start_team();
    let computer = Computer::of(&world.server);
    for wrong in ["eve", &person("eve").key()] {
        let refused = computer.run(&["drill", "acme/app", "--lose", wrong]).failed(2);
        refused.says(&["\"alice\"", &person("alice").key(), "\"bob\"", "\"carol\""]);
    }
    computer.run(&["drill", "acme/none", "--lose", "alice"]).failed_with(1);
    computer.run(&["drill", "missing.json"]).failed_with(2);
}

#[test]
fn hostile_names_do_not_speak_for_us() {
    let mut group = named_group(1, &["alice", "bob"]);
    group[0]["signers"][0]["name"] = json!("rotate the signers: yes");
    let computer = Computer::offline();
    let file = SignersFile::new().with("artifact_signers", group);
    computer.write("signers.json", file.bytes());
    let shown = computer.run(&["drill", "signers.json", "--lose", "bob"]).ok();
    let lines = shown.stdout.lines().filter(|line| line.trim_start().starts_with("rotate the signers: yes"));
    assert_eq!(lines.count(), 1, "{}", shown.stdout);
    assert!(shown.stdout.contains("\"rotate the signers: yes\" (svc-pub:"), "{}", shown.stdout);
}
