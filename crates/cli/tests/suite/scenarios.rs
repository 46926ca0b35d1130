//! What the API answers, written as text: `tests/scenarios/*.txt`. Each file is played against one server.
//!
//! A line is a request and what it is answered with: `WHO does something => STATUS`. Behind the status stand parts of the
//! answer, with ` & ` in between, or the whole answer as JSON. A part that begins with `!` is missing. Header fields are parts
//! of an answer too, as `name: value`. A request that is refused must leave no commit behind. These are the lines:
//!
//! ```text
//! TEAM: artifact 2 alice bob, admin 1 alice, days 5      a signers file, dated days before a fixed day
//! alice registers PROJECT TEAM                           its file is published and registered; `proposes` for an update
//! everyone signs PATH: alice bob                         each in turn, and only the last one makes it complete
//! alice signs PATH
//! alice releases DIR CONTENT                             a checksums file of one line, which CONTENT decides
//! alice revokes PATH REASON                              also: withdraws PATH, objects PATH TEXT, takes-back PATH
//! alice GET TARGET, POST TARGET BODY                     signed by alice; without a name it is not signed
//! GET TARGET NAME: VALUE                                 with a header field
//! serve PATH: TEXT                                       on the file server; `\n` for a line break
//! asked: 2                                               so many requests reached the file server since the line before
//! operator: block THING                                  `countersign admin`, beside the server
//! restart, kill
//! ```
//!
//! Names in braces stand for what only the run knows: `{id DIR}`, `{pending DIR}`, `{active DIR}` and `{index DIR}` for paths,
//! `{files}` for the address of the file server, `{key NAME}` and `{body-key NAME}` for keys, `{sig NAME PATH}` for a signature
//! over a stored file, `{sig NAME 'TEXT'}` for one over a text, and `{etag}` for the tag of the answer before.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::second_thoughts::{object, withdraw};
use crate::support::{
    Launch, Person, Reply, Request, SignersFile, World, client::text, days_ago, person, signers::signer,
    world::checksums,
};

struct Play {
    world: World,
    teams: BTreeMap<String, SignersFile>,
    asked: usize,
    etag: String,
}

#[track_caller]
fn play(text: &str) {
    let mut play = Play { world: World::start(), teams: BTreeMap::new(), asked: 0, etag: String::new() };
    for (number, line) in
        text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        let line = play.fill_in(line);
        println!("{}: {line}", number + 1);
        play.step(&line);
    }
}

impl Play {
    fn step(&mut self, line: &str) {
        match line {
            "restart" => return self.world.server.restart(),
            "kill" => return self.world.server.crash_and_restart(),
            _ => {}
        }
        let Some((request, expected)) = line.split_once(" => ") else { return self.prepare(line) };
        let before = self.world.git().run(&["rev-parse", "HEAD"]);
        let reply = self.request(request);
        check(&reply, expected);
        self.etag = reply.header("etag").unwrap_or_default().to_owned();
        if reply.status >= 400 {
            assert_eq!(
                self.world.git().run(&["rev-parse", "HEAD"]),
                before,
                "a refused request has changed something"
            );
        }
    }

    fn prepare(&mut self, line: &str) {
        let (name, rest) = line.split_once(": ").unwrap_or_else(|| panic!("no line of a scenario: {line}"));
        if let Some(path) = name.strip_prefix("everyone signs ") {
            let signers: Vec<Person> = rest.split(' ').map(person).collect();
            return self.world.sign_all(path, &signers.iter().collect::<Vec<_>>());
        }
        if let Some(path) = name.strip_prefix("serve ") {
            return self.world.files.put(path, rest.replace("\\n", "\n"));
        }
        if name == "operator" {
            let data_dir = self.world.server.data_dir();
            let command = ["admin"].into_iter().chain(rest.split(' ')).chain(["--data-dir", text(&data_dir)]);
            assert!(Launch::default().args(command).output().status.success(), "{rest}");
            return;
        }
        if name == "asked" {
            let before = std::mem::replace(&mut self.asked, self.world.files.asked().len());
            return assert_eq!((self.asked - before).to_string(), rest, "{:?}", self.world.files.asked());
        }
        let mut file = SignersFile::new();
        for part in rest.split(", ") {
            let words: Vec<&str> = part.split(' ').collect();
            let (number, names) = (words[1].parse().expect("a number"), &words[2..]);
            let people: Vec<Person> = names.iter().map(|name| person(name)).collect();
            let people: Vec<&Person> = people.iter().collect();
            let threshold = usize::try_from(number).unwrap_or_default();
            file = match words[0] {
                "artifact" => file.artifact(threshold, &people),
                "admin" => file.admin(threshold, &people),
                "master" => file.master(threshold, &people),
                "revocation" => file.revocation(threshold, &people),
                "registrars" => {
                    let keys: Vec<_> = people.iter().map(|person| signer(&person.key())).collect();
                    file.with("registrars", json!(keys))
                }
                "days" => file.redated(days_ago(number)),
                other => panic!("no part of a team: {other}"),
            };
        }
        self.teams.insert(name.to_owned(), file);
    }

