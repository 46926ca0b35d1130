//! What the server answers, written as text: `tests/scenarios/*.txt`. Each file is played against one server.
//!
//! A line is a request and what it is answered with: `WHO does something => STATUS`. Behind the status stand parts of
//! the answer, with ` & ` in between, or `(nothing)`. A part that begins with `!` is missing, and ` … ` stands between
//! parts in this order; `\n` is the end of a line, and `(2 lines)` counts those of standard output. Header fields are
//! parts of an answer too, as `name: value`. An answer in JSON can be given whole, or after `~` with the fields that
//! matter. A request that is refused must leave no commit behind. These are the lines:
//!
//! ```text
//! config: [limits]\nassets = 2                           the configuration file, as the first line
//! TEAM: artifact 2 alice bob=Bob, admin 1 alice, days 5  a signers file, dated days before a fixed day; `=` for a name, `delay 48`, `servers URL`, `builders 1 carol *.zip`, `required-builders 1 carol`, `formats ssh` or `witnesses 2`
//! alice registers PROJECT TEAM                           its file is published and registered; `proposes` for an update
//! everyone signs PATH: alice bob                         each in turn, and only the last one makes it complete
//! alice signs PATH
//! alice releases DIR CONTENT                             a checksums file of one line, which CONTENT decides
//! alice revokes PATH REASON                              `joins PATH` with the revocation that others have begun
//! alice withdraws PATH                                   also: objects PATH TEXT, takes-back PATH
//! dave rebuilds PATH CONTENT FIELD=VALUE                 states what a build gave; the fields are other ones than usual
//! alice GET TARGET, POST TARGET BODY                     signed by alice; `alice@-60` a minute ago; without a name not signed
//! GET TARGET | NAME: VALUE | -NAME | +NAME               with a header field, without one, with one twice
//! again, again TARGET                                    the last of these requests once more, byte for byte
//! page TARGET                                            as a browser asks: its words, `-> TARGET` for links, `raw TEXT`
//! operator block THING                                   `countersign admin`, answered with an exit code and what it says
//! alice $ sign PATH --yes                                the client with alice's key; `$ ` without a key
//! alice@away $ COMMAND                                   on another computer; `away` reaches no server, `new` to `new6` were told of none
//! write NAME: TEXT, holds NAME: TEXT, lists: NAMES       files of a computer, also as `write@away`; `carry NAMES: away there`
//! sh: COMMANDS                                           of a shell, in a computer's directory, with $CONFIG for its settings
//! sh alice: countersign COMMAND                          where `countersign` is the client, with alice's key
//! pins: FIELDS                                           what its file of pins has, in JSON; `pins: none` for no file
//! serve PATH: TEXT                                       on the file server; `\n` for a line break
//! publish DIR: NAME=TEXT NAME=TEXT                       files and SHA256SUMS; `release DIR by alice bob` signs them
//! upstream PATH: 404                                     also: `hung up`, `broken off TEXT`, `endless`
//! asked: 2                                               so many requests reached the file server since the line before
//! clock: 90                                              so many minutes after the start; the first line says `clock`
//! restart, kill, stop, start, sound                     the last one asks Git
//! ```
//!
//! `<a|b>` in a request stands for one request with each, and `<1..9>` for all numbers between these. Words of a
//! command that contain spaces stand between `'`. A command that fails says why and gives a hint, and writes nothing to
//! standard output.
//!
//! Names in braces stand for what only the run knows: `{id DIR}`, `{pending DIR}`, `{active DIR}` and `{index DIR}` for
//! paths, `{files}` for the address of the file server, `{key NAME}`, `{body-key NAME}`, `{ssh-key NAME}`,
//! `{short-key NAME}` and `{key-page NAME}` for keys, `{sig NAME PATH}` for a signature over a stored file,
//! `{sig NAME 'TEXT'}` for one over a text, `{base64 PATH}`, `{digest PATH}`, `{sha512 PATH}` and `{blob PATH}` for a
//! stored file, `{file TEAM}` for a signers file, and as `{json TEAM}` in JSON, `{file-digest TEAM}` for its digest,
//! `{sum CONTENT}` for the digest in a checksums file, `{repeat 64 a}` for a long text, `{char 202e}` for one that
//! cannot be seen, `{head}` for the newest commit, and `{etag}` for the last tag of an answer, `{server}` for its
//! address, `{repository}` for its repository, `{text NAME}` for a file of the computer `home`, `{sha256 TEXT}` for a
//! digest, `{log-key}`, `{log-key ORIGIN}` of another log and `{witness-key 1}`, `{key-file NAME}` for a private key,
//! `{accepted DIR}` for since when the computer `home` trusts a project. `{url NAME}` and `{upper NAME}` write any of
//! them in percent code and in capitals.

