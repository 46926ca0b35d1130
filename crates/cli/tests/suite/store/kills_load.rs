//! The load of the kill harness: people who take projects through their whole life, one request at a time, until the
//! server is gone; and one who only reads.

use std::{io, net::SocketAddr, sync::mpsc::Sender};

use serde_json::{Value, json};

use crate::support::world::{checksums, revoke_body};
use crate::support::{
    FileServer, Person, Reply, Request, SignersFile, days_ago, http::try_send, people::new_nonce,
    seconds_from_now,
};

/// What one project goes through. Each step is one request and one commit; no two say the same of a project.
const STEPS: [Step; 13] = [
    Step::Register,
    Step::SignProposal(0),
    Step::SignProposal(1),
    Step::AddRelease(0, "v1"),
    Step::SignRelease(0, "v1"),
    Step::SignRelease(1, "v1"),
    Step::AddRelease(1, "v2"),
    Step::SignRelease(1, "v2"),
    Step::Propose,
    Step::SignProposal(1),
    // It makes v2 start over.
    Step::SignProposal(0),
    Step::SignRelease(0, "v2"),
    Step::Revoke("v1"),
];

/// The number in a step says who takes it.
#[derive(Clone, Copy)]
enum Step {
    Register,
    Propose,
    SignProposal(usize),
    AddRelease(usize, &'static str),
    SignRelease(usize, &'static str),
    Revoke(&'static str),
}

/// Where the work on one row of projects has come to.
#[derive(Clone)]
pub(crate) struct Course {
    row: usize,
    project: usize,
    step: usize,
}

/// A request, and what it is to leave behind.
pub(crate) struct Sent {
    pub(crate) request: Request,
    /// The change that it asks for; `None` for a read.
    pub(crate) change: Option<Asked>,
    /// `None` if the server was gone before it had answered.
    pub(crate) answer: Option<Value>,
}

pub(crate) struct Asked {
    pub(crate) project: String,
    /// Whose change it is, as the commit says.
    pub(crate) by: String,
    /// What the commit must contain, such as the very signature.
    pub(crate) content: Vec<String>,
    /// The answer that such a change gets.
    pub(crate) expected: Value,
    /// How the commit begins.
    pub(crate) title: String,
}

/// The server and the file server, as a client sees them.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) files: &'a FileServer,
    /// How many seconds the server's clock is ahead.
    pub(crate) ahead: i64,
}

pub(crate) fn people() -> [Person; 2] {
    [Person::named("alice"), Person::named("bob")]
}

impl Course {
    pub(crate) fn new(row: usize) -> Self {
        Self { row, project: 0, step: 0 }
    }

    pub(crate) fn length() -> usize {
        STEPS.len()
    }

    pub(crate) fn advance(&mut self) {
        self.step += 1;
        if self.step == STEPS.len() {
            (self.project, self.step) = (self.project + 1, 0);
        }
    }

    fn name(&self) -> String {
        format!("row{}/project{}", self.row, self.project)
    }

    pub(crate) fn id(&self, files: &FileServer) -> String {
        files.mirror_path(&format!("/{}", self.name()))
    }

    /// The files of the project at hand that collect signatures, now or later.
    pub(crate) fn signable(&self, files: &FileServer) -> [String; 3] {
        let id = self.id(files);
        [pending(&id), format!("{id}/v1/svc.index.json"), format!("{id}/v2/svc.index.json")]
    }

    /// Takes up to `steps` steps, or as many as the server lives to see.
    pub(crate) fn run(&mut self, client: Client<'_>, steps: usize, done: &Sender<()>) -> Vec<Sent> {
        let mut sent = Vec::new();
        for _ in 0..steps {
            let Ok(mut next) = self.prepare(client) else { break };
            let reply = try_send(client.address, &next.request).ok();
            next.answer = reply.as_ref().map(Reply::ok);
            let is_answered = next.answer.is_some();
            sent.push(next);
            if !is_answered {
                break;
            }
            self.advance();
            // The listener may have heard enough.
            let _ = done.send(());
        }
        sent
    }

    /// Takes steps until there are enough, again and again where the clock refuses them.
    pub(crate) fn insist<'a>(&mut self, client: impl Fn() -> Option<Client<'a>>, done: &Sender<()>) {
        while let Some(client) = client() {
            let next = self.prepare(client).expect("the server runs");
            let reply = try_send(client.address, &next.request).expect("the server runs");
            match reply.status {
                // Signed at another time than the server has now, or overtaken by it.
                401 | 503 => {}
                _ => {
                    reply.ok();
                    self.advance();
                    // The listener may have heard enough.
                    let _ = done.send(());
                }
            }
        }
    }

    /// The request of the next step. What is signed is read first, from a server that may be gone.
    fn prepare(&self, client: Client<'_>) -> io::Result<Sent> {
        let [alice, bob] = people();
        let everyone = [&alice, &bob];
        let id = self.id(client.files);
        let complete = |is_complete: bool| json!({ "is_complete": is_complete });
        let index = |version: &str| format!("{id}/{version}/svc.index.json");
        let (person, route, body, asked) = match STEPS[self.step] {
            Step::Register => {
                let (url, text) = self.publish(client.files, SignersFile::of(2, &everyone));
                let body = json!({ "signers_file_url": url, "public_key": alice.body_key() });
                let answer = json!({ "success": true, "project_id": id });
                (&alice, "/v1/register_repo", body, (format!("Register {id}"), vec![text], answer))
            }
            Step::Propose => {
                let next = SignersFile::dated(days_ago(5)).artifact(2, &everyone).admin(2, &everyone);
                let (url, text) = self.publish(client.files, next);
                let body = json!({ "signers_file_url": url, "public_key": alice.body_key() });
                let title = format!("Propose signers for {id}");
                let answer = json!({ "success": true, "project_id": id });
                (&alice, "/v1/update_signers", body, (title, vec![text], answer))
            }
            Step::SignProposal(who) => {
                let path = pending(&id);
                let body = client.signature_body(everyone[who], &path)?;
                // Both need to sign, and the steps say who comes second.
                let is_second = self.step == 2 || self.step == 10;
                let title = match is_second {
                    true => format!("Activate the signers of {id}"),
                    false => format!("Sign {path}"),
                };
                let content = signatures_in(&body);
                (everyone[who], "/v1/signatures", body, (title, content, complete(is_second)))
            }
            Step::SignRelease(who, version) => {
                let body = client.signature_body(everyone[who], &index(version))?;
                let is_second = self.step == 5;
                let verb = if is_second { "Sign and complete" } else { "Sign" };
                let title = format!("{verb} {}", index(version));
                let content = signatures_in(&body);
                (everyone[who], "/v1/signatures", body, (title, content, complete(is_second)))
            }
            Step::AddRelease(who, version) => {
                let dir = format!("/{}/{version}/SHA256SUMS", self.name());
                let text = checksums(&dir);
                client.files.put(&dir, text.as_str());
                let body = json!({ "csum_files": [client.files.url(&dir)] });
                let answer = json!({ "index_file_path": index(version) });
                let asked = (format!("Add {}", index(version)), vec![text[..64].to_owned()], answer);
                (everyone[who], "/v1/assets", body, asked)
            }
            Step::Revoke(version) => {
                let path = index(version);
                let digest = countersign_core::values::digest::Sha512::of(&client.read(&path)?).to_prefixed();
                let time = days_ago(0).to_string();
                let text = json!({ "reason": self.name(), "timestamp": time, "subject_digest": digest });
                let body = revoke_body(&alice, &path, &text.to_string());
                let signature = body["signature"].as_str().expect("a signature").to_owned();
                let answer = json!({ "success": true, "revoked": true });
                (&alice, "/v1/revoke", body, (format!("Revoke {path}"), vec![signature], answer))
            }
        };
        let (title, content, expected) = asked;
        let by = person.key();
        let request = Request::post(route, &body);
        let request = person.sign_at(request, seconds_from_now(client.ahead), &new_nonce());
        Ok(Sent { request, change: Some(Asked { project: id, by, content, expected, title }), answer: None })
    }

    fn publish(&self, files: &FileServer, file: SignersFile) -> (String, String) {
        let path = format!("/{}/svc.signers.json", self.name());
        files.put(&path, file.bytes());
        (files.url(&path), String::from_utf8(file.bytes()).expect("JSON").trim().to_owned())
    }
}

/// Reads what waits for one of the two, and a few files, until the server is gone.
pub(crate) fn read_on(client: Client<'_>, courses: &[Course]) -> Vec<Sent> {
    let [alice, _] = people();
    let mut sent = Vec::new();
    for course in courses.iter().cycle() {
        let request = alice.sign(Request::get("/v1/pending_signatures"));
        let Ok(reply) = try_send(client.address, &request) else { break };
        // A few are enough: each will be sent again, one after the other.
        if sent.len() < 10 {
            sent.push(Sent { request, change: None, answer: Some(reply.ok()) });
        }
        let path = &course.signable(client.files)[1];
        let Ok(reply) = try_send(client.address, &Request::get(format!("/v1/files/{path}"))) else { break };
        assert!(matches!(reply.status, 200 | 404), "{}", reply.text());
    }
    sent
}

impl Client<'_> {
    pub(crate) fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let reply = try_send(self.address, &Request::get(format!("/v1/files/{path}")))?;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        Ok(reply.body)
    }

    /// What `person` submits to sign `path`, over the bytes that the server shows.
    fn signature_body(&self, person: &Person, path: &str) -> io::Result<Value> {
        let mut signatures = json!({ path: person.sign_bytes(&self.read(path)?) });
        if path.ends_with("/svc.signers.json") {
            let metadata = format!("{path}.metadata.json");
            signatures[&metadata] = json!(person.sign_bytes(&self.read(&metadata)?));
        }
        Ok(json!({ "file_path": path, "public_key": person.body_key(), "signatures": signatures }))
    }
}

fn pending(id: &str) -> String {
    format!("{id}/svc.signers.pending/svc.signers.json")
}

fn signatures_in(body: &Value) -> Vec<String> {
    let signatures = body["signatures"].as_object().expect("an object").values();
    signatures.map(|signature| signature.as_str().expect("base64").to_owned()).collect()
}