    fn request(&self, text: &str) -> Reply {
        let world = &self.world;
        let words: Vec<&str> = text.splitn(4, ' ').collect();
        match words.as_slice() {
            ["GET", target] => world.server.get(target),
            ["GET", target, name, value] => {
                world.server.send(&Request::get(target).with_header(name.trim_end_matches(':'), value))
            }
            [name, "GET", target] => world.get_as(&person(name), target),
            [name, "POST", target, body] => {
                world.send_as(&person(name), Request::new("POST", target).with_body(*body))
            }
            [name, "registers", project, team] => world.register(&person(name), project, &self.teams[*team]),
            [name, "proposes", project, team] => world.propose(&person(name), project, &self.teams[*team]),
            [name, "signs", path] => world.sign(&person(name), path),
            [name, "releases", dir, content] => {
                let url = world.publish_checksums(dir, &checksums(content));
                world.register_assets(&person(name), &[&url])
            }
            [name, "revokes", path, reason] => {
                world.revoke_with(&person(name), path, &world.revocation_of(path, reason))
            }
            [name, "withdraws", path] => withdraw(world, &person(name), path),
            [name, "objects", path, text] => object(world, &person(name), path, Some(text)),
            [name, "takes-back", path] => object(world, &person(name), path, None),
            _ => panic!("no request of a scenario: {text}"),
        }
    }

    /// The line with what its names in braces stand for.
    fn fill_in(&self, line: &str) -> String {
        let Some((before, rest)) = line.split_once('{') else { return line.to_owned() };
        let is_name = rest.starts_with(|c: char| c.is_ascii_lowercase());
        let is_text =
            rest.split_once('}').is_some_and(|(name, _)| name.starts_with("sig ") && name.contains('\''));
        let end = if is_text { "'}" } else { "}" };
        let Some((name, rest)) = rest.split_once(end).filter(|_| is_name) else {
            return format!("{before}{{{}", self.fill_in(rest));
        };
        let world = &self.world;
        let words: Vec<&str> = name.splitn(3, ' ').collect();
        let value = match words.as_slice() {
            ["etag"] => self.etag.clone(),
            ["files"] => world.files.url(""),
            ["id", dir] => world.id(dir),
            ["pending", project] => world.pending_path(project),
            ["active", project] => world.active_path(project),
            ["index", dir] => world.index_path(dir),
            ["key", name] => person(name).key(),
            ["body-key", name] => person(name).body_key(),
            ["ssh-key", name] => person(name).ssh_key(),
            ["sig", name, text] => match text.strip_prefix('\'') {
                Some(text) => person(name).sign_bytes(text.replace("\\\"", "\"").as_bytes()),
                None => person(name).sign_bytes(&world.read(&self.fill_in(&format!("{{{text}}}")))),
            },
            _ => panic!("no name of a scenario: {name}"),
        };
        format!("{before}{value}{}", self.fill_in(rest))
    }
}

fn check(reply: &Reply, expected: &str) {
    let (status, parts) = expected.split_once(' ').unwrap_or((expected, ""));
    assert_eq!(reply.status.to_string(), status, "{}", reply.text());
    if reply.status >= 400 {
        reply.error(reply.status);
    }
    if parts.starts_with('{') {
        let expected: Value = serde_json::from_str(parts).expect("an answer in JSON");
        return assert_eq!(reply.json(), expected);
    }
    let head: String = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    let told = head + &reply.text();
    for part in parts.split(" & ").filter(|part| !part.is_empty()) {
        match part.strip_prefix('!') {
            Some(part) => assert!(!told.contains(part), "{part:?} is in the answer: {told}"),
            None => assert!(told.contains(part), "{part:?} is not in the answer: {told}"),
        }
    }
}

macro_rules! scenarios {
    ($($name:ident)+) => { mod played { $(
        #[test]
        fn $name() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios/", stringify!($name), ".txt");
            super::play(&std::fs::read_to_string(file).expect("a scenario"));
        }
    )+ } };
}

scenarios! { signers signatures releases revocations second_thoughts signers_files checksums files blocked }