use std::{collections::BTreeMap, path::Path, process::Command, process::Stdio};

use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{digest::Sha256, digest::Sha512, key::encode_base64};
use countersign_testing::{key, log_key, witness_key};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::{Computer, Ran, add_files, put_release, text};
use crate::support::environment::clear_environment;
use crate::support::html::{Html, key_page, open_with_script, percent_encode, short_key, visit};
use crate::support::objections::{object, rebuild, withdraw};
use crate::support::people::{new_nonce, seconds_ago};
use crate::support::{
    Answer, Launch, Person, Reply, Request, SignersFile, World, days_ago, machine_clock::MachineClock,
    metrics::free_address, person, signers::signer, world::checksums,
};

struct Play {
    world: World,
    /// The clock of the server and of all computers, if the scenario sets it.
    clock: Option<MachineClock>,
    computers: BTreeMap<String, Computer>,
    teams: BTreeMap<String, SignersFile>,
    asked: usize,
    etag: String,
    sent: Option<Request>,
}

/// What came back.
enum Told {
    Answer(Reply),
    Page(Html),
    /// The exit code of a command, and all that it said.
    Output(i32, String),
    Client(Ran),
}

#[track_caller]
fn play(text: &str) {
    let config = text.lines().find_map(|line| line.strip_prefix("config: ")).unwrap_or_default();
    let clock = text.starts_with("clock\n").then(MachineClock::new);
    let Some(clock) = clock.map_or(Some(None), |clock| clock.map(Some)) else { return };
    // It keeps its address when it is started again, for the computers that know it.
    let world = World::start_with(|launch, _| {
        let launch = launch.arg("--dev").configured(&config.replace("\\n", "\n")).at(free_address());
        clock.iter().fold(launch, |launch, clock| clock.give_to(launch))
    });
    let (computers, teams, asked, etag) = Default::default();
    let mut play = Play { world, clock, computers, teams, asked, etag, sent: None };
    let is_step = |line: &str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("config: ");
    for (number, line) in text.lines().enumerate().filter(|(_, line)| is_step(line)) {
        println!("{}: {line}", number + 1);
        play.step(line);
    }
}

impl Play {
    fn step(&mut self, line: &str) {
        let server = &mut self.world.server;
        match line {
            "restart" => return server.restart(),
            "kill" => return server.crash_and_restart(),
            "stop" => return assert_eq!(server.stop().code(), Some(0)),
            "start" => return server.start_again(),
            "sound" => return self.world.git().assert_sound(),
            "clock" => return,
            _ => {}
        }
        let line = self.fill_in(line);
        let Some((request, expected)) = line.split_once(" => ") else { return self.prepare(&line) };
        for request in expand(request) {
            println!("    {}", request.chars().take(400).collect::<String>());
            let before = self.head();
            let told = self.ask(&request);
            check(&told, expected, &request);
            let Told::Answer(reply) = told else { continue };
            if let Some(tag) = reply.header("etag") {
                tag.clone_into(&mut self.etag);
            }
            assert!(reply.status < 400 || self.head() == before, "a refused request has changed something");
        }
    }

    /// The newest commit, of a server that runs.
    fn head(&self) -> Option<String> {
        let reply =
            self.world.server.is_running().then(|| self.world.server.send(&Request::head("/v1/journal")));
        reply.and_then(|reply| reply.header("x-svc-commit").map(str::to_owned))
    }

