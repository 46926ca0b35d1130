//! The state that a lying server shows (D232): put together from what it shows of each file, so that a lie about a file
//! is a lie in the state as well.

use countersign_core::values::digest::Sha512;
use serde_json::{Map, Value, json};

/// What the server answers to a question for a path: its status and body, lies included.
pub(super) type Ask<'a> = dyn Fn(&str) -> (u16, Vec<u8>) + 'a;

/// The answer about `target`, a path with or without a question. `None` if there is nothing.
pub(super) fn compose(ask: &Ask<'_>, target: &str) -> Option<Vec<u8>> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let story = Story { ask };
    let asked = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let path = if let Some(tag) = asked("tag") {
        let dirs = [format!("{path}/releases/tag/{tag}"), format!("{path}/{tag}")];
        let indexes = dirs.map(|dir| format!("{dir}/svc.index.json"));
        let shows = |name: &str| indexes.iter().find(|index| story.has(&format!("{index}{name}")));
        shows("").or_else(|| shows(".withdrawn.json"))?.clone()
    } else if asked("newest").is_some() {
        story.find_newest(path)
    } else {
        path.to_owned()
    };
    let index = match path.ends_with("/svc.index.json") {
        true => path.clone(),
        false => format!("{path}/svc.index.json"),
    };
    let project = path.strip_suffix("/svc.signers.json").and_then(|dir| {
        dir.strip_suffix("/svc.signers").or_else(|| dir.strip_suffix("/svc.signers.pending"))
    });
    let is_proposed = story.has(&format!("{path}/svc.signers.pending/svc.signers.json"));
    let is_withdrawn = story.has(&format!("{index}.withdrawn.json")) && !is_proposed;
    if project.is_none() && (story.has(&index) || is_withdrawn) {
        return Some(story.tell_release(&index));
    }
    let project = project.unwrap_or(&path);
    let dirs = ["svc.signers", "svc.signers.pending"];
    let is_project = dirs.iter().any(|dir| story.has(&format!("{project}/{dir}/svc.signers.json")))
        || story.has(&format!("{project}/svc.signers.history.json"));
    is_project.then(|| story.tell_project(project))
}

struct Story<'a> {
    ask: &'a Ask<'a>,
}

