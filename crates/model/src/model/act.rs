//! Chooses requests, sends them one after the other, and compares the answers with the specification.

use std::collections::{BTreeMap, BTreeSet};

use countersign_api::error_code::ErrorCode;
use countersign_core::values::key::Signature;
use serde_json::{Value, json};

use crate::model::cast::{
    Choices, PEOPLE, Person, RunBase, Spelling, active_signers, base64, canonical, choose_spelling, index_in,
    object, openssh, pending_signers, text,
};
use crate::model::generate::{How, PublishedSigners, choose_checksums, choose_signers};
use crate::model::request::{DAY, MINUTE, Proof, Request, SECOND, Signing, choose_proof};
use crate::model::rulebook::{Config, ExpectedAnswer, Project, Proposing, Spec, ok, refuse};
use crate::model::{generate, server::Server, server::ServerAnswer};

#[derive(Debug)]
pub(crate) struct Player<'s> {
    pub(super) server: &'s mut Server,
    pub(super) spec: Spec,
    pub(super) base: RunBase,
    pub(super) played: Played,
    nonces: usize,
    pub(super) last: Option<SentRequest>,
}

#[derive(Debug, Clone)]
pub(super) struct SentRequest {
    pub(super) request: Request,
    /// Whether its sender was proved.
    pub(super) is_proved: bool,
}

impl<'s> Player<'s> {
    pub(crate) fn new(server: &'s mut Server) -> Self {
        let base = server.begin_run();
        let spec = Spec { now: server.now(), ..Spec::default() };
        Self { server, spec, base, played: Played::default(), nonces: 0, last: None }
    }

