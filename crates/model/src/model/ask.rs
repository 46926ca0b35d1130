//! Requests that change nothing.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::model::cast::{Choices, PEOPLE, Person, Spelling, canonical, choose_spelling, encode};
use crate::model::rulebook::{ExpectedAnswer, Spec, ok, refuse};
use crate::model::{act::Player, act::SentRequest, act::compare, generate, request::Request};

/// The most objections in one answer.
const MOST_OBJECTIONS: usize = 100;

impl Player<'_> {
    pub(super) fn ask_status(&mut self, choices: &mut Choices<'_>) {
        let open = generate::open_files(&self.spec);
        let is_open = choices.one_in(2) && !open.is_empty();
        let path = if is_open { choices.of(&open) } else { self.choose_path(choices) };
        let caller = choices.below(PEOPLE);
        self.ask_about(choices, "signatures", &path, Some(caller), |spec, path| spec.status(path, caller));
    }

    pub(super) fn ask_files_to_sign(&mut self, choices: &mut Choices<'_>) {
        let (path, caller) = (self.choose_path(choices), choices.below(PEOPLE));
        self.ask_about(choices, "files-to-sign", &path, Some(caller), Spec::files_to_sign);
    }

    pub(super) fn read(
        &mut self,
        choices: &mut Choices<'_>,
        route: &str,
        decide: fn(&Spec, &str) -> ExpectedAnswer,
    ) {
        let path = self.choose_path(choices);
        self.ask_about(choices, route, &path, None, decide);
    }

    pub(super) fn read_chain(&mut self, choices: &mut Choices<'_>) {
        let route = choices.of(&["get_signers_chain", "get_signers_chain", "get_artifact_signers_chain"]);
        self.read(choices, route, Spec::chain);
    }

    fn ask_about(
        &mut self,
        choices: &mut Choices<'_>,
        route: &str,
        path: &str,
        caller: Option<Person>,
        decide: impl FnOnce(&Spec, &str) -> ExpectedAnswer,
    ) {
        let spelling = choose_spelling(choices, path);
        let spelled = match &spelling {
            Spelling::Same(path) | Spelling::Refused(path) => path,
        };
        let request = Request::get(format!("{route}/{}", encode(spelled)));
        self.exchange(choices, caller, request, |spec, _| match &spelling {
            Spelling::Same(_) => decide(spec, path),
            Spelling::Refused(_) => refuse(400),
        });
    }

    /// What waits for a person, within this run's part of the server.
    pub(super) fn ask_pending(&mut self, choices: &mut Choices<'_>) {
        let caller = choices.below(PEOPLE);
        let mut request = Request::get("pending_signatures");
        let is_proved = self.authenticate(choices, caller, &mut request);
        let mut answer = self.server.ask(&request);
        let mut expected = if is_proved { self.spec.pending(caller) } else { refuse(401) };
        if let Some(mut body) = answer.json().filter(|_| is_proved)
            && let Some(paths) = body["file_paths"].as_array_mut()
        {
            let root = self.base.root() + "/";
            paths.retain(|path| path.as_str().is_some_and(|path| path.starts_with(&root)));
            for list in ["revocations", "rebuilds"] {
                let Some(listed) = body.as_object_mut().and_then(|body| body.remove(list)) else { continue };
                let listed = listed.as_array().into_iter().flatten();
                let paths = listed.filter_map(|listed| listed["file_path"].as_str());
                let paths: BTreeSet<&str> = paths.filter(|path| path.starts_with(&root)).collect();
                if !paths.is_empty() {
                    body[list] = json!(paths);
                }
            }
            compare_objections(&mut body, &mut expected, &root);
            answer.body = body.to_string().into_bytes();
        }
        compare(&request, &expected, &answer);
        self.played.requests += 1;
        self.played.successes += usize::from(is_proved);
        self.last = Some(SentRequest { request, is_proved });
    }

    /// Always answered, with whether the server would accept the caller (D22).
    pub(super) fn ping(&mut self, choices: &mut Choices<'_>) {
        let mut request = Request::get("ping");
        if choices.one_in(3) {
            let body = json!({ "message": "pong", "auth": { "status": "unauthenticated" } });
            self.exchange(choices, None, request, |_, _| ok(body));
            return;
        }
        let caller = choices.below(PEOPLE);
        let is_proved = self.authenticate(choices, caller, &mut request);
        let answer = self.server.ask(&request);
        if is_proved {
            let auth = json!({ "status": "success", "public_key": canonical(caller) });
            compare(&request, &ok(json!({ "message": "pong", "auth": auth })), &answer);
        } else {
            let auth = answer.json().map(|body| body["auth"].clone()).unwrap_or_default();
            assert_eq!((answer.status, &auth["status"]), (200, &json!("failed")), "{request:?}");
            assert!(auth["reason"].is_string(), "{auth}");
        }
        self.played.requests += 1;
        self.played.successes += 1;
        self.last = None;
    }
}

/// Leaves of each objection where it is, who says it, and what. Those of earlier runs can leave no room for ours.
fn compare_objections(body: &mut Value, expected: &mut ExpectedAnswer, root: &str) {
    let Some(listed) = body.as_object_mut().and_then(|body| body.remove("objections")) else { return };
    let listed = listed.as_array().cloned().unwrap_or_default();
    if listed.len() >= MOST_OBJECTIONS {
        if let ExpectedAnswer::Json { body, .. } = expected {
            body.as_object_mut().map(|body| body.remove("objections"));
        }
        return;
    }
    let is_ours = |entry: &&Value| entry["file_path"].as_str().is_some_and(|path| path.starts_with(root));
    let ours = listed.iter().filter(is_ours);
    let mut ours: Vec<Value> =
        ours.map(|entry| json!([entry["file_path"], entry["public_key"], entry["objection"]])).collect();
    ours.sort_by_key(Value::to_string);
    if !ours.is_empty() {
        body["objections"] = json!(ours);
    }
}