    fn prepare(&mut self, line: &str) {
        let (name, rest) = line.split_once(": ").unwrap_or_else(|| panic!("no line of a scenario: {line}"));
        if let Some(path) = name.strip_prefix("everyone signs ") {
            let signers: Vec<Person> = rest.split(' ').map(person).collect();
            return self.world.sign_all(path, &signers.iter().collect::<Vec<_>>());
        }
        let content = rest.replace("\\n", "\n");
        let (verb, noun) = name.split_once(' ').unwrap_or((name, ""));
        let (verb, computer) = verb.split_once('@').unwrap_or((verb, "home"));
        match verb {
            "write" => return drop(self.computer(computer).write(noun, content)),
            "holds" => {
                let found = String::from_utf8(self.computer(computer).read(noun)).expect("text");
                return assert_eq!(found, content, "{line}");
            }
            "sh" => {
                let computer = self.computer(computer);
                let mut shell = Command::new("sh");
                clear_environment(&mut shell);
                computer.settle(&mut shell);
                let program = Path::new(env!("CARGO_BIN_EXE_countersign")).parent().expect("a directory");
                let path = format!("{}:{}", text(program), std::env::var("PATH").unwrap_or_default());
                shell.args(["-ec", rest]).env("CONFIG", computer.config()).env("PATH", path);
                if !noun.is_empty() {
                    shell.env("COUNTERSIGN_KEY", computer.key_of(noun));
                }
                return drop(Ran::of(shell.stdin(Stdio::null())).ok());
            }
            "pins" if rest == "none" => {
                return assert!(!self.computer(computer).config().join("trust.json").exists(), "{line}");
            }
            "pins" => {
                let (pins, fields) = (self.computer(computer).pins(), serde_json::from_str(rest));
                return assert!(includes(&pins, &fields.expect("fields in JSON")), "{rest} is not in {pins}");
            }
            "lists" => return assert_eq!(self.computer(computer).listing().join(" "), rest),
            "carry" => {
                let (from, to) = rest.split_once(' ').expect("two computers");
                self.computer(to);
                let names: Vec<&str> = noun.split(' ').collect();
                return self.computers[from].carry(&self.computers[to], &names);
            }
            "publish" => return drop(put_release(&self.world.files, noun, &named(rest))),
            "release" => {
                let (dir, signers) = noun.split_once(" by ").expect("signers");
                let signers: Vec<Person> = signers.split(' ').map(person).collect();
                let signers: Vec<&Person> = signers.iter().collect();
                return drop(add_files(&self.world, dir, &named(rest), &signers));
            }
            _ => {}
        }
        if let Some(path) = name.strip_prefix("serve ") {
            return self.world.files.put(path, content);
        }
        if let Some(path) = name.strip_prefix("upstream ") {
            let answer = match rest {
                "hung up" => Answer::HungUp,
                "endless" => Answer::Endless,
                other => match other.strip_prefix("broken off ") {
                    Some(half) => Answer::BrokenOff(half.into()),
                    None => Answer::Status(other.parse().expect("a status")),
                },
            };
            return self.world.files.set(path, answer);
        }
        if name == "clock" {
            let minutes: i64 = rest.parse().expect("minutes");
            return self.clock.as_ref().expect("a clock").set(60 * minutes);
        }
        if name == "asked" {
            let before = std::mem::replace(&mut self.asked, self.world.files.asked().len());
            return assert_eq!((self.asked - before).to_string(), rest, "{:?}", self.world.files.asked());
        }
        self.teams.insert(name.to_owned(), rest.split(", ").fold(SignersFile::new(), add_role));
    }