    /// Checks every stored file, and that there is no other.
    pub(crate) fn finish(mut self) -> Played {
        let (stored, expected) = (self.server.files_below(&self.base.root()), self.spec.files());
        let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&stored), names(&expected), "other files are stored (left) than must be (right)");
        for (path, content) in &expected {
            assert_eq!(stored[path], *content, "{path} has another content");
        }
        let projects = self.spec.projects.values();
        self.played.activations = projects.map(|project| project.history.len()).sum();
        self.played
    }

    pub(crate) fn act(&mut self, choices: &mut Choices<'_>) {
        match choices.below(24) {
            0 | 1 => self.propose(choices, true),
            2..=4 => self.sign_open(choices),
            5 | 6 => self.sign_all(choices),
            7..=9 => self.register_assets(choices),
            10 => self.revoke(choices),
            11 => self.veto_or_revoke(choices),
            12 => self.ask_status(choices),
            13 => self.ask_pending(choices),
            14 => self.read(choices, "files", Spec::file),
            15 => self.read(choices, "get_signers", Spec::signers),
            16 => self.read_chain(choices),
            17 => self.ask_files_to_sign(choices),
            18 => self.pass_time(choices),
            // Before there is a release, there is little to withdraw.
            20..=23 if self.spec.indexes.is_empty() => self.sign_all(choices),
            20 | 21 => self.withdraw(choices),
            22 | 23 => self.object_or_rebuild(choices),
            _ => self.act_rarely(choices),
        }
    }

    fn act_rarely(&mut self, choices: &mut Choices<'_>) {
        match choices.below(5) {
            0 => self.replay(),
            1 => self.propose(choices, false),
            2 => {
                let (path, how) = (self.choose_path(choices), generate::choose_how(choices));
                let signer = choices.below(PEOPLE);
                self.submit(choices, &path, signer, how);
            }
            3 => self.ping(choices),
            _ => self.ask_for_nonsense(choices),
        }
    }

    fn pass_time(&mut self, choices: &mut Choices<'_>) {
        let steps = [SECOND, MINUTE, 7 * MINUTE, SECOND / 4, DAY, 13 * DAY, 14 * DAY, 14 * DAY - SECOND];
        self.spec.now += choices.of(&steps);
        self.server.set_now(self.spec.now);
        self.played.waited += self.spec.settle();
        self.server.settle();
    }

    /// Sends a request, signed by `caller` if there is one, and compares the answer.
    pub(super) fn exchange(
        &mut self,
        choices: &mut Choices<'_>,
        caller: Option<Person>,
        mut request: Request,
        decide: impl FnOnce(&mut Spec, &Request) -> ExpectedAnswer,
    ) -> ExpectedAnswer {
        let is_proved = caller.is_none_or(|caller| self.authenticate(choices, caller, &mut request));
        let expected = if is_proved { decide(&mut self.spec, &request) } else { refuse(401) };
        let answer = self.server.ask(&request);
        compare(&request, &expected, &answer);
        self.played.requests += 1;
        if !matches!(expected, ExpectedAnswer::Error { .. }) {
            self.played.successes += 1;
            self.played.changes += usize::from(request.method == "POST");
        }
        if caller.is_some() {
            self.last = Some(SentRequest { request, is_proved });
        }
        expected
    }

    pub(super) fn authenticate(
        &mut self,
        choices: &mut Choices<'_>,
        caller: Person,
        request: &mut Request,
    ) -> bool {
        let mut proof = choose_proof(choices);
        self.nonces += 1;
        let run: u32 = self.base.run[1..].parse().expect("runs are numbered");
        let version = if proof == Proof::NotRandom { 1 } else { 4 };
        let fresh = format!("{run:08x}-0000-{version}000-8abc-{:012x}", self.nonces);
        let mut nonce = fresh.clone();
        if matches!(proof, Proof::UsedNonce | Proof::UsedNonceInCapitals) {
            // The server can forget it later than this (D31).
            let is_known = |(_, time): &&(String, i128)| time + 7 * MINUTE > self.spec.now;
            match self.spec.nonces.iter().rev().find(is_known) {
                Some((used, _)) if proof == Proof::UsedNonce => nonce = used.clone(),
                Some((used, _)) => nonce = used.to_ascii_uppercase(),
                None => proof = Proof::Right,
            }
        }
        request.sign(Signing { caller, proof, now: self.spec.now, nonce: &nonce });
        self.spec.authenticate(proof, &nonce)
    }

    /// Sends the same bytes a second time, which prove nothing (spec §5).
    fn replay(&mut self) {
        let Some(SentRequest { request, is_proved }) = self.last.clone() else { return };
        if is_proved {
            compare(&request, &refuse(401), &self.server.ask(&request));
            self.played.requests += 1;
        }
    }

    fn propose(&mut self, choices: &mut Choices<'_>, sensibly: bool) {
        let id = self.base.choose_project(choices);
        let known = self.spec.projects.get(&id).cloned().unwrap_or_default();
        let is_update = if sensibly { known.active.is_some() } else { choices.one_in(2) };
        let upstream = self.choose_upstream(choices, &known);
        let governing = known.active.as_ref().filter(|_| is_update).or(upstream.config.as_ref());
        let insiders: Vec<Person> =
            governing.map(|config| config.everyone().into_iter().collect()).unwrap_or_default();
        let caller = choose_person(choices, &insiders);
        let public_key = if choices.one_in(16) { (caller + 1) % PEOPLE } else { caller };
        let file = choices
            .of(&["svc.signers.json", "svc.signers.json", ".svc.signers/keys.json", "svc.signers/a.json"]);
        let url = self.base.url_of(&format!("{id}/{file}"));
        self.server.publish(&url, upstream.content);
        let key = spell_key(choices, public_key);
        let body = json!({ "signers_file_url": url, "public_key": key }).to_string();
        let target = if is_update { "update_signers" } else { "register_repo" };
        let config = upstream.config;
        self.exchange(choices, Some(caller), Request::post(target, body), |spec, request| {
            let registration = keep(request, caller);
            let proposing = Proposing { project: id, url, config, caller, public_key, registration };
            if is_update { spec.update(&proposing) } else { spec.register(&proposing) }
        });
    }

    /// Chooses mostly something new, or else something that is or was proposed.
    fn choose_upstream(&self, choices: &mut Choices<'_>, known: &Project) -> PublishedSigners {
        let superseded = known.superseded.values().map(|proposal| &proposal.config);
        let pending = known.pending.iter().map(|proposal| &proposal.config);
        let again: Vec<_> = superseded.chain(pending).chain(&known.active).collect();
        if !again.is_empty() && choices.one_in(4) {
            return PublishedSigners::of(choices.of(&again));
        }
        let now = self.spec.seconds();
        let after = known.active.as_ref().map_or(now - 1_000, |active| active.timestamp);
        choose_signers(choices, after, now)
    }

    fn sign_open(&mut self, choices: &mut Choices<'_>) {
        let open = generate::open_files(&self.spec);
        if open.is_empty() {
            return;
        }
        let (path, how) = (choices.of(&open), generate::choose_how(choices));
        let signer = choose_person(choices, &self.spec.awaited(&path));
        self.submit(choices, &path, signer, how);
    }

    /// Lets everyone sign until the file is complete.
    fn sign_all(&mut self, choices: &mut Choices<'_>) {
        let open = generate::open_files(&self.spec);
        if open.is_empty() {
            return;
        }
        let path = choices.of(&open);
        for signer in 0..PEOPLE {
            if !generate::open_files(&self.spec).contains(&path) {
                break;
            }
            self.submit(&mut Choices::new(&[]), &path, signer, How::Right);
        }
    }

    fn submit(&mut self, choices: &mut Choices<'_>, path: &str, signer: Person, how: How) {
        let (mut submitted, sent) = generate::make_signature(&self.spec, path, signer, how);
        submitted.formats = generate::choose_formats(choices, &self.spec, path, signer);
        // A relay can submit for another signer (D17).
        let caller = if choices.one_in(4) { choices.below(PEOPLE) } else { signer };
        let spelling = choose_spelling(choices, path);
        let spelled = match &spelling {
            Spelling::Same(path) | Spelling::Refused(path) => path,
        };
        let signatures: serde_json::Map<String, Value> =
            sent.into_iter().map(|(path, s)| (path, json!(s))).collect();
        let key = spell_key(choices, signer);
        let mut body = json!({ "file_path": spelled, "public_key": key, "signatures": signatures });
        if !submitted.formats.is_empty() {
            body["other_formats"] = json!(submitted.formats);
        }
        let body = body.to_string();
        let is_formed = !matches!(how, How::NotBase64 | How::InTwoSpellings);
        let is_index = path.ends_with("/svc.index.json");
        let expected =
            self.exchange(
                choices,
                Some(caller),
                Request::post("signatures", body),
                |spec, _| match spelling {
                    Spelling::Same(_) if is_formed => spec.submit(&submitted),
                    Spelling::Same(_) | Spelling::Refused(_) => refuse(400),
                },
            );
        let is_complete = expected == ok(json!({ "is_complete": true }));
        self.played.completed_indexes += usize::from(is_complete && is_index);
    }

    fn register_assets(&mut self, choices: &mut Choices<'_>) {
        let dir = self.choose_asset_dir(choices);
        let insiders: Vec<Person> = self
            .spec
            .governing(&dir)
            .map(|(_, config)| config.can_register().into_iter().collect())
            .unwrap_or_default();
        let caller = choose_person(choices, &insiders);
        let names = ["SHA256SUMS", "SHA512SUMS"];
        let urls = names.map(|name| self.base.url_of(&format!("{dir}/{name}")));
        let (contents, published) = choose_checksums(choices, &self.base, &dir);
        for (url, content) in urls.iter().zip(contents) {
            self.server.publish(url, content);
        }
        let url = json!(&urls[0]);
        let (body, is_formed) = match choices.byte() {
            0..=235 => (json!({ "csum_files": urls }), true),
            236..=239 => (json!({ "csum_files": [url, url] }), false),
            240..=243 => (json!({ "csum_files": [url, format!("{}x/S", urls[0])] }), false),
            244..=247 => (json!({ "csum_files": urls, "forge_release_url": url }), false),
            248..=251 => (json!({ "csum_files": [] }), false),
            252..=255 => (json!({ "forge_release_url": url }), false),
        };
        self.exchange(choices, Some(caller), Request::post("assets", body.to_string()), |spec, _| {
            if is_formed { spec.register_assets(&dir, published, caller) } else { refuse(400) }
        });
    }

    /// Chooses a directory, mostly below an active project.
    fn choose_asset_dir(&self, choices: &mut Choices<'_>) -> String {
        let projects = self.spec.projects.iter().filter(|(_, project)| project.active.is_some());
        let active: Vec<&String> = projects.map(|(id, _)| id).collect();
        if active.is_empty() || choices.one_in(8) {
            return self.base.choose_dir(choices);
        }
        format!("{}{}", choices.of(&active), choices.of(&["/v1", "/v2", "", "/v1/sub", "/v3"]))
    }

    fn revoke(&mut self, choices: &mut Choices<'_>) {
        let dir = generate::choose_index(choices, &self.spec);
        let path = match dir.filter(|_| !choices.one_in(12)) {
            Some(dir) => index_in(&dir),
            None => {
                let project = self.base.choose_project(choices);
                choices.of(&[index_in(&project), pending_signers(&project), active_signers(&project)])
            }
        };
        let revoker = choose_person(choices, &self.spec.revokers(&path));
        let caller = if choices.one_in(4) { choices.below(PEOPLE) } else { revoker };
        let mut revoking = generate::make_revocation(choices, &self.spec, &path, revoker, caller);
        let body = json!({
            "file_path": path,
            "revocation_json": revoking.document,
            "signature": revoking.signature,
            "public_key": spell_key(choices, revoker),
        });
        let request = Request::post("revoke", body.to_string());
        let expected = self.exchange(choices, Some(caller), request, |spec, request| {
            revoking.request = keep(request, caller);
            spec.revoke(&revoking)
        });
        self.played.revocations += usize::from(matches!(expected, ExpectedAnswer::Json { status: 200, .. }));
    }

    fn withdraw(&mut self, choices: &mut Choices<'_>) {
        let path = self.choose_release(choices);
        let (mut withdrawing, body) = generate::withdraw(choices, &self.spec, &path);
        let (caller, request) = (withdrawing.caller, Request::post("withdraw", body.to_string()));
        let expected = self.exchange(choices, Some(caller), request, |spec, request| {
            withdrawing.request = keep(request, caller);
            spec.withdraw(&withdrawing)
        });
        self.played.withdrawals += usize::from(matches!(expected, ExpectedAnswer::Json { .. }));
    }

    /// Where a release has builders, they mostly speak.
    fn object_or_rebuild(&mut self, choices: &mut Choices<'_>) {
        let mut path = self.choose_release(choices);
        let indexes = self.spec.indexes.iter();
        let built = indexes.filter(|(_, index)| !index.governed_by.builders().is_empty());
        let built: Vec<String> = built.map(|(dir, _)| index_in(dir)).collect();
        if !built.is_empty() && !choices.one_in(8) {
            path = choices.of(&built);
        }
        let dir = path.strip_suffix("/svc.index.json").unwrap_or_default();
        let governing = self.spec.governing(dir).map(|(_, config)| config);
        let people = |of: fn(&Config) -> BTreeSet<Person>| -> Vec<Person> {
            governing.map(|config| of(config).into_iter().collect()).unwrap_or_default()
        };
        let (signers, builders) = (people(Config::everyone), people(Config::builders));
        if builders.is_empty() || choices.one_in(4) {
            let objector = choose_person(choices, &signers);
            self.object(choices, &path, objector);
        } else {
            // A word, and another one of the same builder or of the next.
            for _ in 0..2 {
                let builder = choose_person(choices, &builders);
                self.rebuild(choices, &path, builder);
            }
        }
    }

    fn rebuild(&mut self, choices: &mut Choices<'_>, path: &str, builder: Person) {
        let rebuilding = generate::rebuild(choices, &self.spec, path, builder);
        let caller = if choices.one_in(4) { choices.below(PEOPLE) } else { builder };
        let body = json!({
            "file_path": path,
            "rebuild_json": rebuilding.document,
            "signature": rebuilding.signature,
            "public_key": spell_key(choices, builder),
        });
        let request = Request::post("rebuild", body.to_string());
        let expected = self.exchange(choices, Some(caller), request, |spec, _| spec.rebuild(&rebuilding));
        self.played.rebuilds += usize::from(matches!(expected, ExpectedAnswer::Json { .. }));
    }

    fn object(&mut self, choices: &mut Choices<'_>, path: &str, objector: Person) {
        let objecting = generate::object(choices, &self.spec, path, objector);
        let caller = if choices.one_in(4) { choices.below(PEOPLE) } else { objector };
        let body = json!({
            "file_path": path,
            "objection_json": objecting.document,
            "signature": objecting.signature,
            "public_key": spell_key(choices, objector),
        });
        let request = Request::post("object", body.to_string());
        let expected = self.exchange(choices, Some(caller), request, |spec, _| spec.object(&objecting));
        self.played.objections += usize::from(matches!(expected, ExpectedAnswer::Json { .. }));
    }

    /// The path of an index, or now and then of something else.
    fn choose_release(&self, choices: &mut Choices<'_>) -> String {
        let dir = generate::choose_index_to_withdraw(choices, &self.spec);
        match dir.filter(|_| !choices.one_in(12)) {
            Some(dir) => index_in(&dir),
            None => self.choose_path(choices),
        }
    }

    /// Vetoes what the masters can veto, if there is something.
    fn veto_or_revoke(&mut self, choices: &mut Choices<'_>) {
        let open = self.spec.vetoable();
        if open.is_empty() {
            return self.revoke(choices);
        }
        let id = choices.of(&open);
        let path = if choices.one_in(16) { active_signers(&id) } else { pending_signers(&id) };
        let masters = self.spec.projects[&id].active.as_ref().map(Config::master).unwrap_or_default();
        let masters: Vec<Person> = masters.iter().flat_map(|group| group.people.iter().copied()).collect();
        let master = choose_person(choices, &masters);
        let caller = if choices.one_in(4) { choices.below(PEOPLE) } else { master };
        let vetoing = generate::make_veto(choices, &self.spec, &id, &path, master);
        let body = json!({
            "file_path": path,
            "veto_json": vetoing.document,
            "signature": vetoing.signature,
            "public_key": spell_key(choices, master),
        });
        let request = Request::post("veto", body.to_string());
        let expected = self.exchange(choices, Some(caller), request, |spec, _| spec.veto(&vetoing));
        self.played.vetoes += usize::from(matches!(expected, ExpectedAnswer::Json { status: 200, .. }));
    }

    fn ask_for_nonsense(&mut self, choices: &mut Choices<'_>) {
        let (request, status) = choices.of(&[
            (Request::get("nowhere"), 404),
            (Request::get("register_repo"), 405),
            (Request::post("ping", String::new()), 405),
        ]);
        self.exchange(choices, None, request, |_, _| refuse(status));
        let body = choices.of(&["", "[]", "{}", "{\"file_path\": \"\"}", "{\"a\": 1, \"a\": 2}"]);
        let targets = [
            "register_repo", "update_signers", "signatures", "revoke", "assets", "withdraw", "object",
            "rebuild",
        ];
        let target = choices.of(&targets);
        self.exchange(choices, Some(0), Request::post(target, body.to_owned()), |_, _| refuse(400));
    }

    /// Chooses mostly a path that is or could be stored.
    pub(super) fn choose_path(&self, choices: &mut Choices<'_>) -> String {
        let files: Vec<String> = self.spec.served().into_keys().collect();
        let open = generate::open_files(&self.spec);
        match choices.below(8) {
            0..=2 if !files.is_empty() => choices.of(&files),
            3 if !open.is_empty() => choices.of(&open),
            4 => index_in(&self.base.choose_dir(choices)),
            5 => active_signers(&self.base.choose_project(choices)),
            6 => pending_signers(&self.base.choose_project(choices)),
            _ => self.base.choose_dir(choices),
        }
    }
}