impl Story<'_> {
    fn file(&self, path: &str) -> Option<String> {
        let (status, body) = (self.ask)(&format!("/v1/files/{path}"));
        (status == 200).then(|| String::from_utf8_lossy(&body).into_owned())
    }

    fn has(&self, path: &str) -> bool {
        self.file(path).is_some()
    }

    /// What does not parse stays text: the client finds that it is no document.
    fn json(&self, path: &str) -> Option<Value> {
        self.file(path).map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn find_newest(&self, path: &str) -> String {
        if self.has(&format!("{path}/svc.index.json")) {
            return path.to_owned();
        }
        let (_, body) = (self.ask)(&format!("/v1/releases?project={path}&newest=true"));
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        answer["releases"][0]["index_path"].as_str().unwrap_or(path).to_owned()
    }

    fn files(&self, paths: impl IntoIterator<Item = String>) -> Map<String, Value> {
        let shown = paths.into_iter().filter_map(|path| {
            let text = self.file(&path)?;
            Some((path, Value::String(text)))
        });
        shown.collect()
    }

    fn tell_release(&self, index: &str) -> Vec<u8> {
        let at = |suffix: &str| format!("{index}{suffix}");
        let text = self.file(index);
        let document: Value =
            text.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let project = match document["project_id"].as_str() {
            Some(project) => project.to_owned(),
            None => self.find_project(index),
        };
        let history = self.history(&project);
        let signatures =
            [".signatures.json", ".signatures.json.revoked"].iter().find_map(|name| self.json(&at(name)));
        let revocation = self.file(&at(".revocation.json"));
        let is_done = signatures.is_some() && (revocation.is_some() || self.has(&at(".signatures.json")));
        let (staple, log) = self.log(index, is_done);
        let bundle = match (&text, signatures) {
            (Some(text), Some(signatures)) if is_done => json!({
                "version": 2,
                "bundled_at": "2026-02-01T12:00:00Z",
                "index_path": index,
                "index": text,
                "signatures": signatures,
                "signers_file_digest": self.governor(index),
                "signers_history": history,
                "revocation": revocation.map(|document| json!({
                    "document": document,
                    "signatures": self.json(&at(".revocation.json.signatures.json")).unwrap_or(json!({"entries": {}})),
                    "signers_file_digest": digest(&self.file(&at(".revocation.json.signers.json")).unwrap_or_default()),
                    "request": self.json(&at(".revocation.json.request.json")),
                })),
                "staple": staple,
            }),
            _ => Value::Null,
        };
        let mut names = vec![
            ".registrant.json", ".formats.json", ".objections.json", ".earlier-objections.json",
            ".withdrawn.json", ".revocation.json.pending", ".revocation.json.signatures.json.pending",
        ];
        if bundle.is_null() {
            names.extend([
                "", ".signers.json", ".signatures.json.pending", ".signatures.json.revoked",
                ".revocation.json",
            ]);
        }
        let files = self.files(names.into_iter().map(at));
        let history = if bundle.is_null() { history } else { Value::Null };
        self.answer("release", index, &project, log, history, files, bundle)
    }

    fn tell_project(&self, project: &str) -> Vec<u8> {
        let pending = format!("{project}/svc.signers.pending/svc.signers.json");
        let names = [
            "", ".signatures.json.pending", ".metadata.json", ".metadata.json.signatures.json.pending",
            ".registration.json", ".agreed.json", ".veto.json.pending", ".veto.json.signatures.json.pending",
        ];
        let mut files = self.files(names.iter().map(|name| format!("{pending}{name}")));
        let veto = format!("{project}/svc.signers.vetoed/svc.veto.json");
        let record = format!("{project}/svc.signers.vetoed/{}/svc.veto.json", "0".repeat(64));
        for name in ["", ".signatures.json"] {
            if let Some(text) = self.file(&format!("{veto}{name}")) {
                files.insert(format!("{record}{name}"), Value::String(text));
            }
        }
        let history = self.history(project);
        let log = json!({"key": null, "no_staple": null, "is_soon": false, "consistency": null});
        self.answer("project", project, project, log, history, files, Value::Null)
    }

    #[allow(clippy::too_many_arguments)]
    fn answer(
        &self,
        kind: &str,
        path: &str,
        project: &str,
        log: Value,
        history: Value,
        files: Map<String, Value>,
        bundle: Value,
    ) -> Vec<u8> {
        let answer = json!({
            "version": 1,
            "commit": "0".repeat(40),
            "committed_at": "2026-02-01T12:00:00Z",
            "kind": kind,
            "path": path,
            "project_id": project,
            "log": log,
            "history_after": null,
            "signers_history": history,
            "files": files,
            "drops": {"releases": [], "more": false},
            "skipped": [],
            "bundle": bundle,
        });
        answer.to_string().into_bytes()
    }

    /// The nearest project above a path that has a history.
    fn find_project(&self, path: &str) -> String {
        let mut dir = path;
        while let Some((above, _)) = dir.rsplit_once('/') {
            if self.has(&format!("{above}/svc.signers.history.json")) {
                return above.to_owned();
            }
            dir = above;
        }
        path.rsplit_once('/').map_or(path, |(dir, _)| dir).to_owned()
    }

    fn history(&self, project: &str) -> Value {
        self.json(&format!("{project}/svc.signers.history.json")).unwrap_or(json!({"entries": []}))
    }

    /// The signers file that governs an index, by the chain that is shown.
    fn governor(&self, index: &str) -> String {
        let (_, body) = (self.ask)(&format!("/v1/get_signers_chain/{index}"));
        let chain: Value = serde_json::from_slice(&body).unwrap_or_default();
        let entries = chain["history"]["entries"].as_array().cloned().unwrap_or_default();
        digest(entries.last().and_then(|entry| entry["signers_config"].as_str()).unwrap_or_default())
    }

    fn log(&self, index: &str, is_done: bool) -> (Value, Value) {
        let (status, key) = (self.ask)("/log/key");
        let key = (status == 200).then(|| String::from_utf8_lossy(&key).trim_end().to_owned());
        let (status, body) = (self.ask)(&format!("/v1/proof/{index}"));
        let body: Value = serde_json::from_slice(&body).unwrap_or(json!("garbage"));
        let said = body["error"].as_str().map(str::to_owned);
        let is_soon = said.as_deref().is_some_and(|said| said.contains("not in the log yet"));
        let no_staple = said.filter(|_| is_done && key.is_some());
        let staple = if status == 200 && is_done { body } else { Value::Null };
        // No server has this route: a test says here what the answer claims.
        let (_, consistency) = (self.ask)("/consistency");
        let consistency: Value = serde_json::from_slice(&consistency).unwrap_or_default();
        let consistency = Some(consistency).filter(|claim| claim["from"].is_number());
        (staple, json!({"key": key, "no_staple": no_staple, "is_soon": is_soon, "consistency": consistency}))
    }
}

fn digest(text: &str) -> String {
    Sha512::of(text.as_bytes()).to_prefixed()
}