    fn ask(&mut self, line: &str) -> Told {
        let world = &self.world;
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        Told::Answer(match words.as_slice() {
            ["page", target] if target.starts_with("/verify") => {
                return Told::Page(open_with_script(&world.server, target, "/assets/verify/page.mjs"));
            }
            ["page", target] => return Told::Page(visit(&world.server, target)),
            ["operator", ..] => {
                let data_dir = world.server.data_dir();
                let args = line.split(' ').skip(1).chain(["--data-dir", text(&data_dir)]);
                let output = Launch::default().arg("admin").args(args).output();
                let said = [output.stdout, output.stderr].concat();
                let code = output.status.code().expect("it ends by itself");
                return Told::Output(code, String::from_utf8(said).expect("text"));
            }
            _ if line.starts_with("$ ") || line.contains(" $ ") => {
                return Told::Client(self.run_client(line));
            }
            ["again", target @ ..] => {
                let mut request = self.sent.clone().expect("a request before this one");
                if let [target] = target {
                    request.target = target.as_bytes().to_vec();
                }
                world.server.send(&request)
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
            [name, "joins", path] => {
                let document = world.read(&format!("{path}.revocation.json.pending"));
                world.revoke_with(&person(name), path, &String::from_utf8_lossy(&document))
            }
            [name, "withdraws", path] => withdraw(world, &person(name), path),
            [name, "objects", path, why] => object(world, &person(name), path, Some(why)),
            [name, "takes-back", path] => object(world, &person(name), path, None),
            [name, "rebuilds", path, stated] => {
                let mut words = stated.split(' ');
                let content = words.next().expect("a content");
                let others: Vec<_> = words.map(|word| word.split_once('=').expect("FIELD=VALUE")).collect();
                rebuild(world, &person(name), path, content, &others)
            }
            _ => {
                let request = read_request(line);
                let reply = world.server.send(&request);
                if request.method == "HEAD" {
                    self.compare_with_get(line, &reply);
                }
                self.sent = Some(request);
                reply
            }
        })
    }

    fn computer(&mut self, name: &str) -> &Computer {
        let server = &self.world.server;
        self.computers.entry(name.to_owned()).or_insert_with(|| match name {
            "away" | "new" | "new2" | "new3" | "new4" | "new5" | "new6" => Computer::offline(),
            _ => Computer::of(server),
        })
    }

    fn run_client(&mut self, line: &str) -> Ran {
        let (who, command) = line.split_once("$ ").expect("a command");
        let (who, place) = who.trim_end().split_once('@').unwrap_or((who.trim_end(), "home"));
        let args = words(command);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let computer = self.computer(place);
        let mut command = if place.trim_end_matches(char::is_numeric) == "new" {
            computer.newcomer(&args)
        } else {
            computer.command(&args)
        };
        if !who.is_empty() {
            command.env("COUNTERSIGN_KEY", computer.key_of(who));
        }
        self.clock.iter().for_each(|clock| clock.lend_to(&mut command));
        Ran::of(&mut command)
    }

    /// HEAD is answered like GET, without the body.
    fn compare_with_get(&self, text: &str, head: &Reply) {
        let get = self.world.server.send(&read_request(&text.replacen("HEAD", "GET", 1)));
        assert_eq!((head.status, &head.body[..]), (get.status, &b""[..]), "{text}");
        for name in ["content-type", "content-length", "etag", "cache-control"] {
            assert_eq!(head.header(name), get.header(name), "{name} of {text}");
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
        format!("{before}{}{}", self.value_of(name), self.fill_in(rest))
    }

    fn value_of(&self, name: &str) -> String {
        let world = &self.world;
        let stored = |path: &str| world.read(&self.fill_in(&format!("{{{path}}}")));
        let words: Vec<&str> = name.splitn(3, ' ').collect();
        let of = |kind: &str| name.strip_prefix(kind).unwrap_or_default().trim_start();
        match words.as_slice() {
            ["etag"] => self.etag.clone(),
            ["head"] => self.head().expect("a commit"),
            ["files"] => world.files.url(""),
            ["repository"] => text(&world.server.repository()).to_owned(),
            ["text", ..] => String::from_utf8(self.computers["home"].read(of("text"))).expect("text"),
            ["server"] => format!("http://{}", world.server.address()),
            ["log-key"] => log_key().to_string(),
            ["log-key", origin] => {
                let other = VerifierKey::new(origin, KeyKind::Log, key(99).public_key());
                other.expect("a name").to_string()
            }
            ["witness-key", number] => witness_key(number.parse().expect("a number")).to_string(),
            ["sha256", ..] => Sha256::of(of("sha256").as_bytes()).to_string(),
            ["port"] => world.files.port().to_string(),
            ["id", dir] => world.id(dir),
            ["pending", project] => world.pending_path(project),
            ["active", project] => world.active_path(project),
            ["index", ..] => world.index_path(of("index")),
            ["key", name] => person(name).key(),
            ["key-file", name] => text(&self.computers["home"].key_of(name)).to_owned(),
            ["accepted", dir] => {
                let accepted = &self.computers["home"].pins()["projects"][world.id(dir)]["accepted_at"];
                accepted.as_str().expect("a time").to_owned()
            }
            ["body-key", name] => person(name).body_key(),
            ["ssh-key", name] => person(name).ssh_key(),
            ["short-key", name] => short_key(&person(name)),
            ["key-page", name] => key_page(&person(name)),
            ["url", ..] => percent_encode(&self.value_of(of("url")), ""),
            ["upper", ..] => self.value_of(of("upper")).to_uppercase(),
            ["file", team] => String::from_utf8(self.teams[*team].bytes()).expect("JSON"),
            ["file-digest", team] => Sha512::of(&self.teams[*team].bytes()).to_prefixed(),
            ["json", team] => json!(self.value_of(&format!("file {team}"))).to_string(),
            ["sum", content] => checksums(content)[..64].to_owned(),
            ["char", code] => {
                char::from_u32(u32::from_str_radix(code, 16).expect("hex")).expect("a character").into()
            }
            ["repeat", count, text] => text.repeat(count.parse().expect("a number")),
            ["base64", ..] => encode_base64(&stored(of("base64"))),
            ["sha512", ..] => Sha512::of(&stored(of("sha512"))).to_string(),
            ["digest", ..] => Sha512::of(&stored(of("digest"))).to_prefixed(),
            ["blob", ..] => {
                let path = self.fill_in(&format!("{{{}}}", of("blob")));
                world.git().run(&["rev-parse", &format!("main:{path}")])
            }
            ["sig", name, text] => match text.strip_prefix('\'') {
                Some(text) => person(name).sign_bytes(text.replace("\\\"", "\"").as_bytes()),
                None => person(name).sign_bytes(&stored(text)),
            },
            _ => panic!("no name of a scenario: {name}"),
        }
    }
}

/// `NAME=TEXT NAME=TEXT`
fn named(list: &str) -> Vec<(&str, &[u8])> {
    let parts = list.split(' ').map(|part| part.split_once('=').expect("NAME=TEXT"));
    parts.map(|(name, text)| (name, text.as_bytes())).collect()
}

/// The words of a command. What stands between `'` is one.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut is_quoted) = (vec![None::<String>], false);
    for c in command.replace("\\n", "\n").chars() {
        match c {
            '\'' => {
                is_quoted = !is_quoted;
                words.last_mut().expect("a word").get_or_insert_default();
            }
            ' ' if !is_quoted => words.push(None),
            c => words.last_mut().expect("a word").get_or_insert_default().push(c),
        }
    }
    words.into_iter().flatten().collect()
}

/// One more role of a signers file, or its date.
fn add_role(file: SignersFile, part: &str) -> SignersFile {
    let words: Vec<&str> = part.split(' ').collect();
    if let [field @ ("servers" | "formats"), values @ ..] = words.as_slice() {
        return file.with(field, json!(values));
    }
    let number = words[1].parse::<i64>().expect("a number");
    let (patterns, names): (Vec<&str>, Vec<&str>) = words[2..].iter().partition(|word| word.contains('*'));
    let signers: Vec<Value> = names
        .iter()
        .map(|name| match name.split_once('=') {
            Some((name, label)) => {
                let mut signer = signer(&person(name).key());
                signer["name"] = json!(label);
                signer
            }
            None => signer(&person(name).key()),
        })
        .collect();
    let group = json!({ "threshold": number, "signers": signers });
    match words[0] {
        "artifact" => file.and("artifact_signers", group),
        "admin" => file.and("admin_keys", group),
        "master" => file.and("master_keys", group),
        "revocation" => file.and("revocation_keys", group),
        "builders" | "required-builders" => {
            let mut rebuilds = json!({ "builders": [group], "required": words[0] == "required-builders" });
            if !patterns.is_empty() {
                rebuilds["files"] = json!(patterns);
            }
            file.with("rebuilds", rebuilds)
        }
        "registrars" => file.with("registrars", json!(signers)),
        "witnesses" => {
            let keys = [1, 2, 3].map(|n| witness_key(n).to_string());
            let witnesses = json!([{ "threshold": number, "keys": keys }]);
            let log = log_key().to_string();
            file.with(
                "transparency",
                json!({ "log": log, "witnesses": witnesses, "max_age_seconds": 86_400 }),
            )
        }
        "delay" => file.with("rotation_delay_hours", json!(number)),
        "days" => file.redated(days_ago(number)),
        other => panic!("no part of a team: {other}"),
    }
}

/// `[WHO] METHOD TARGET [BODY]`, and header fields behind ` | `.
fn read_request(text: &str) -> Request {
    let mut fields = text.split(" | ");
    let line = fields.next().unwrap_or_default();
    let is_signed = line.starts_with(|c: char| c.is_ascii_lowercase());
    let (who, line) = line.split_once(' ').filter(|_| is_signed).unwrap_or(("", line));
    let words: Vec<&str> = line.splitn(3, ' ').collect();
    let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"];
    let method = methods.into_iter().find(|method| *method == words[0]);
    let method = method.unwrap_or_else(|| panic!("no request of a scenario: {text}"));
    let mut request = Request::new(method, words[1]).with_body(words.get(2).copied().unwrap_or_default());
    if let Some((name, seconds)) = who.split_once('@') {
        let seconds: i64 = seconds.parse().expect("seconds");
        request = person(name).sign_at(request, seconds_ago(-seconds), &new_nonce());
    } else if !who.is_empty() {
        request = person(who).sign(request);
    }
    fields.fold(request, |request, field| match (field.split_at(1), field.split_once(": ")) {
        (("-", name), _) => request.without_header(name),
        (("+", name), _) => {
            let value = request.header(name).to_owned();
            request.with_header(name, &value)
        }
        (_, Some((name, value))) => request.replace_header(name, value),
        _ => panic!("no header field: {field}"),
    })
}

/// The requests that a line with alternatives stands for.
fn expand(request: &str) -> Vec<String> {
    let parts = request.split_once('<').and_then(|(before, rest)| Some((before, rest.split_once('>')?)));
    let Some((before, (choice, after))) = parts else { return vec![request.to_owned()] };
    let choices: Vec<String> = match choice.split_once("..").map(|(from, to)| (from.parse(), to.parse())) {
        Some((Ok(from), Ok(to))) => (from..=to).map(|number: usize| number.to_string()).collect(),
        _ => choice.split('|').map(str::to_owned).collect(),
    };
    let rest = expand(after);
    let of = |choice: &String| rest.iter().map(|rest| format!("{before}{choice}{rest}")).collect::<Vec<_>>();
    choices.iter().flat_map(of).collect()
}

#[track_caller]
fn check(told: &Told, expected: &str, request: &str) {
    let (status, parts) = expected.split_once(' ').unwrap_or((expected, ""));
    let (got, said) = match told {
        Told::Answer(reply) => {
            let is_json = !request.contains("HEAD ") && !request.starts_with("GET /badge/");
            if reply.status >= 400 && is_json {
                reply.error(reply.status);
            }
            let head: String =
                reply.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
            (reply.status.to_string(), head + &reply.text())
        }
        Told::Page(html) => (html.status.to_string(), html.words.clone()),
        Told::Output(code, said) => (code.to_string(), said.clone()),
        Told::Client(ran) => (ran.code.to_string(), format!("{}{}", ran.stdout, ran.stderr)),
    };
    assert_eq!(got, status, "{request}: {said}");
    let json = || match told {
        Told::Answer(reply) => reply.json(),
        Told::Client(ran) if request.contains("--json") => ran.json(),
        Told::Client(ran) => serde_json::from_str(&ran.stdout).expect("JSON"),
        Told::Page(_) | Told::Output(..) => serde_json::from_str(&said).expect("JSON"),
    };
    if let Told::Client(ran) = told
        && ran.code != 0
    {
        check_failure(ran, request);
    }
    if parts == "(nothing)" {
        return assert_eq!(said, "", "{request}");
    }
    if let Some(fields) = parts.strip_prefix('~') {
        let fields = serde_json::from_str(fields).expect("fields in JSON");
        return assert!(includes(&json(), &fields), "{fields} is not in {said}");
    }
    if parts.starts_with('{') {
        let expected: Value = serde_json::from_str(parts).expect("an answer in JSON");
        return assert_eq!(json(), expected);
    }
    for part in parts.replace("\\n", "\n").split(" & ").filter(|part| !part.is_empty()) {
        let (is_wanted, part) = part.strip_prefix('!').map_or((true, part), |part| (false, part));
        let is_there = match (told, part.strip_prefix("-> "), part.strip_prefix("raw ")) {
            (Told::Page(html), Some(target), _) => html.links.iter().any(|link| link == target),
            (Told::Page(html), _, Some(text)) => html.text.contains(text),
            (Told::Client(ran), ..) if part.ends_with(" lines)") => {
                part == format!("({} lines)", ran.stdout.lines().count())
            }
            _ => comes_in_order(&said, part),
        };
        assert_eq!(is_there, is_wanted, "{part:?} of {request}: {said}");
    }
}

/// A command that fails says why, with the way out. Only one that has done its work, or a part of it, has
/// something to show.
#[track_caller]
fn check_failure(ran: &Ran, request: &str) {
    if request.contains("--json") {
        ran.json_error(ran.code);
        return;
    }
    let has_hint = ran.stderr.contains("hint: ") || ran.stderr.contains("--help");
    assert!(ran.stderr.contains("error: ") && has_hint, "{request}: {ran:?}");
    let has_done_some = ran.code == 10 || request.contains(" --submit ");
    assert!(ran.stdout.is_empty() || has_done_some, "{request}: {ran:?}");
}

fn comes_in_order(mut said: &str, parts: &str) -> bool {
    parts.split(" … ").all(|part| {
        let at = said.find(part);
        said = at.map_or("", |at| &said[at + part.len()..]);
        at.is_some()
    })
}

/// Whether a value has these fields. Lists have as many elements, each with its fields; `null` stands for no field.
fn includes(value: &Value, fields: &Value) -> bool {
    match (value, fields) {
        (Value::Object(value), Value::Object(fields)) => fields
            .iter()
            .all(|(name, field)| value.get(name).map_or(field.is_null(), |value| includes(value, field))),
        (Value::Array(value), Value::Array(fields)) => {
            value.len() == fields.len()
                && value.iter().zip(fields).all(|(value, field)| includes(value, field))
        }
        _ => value == fields,
    }
}

/// Each line of `mistakes.txt` is a configuration, and what the server and `--check` say of it.
#[test]
fn mistakes_in_a_configuration_are_told_before_anything_is_made() {
    let dir = TempDir::new().expect("a temporary directory");
    let (config, data) = (dir.path().join("countersign.toml"), dir.path().join("data"));
    let lines = include_str!("../scenarios/mistakes.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let line = line.replace("\\n", "\n").replace("CONFIG", text(&config));
        let (mistake, words) = line.split_once(" => ").expect("a configuration and words");
        std::fs::write(&config, mistake).expect("a configuration file");
        let launch = Launch::serve(&data).args(["--config", text(&config)]);
        let checked = launch.clone().arg("--check").output();
        assert_eq!(checked.status.code(), Some(2), "{line}");
        let checked = String::from_utf8([checked.stdout, checked.stderr].concat()).expect("text");
        for said in [launch.refusal(), checked] {
            for part in words.split(" & ") {
                let is_wanted = !part.starts_with('!');
                assert_eq!(said.contains(part.trim_start_matches('!')), is_wanted, "{part:?}: {said}");
            }
            assert!(!said.contains("s0-secret"), "{said}");
        }
        assert!(!data.exists(), "{line}");
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

scenarios! {
    activity addresses badges blocked capped catalogue chains changes checksums client_bundle client_config
    client_detached client_download client_export client_finding client_flow client_formats client_idle
    client_incident client_init client_jobs client_keygen client_names client_objections client_output client_plan
    client_rebuilds client_replaced client_revoke client_rotation client_servers client_several client_sign
    client_signers client_veto client_whole files lookalikes names objections objections_pages operator pages
    questions rebuilds rebuilds_pages releases requests revocations signatures signers signers_files verify_page whole_host
}