/// Chooses mostly a person who is allowed to.
fn choose_person(choices: &mut Choices<'_>, insiders: &[Person]) -> Person {
    if insiders.is_empty() || choices.one_in(8) { choices.below(PEOPLE) } else { choices.of(insiders) }
}

/// The three spellings of keys in bodies (D2).
fn spell_key(choices: &mut Choices<'_>, person: Person) -> String {
    choices.of(&[base64, base64, canonical, openssh])(person)
}

/// A signed request as the server keeps it (D14).
fn keep(request: &Request, caller: Person) -> String {
    let header = |name: &str| {
        let found = request.headers.iter().find(|(header, _)| *header == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let signature = Signature::parse(&header("x-svc-sig")).map(Signature::to_base64).unwrap_or_default();
    let kept = object([
        ("timestamp", text(header("x-svc-timestamp"))),
        ("nonce", text(header("x-svc-nonce"))),
        ("payload", text(&request.body)),
        ("public_key", text(canonical(caller))),
        ("signature", text(signature)),
    ]);
    kept.document()
}

// Compares an answer with the specification.

pub(crate) fn compare(request: &Request, expected: &ExpectedAnswer, answer: &ServerAnswer) {
    let difference = match expected {
        ExpectedAnswer::Json { status, body } => {
            let is_same =
                answer.status == *status && sorted(answer.json()) == Some(sorted_value(body.clone()));
            (!is_same).then_some("another answer")
        }
        ExpectedAnswer::Bytes(bytes) => {
            (answer.status != 200 || answer.body != *bytes).then_some("another content, or none")
        }
        ExpectedAnswer::Error { statuses, says } => find_in_error(answer, statuses, says.as_deref()),
    };
    if let Some(difference) = difference {
        let body = String::from_utf8_lossy(&answer.body);
        panic!(
            "{difference}\nto       {request:#?}\nexpected {expected:#?}\ngot      {} {body}",
            answer.status
        );
    }
}

fn find_in_error(answer: &ServerAnswer, statuses: &[u16], says: Option<&str>) -> Option<&'static str> {
    if !statuses.contains(&answer.status) {
        return Some("another status");
    }
    let body = answer.json();
    let object = body.as_ref().and_then(Value::as_object).filter(|object| object.len() == 2);
    let text = |name| object.and_then(|object| object.get(name)).and_then(Value::as_str);
    let code = text("code").and_then(ErrorCode::parse);
    match text("error") {
        None => Some("an error that is not told as one"),
        Some(_) if code.is_none_or(|code| code.status() != answer.status) => {
            Some("an error without a code of its status")
        }
        Some(message) if says.is_some_and(|says| !message.contains(says)) => Some("another message"),
        Some(_) => None,
    }
}

/// The order of the required signers, and of those whose signatures were dropped, has no meaning.
fn sorted(body: Option<Value>) -> Option<Value> {
    body.map(sorted_value)
}

fn sorted_value(mut body: Value) -> Value {
    for list in ["/required_signers", "/replaced/signatures"] {
        if let Some(signers) = body.pointer_mut(list).and_then(Value::as_array_mut) {
            signers.sort_by_key(Value::to_string);
        }
    }
    body
}

// What a run was made of.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Played {
    pub requests: usize,
    pub successes: usize,
    /// Successful changes of state.
    pub changes: usize,
    pub activations: usize,
    pub completed_indexes: usize,
    pub revocations: usize,
    pub withdrawals: usize,
    pub objections: usize,
    pub rebuilds: usize,
    /// Rotations that waited, and vetoes that stopped one.
    pub waited: usize,
    pub vetoes: usize,
}
