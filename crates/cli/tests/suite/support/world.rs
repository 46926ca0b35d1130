//! A server and a file server, and the flows that most tests begin with.

use countersign_core::values::digest::Sha512;
use serde_json::{Value, json};

use super::http::{Reply, Request};
use super::people::{Person, now};
use super::{files::FileServer, git::Git, server::Launch, server::TestServer, signers::SignersFile};

pub(crate) struct World {
    pub(crate) server: TestServer,
    pub(crate) files: FileServer,
}

impl World {
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::start_with(|launch, _| launch.arg("--dev"))
    }

    #[track_caller]
    pub(crate) fn start_with(adapt: impl FnOnce(Launch, &FileServer) -> Launch) -> Self {
        let files = FileServer::start();
        let server = TestServer::start_with(|launch| adapt(launch, &files));
        Self { server, files }
    }

    /// A world with an active project `acme/app`.
    #[track_caller]
    pub(crate) fn with_project(file: &SignersFile, everyone: &[&Person]) -> Self {
        let world = Self::start();
        world.activate("acme/app", file, everyone);
        world
    }

    /// Another server that begins with what this one has stored, beside the same file server.
    #[track_caller]
    pub(crate) fn fork(&self) -> Self {
        Self { server: self.server.clone_mirror(), files: self.files.clone() }
    }

    pub(crate) fn git(&self) -> Git {
        Git::at(self.server.repository())
    }

    /// The identifier of the project that the file server has under this directory.
    pub(crate) fn id(&self, project: &str) -> String {
        self.files.mirror_path(&format!("/{project}"))
    }

    pub(crate) fn pending_path(&self, project: &str) -> String {
        format!("{}/svc.signers.pending/svc.signers.json", self.id(project))
    }

    pub(crate) fn active_path(&self, project: &str) -> String {
        format!("{}/svc.signers/svc.signers.json", self.id(project))
    }

    pub(crate) fn index_path(&self, dir: &str) -> String {
        format!("{}/svc.index.json", self.id(dir))
    }

    pub(crate) fn send_as(&self, person: &Person, request: Request) -> Reply {
        self.server.send(&person.sign(request))
    }

    pub(crate) fn get_as(&self, person: &Person, target: &str) -> Reply {
        self.send_as(person, Request::get(target))
    }

    pub(crate) fn post_as(&self, person: &Person, route: &str, body: &Value) -> Reply {
        self.send_as(person, Request::post(route, body))
    }

    // Files.

    pub(crate) fn file(&self, path: &str) -> Reply {
        self.server.get(&format!("/v1/files/{path}"))
    }

    #[track_caller]
    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        let reply = self.file(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.body
    }

    #[track_caller]
    pub(crate) fn read_json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.read(path)).expect("a JSON file")
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.file(path).status == 200
    }

    // Signers files.

    pub(crate) fn publish(&self, project: &str, file: &SignersFile) -> String {
        let path = format!("/{project}/svc.signers.json");
        self.files.put(&path, file.bytes());
        self.files.url(&path)
    }

    pub(crate) fn register_url(&self, person: &Person, url: &str) -> Reply {
        let body = json!({ "signers_file_url": url, "public_key": person.body_key() });
        self.post_as(person, "/v1/register_repo", &body)
    }

    pub(crate) fn register(&self, person: &Person, project: &str, file: &SignersFile) -> Reply {
        self.register_url(person, &self.publish(project, file))
    }

    pub(crate) fn propose(&self, person: &Person, project: &str, file: &SignersFile) -> Reply {
        let url = self.publish(project, file);
        let body = json!({ "signers_file_url": url, "public_key": person.body_key() });
        self.post_as(person, "/v1/update_signers", &body)
    }

    /// Registers a project; everyone, who must be everyone in the file, signs it.
    #[track_caller]
    pub(crate) fn activate(&self, project: &str, file: &SignersFile, everyone: &[&Person]) {
        self.register(everyone[0], project, file).ok();
        self.sign_all(&self.pending_path(project), everyone);
    }

    /// Proposes a signers file and has it signed until it is active.
    #[track_caller]
    pub(crate) fn rotate(&self, project: &str, file: &SignersFile, signers: &[&Person]) {
        self.propose(signers[0], project, file).ok();
        self.sign_all(&self.pending_path(project), signers);
        assert_eq!(self.read(&self.active_path(project)), file.bytes(), "the rotation is active");
    }

    // Signatures.

    /// What `person` submits to sign `path`: over the bytes that the server shows, both files of a signers file.
    pub(crate) fn signature_body(&self, person: &Person, path: &str) -> Value {
        let mut signatures = json!({ path: person.sign_bytes(&self.read(path)) });
        if path.ends_with("/svc.signers.json") {
            let metadata = format!("{path}.metadata.json");
            signatures[&metadata] = json!(person.sign_bytes(&self.read(&metadata)));
        }
        json!({ "file_path": path, "public_key": person.body_key(), "signatures": signatures })
    }

    pub(crate) fn submit(&self, person: &Person, body: &Value) -> Reply {
        self.post_as(person, "/v1/signatures", body)
    }

    #[track_caller]
    pub(crate) fn sign(&self, person: &Person, path: &str) -> Reply {
        self.submit(person, &self.signature_body(person, path))
    }

    /// Each signs in turn; only the last one makes it complete.
    #[track_caller]
    pub(crate) fn sign_all(&self, path: &str, signers: &[&Person]) {
        let bodies: Vec<_> = signers.iter().map(|person| self.signature_body(person, path)).collect();
        for (position, (person, body)) in signers.iter().zip(bodies).enumerate() {
            let complete = position + 1 == signers.len();
            let answer = self.submit(person, &body).ok();
            assert_eq!(answer, json!({ "is_complete": complete }), "signer {position} of {path}");
        }
    }

    pub(crate) fn status(&self, person: &Person, path: &str) -> Reply {
        self.get_as(person, &format!("/v1/signatures/{path}"))
    }

    /// Whether the file is complete, as `person` is told.
    #[track_caller]
    pub(crate) fn is_complete(&self, person: &Person, path: &str) -> bool {
        let status = self.status(person, path).ok();
        assert_eq!(status["file_path"], json!(path));
        status["is_complete"].as_bool().expect("a boolean")
    }

    #[track_caller]
    pub(crate) fn pending(&self, person: &Person) -> Vec<String> {
        let answer = self.get_as(person, "/v1/pending_signatures").ok();
        serde_json::from_value(answer["file_paths"].clone()).expect("a list of paths")
    }

    // Releases.

    pub(crate) fn publish_checksums(&self, dir: &str, text: &str) -> String {
        let path = format!("/{dir}/SHA256SUMS");
        self.files.put(&path, text);
        self.files.url(&path)
    }

    pub(crate) fn register_assets(&self, person: &Person, urls: &[&str]) -> Reply {
        self.post_as(person, "/v1/assets", &json!({ "csum_files": urls }))
    }

    /// Registers a release of one file in a directory of the project; its index path.
    #[track_caller]
    pub(crate) fn add_release(&self, person: &Person, dir: &str) -> String {
        let url = self.publish_checksums(dir, &checksums(dir));
        let answer = self.register_assets(person, &[&url]).ok();
        assert_eq!(answer["index_file_path"], json!(self.index_path(dir)));
        self.index_path(dir)
    }

    #[track_caller]
    pub(crate) fn add_signed_release(&self, dir: &str, signers: &[&Person]) -> String {
        let index = self.add_release(signers[0], dir);
        self.sign_all(&index, signers);
        index
    }

    // Revocation.

    pub(crate) fn revocation_of(&self, path: &str, reason: &str) -> String {
        let digest = Sha512::of(&self.read(path)).to_prefixed();
        let timestamp = now().to_whole_seconds().to_string();
        json!({ "reason": reason, "timestamp": timestamp, "subject_digest": digest }).to_string()
    }

    pub(crate) fn revoke_with(&self, person: &Person, path: &str, document: &str) -> Reply {
        self.post_as(person, "/v1/revoke", &revoke_body(person, path, document))
    }

    pub(crate) fn revoke(&self, person: &Person, path: &str) -> Reply {
        self.revoke_with(person, path, &self.revocation_of(path, "key leaked"))
    }
}

pub(crate) fn revoke_body(person: &Person, path: &str, document: &str) -> Value {
    json!({
        "file_path": path,
        "revocation_json": document,
        "signature": person.sign_bytes(document.as_bytes()),
        "public_key": person.body_key(),
    })
}

/// A checksums file of one line, different for each `seed`.
pub(crate) fn checksums(seed: &str) -> String {
    format!("{}  app.tar.gz\n", &Sha512::of(seed.as_bytes()).to_string()[..64])
}
