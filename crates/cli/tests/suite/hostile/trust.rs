//! The first meeting with a project: a chain that is signed by keys which it introduces itself proves nothing.

use serde_json::Value;

use crate::support::hostile::{Forgery, HostileServer, Listed, Victim, digest_of, index_of, origin};
use crate::support::{Answer, FileServer, SignersFile, alice, mallory};

fn mallorys() -> Vec<u8> {
    SignersFile::of(1, &[&mallory()]).bytes()
}

/// Has the server show a release of `project` that Mallory made up, with the file at `url`.
fn make_up(
    server: &HostileServer,
    project: &str,
    index: &str,
    page: Option<&str>,
    url: &str,
    origin: &Value,
) {
    let text = index_of(project, page, &[Listed { name: "app.tar.gz", source: url, bytes: b"evil" }]);
    let forged = Forgery::of(project).then(&mallorys(), origin, &[&mallory()]);
    forged.show(server, index, &text, &[&mallory()]);
}

/// The file server of others, on which Mallory has a directory of her own.
struct Shared {
    files: FileServer,
    server: HostileServer,
    url: String,
}

impl Shared {
    fn start() -> Self {
        let files = FileServer::start();
        files.put("/acme/app/1.0/app.tar.gz", "evil");
        files.put("/acme/app/svc.signers.json", SignersFile::of(1, &[&alice()]).bytes());
        let url = files.url("/acme/app/1.0/app.tar.gz");
        Self { files, server: HostileServer::alone(), url }
    }

    fn claim(&self, origin: &Value) {
        let project = self.files.mirror_path("/acme/app");
        let index = self.files.mirror_path("/acme/app/1.0/svc.index.json");
        make_up(&self.server, &project, &index, None, &self.url, origin);
    }

    /// A newcomer is not deceived, and remembers nothing.
    #[track_caller]
    fn refused(&self, words: &[&str]) {
        let victim = Victim::of(&self.server);
        victim.refuses(&self.url, 3, &[words, &["--signers-digest"]].concat());
        assert!(victim.memory().is_empty());
    }
}

#[test]
fn a_chain_that_its_project_does_not_publish_is_refused() {
    let shared = Shared::start();

    // A chain that names its own witness is refused and the witness not asked.
    let elsewhere = FileServer::start();
    let port = shared.files.port();
    for path in ["/acme/app/svc.signers.json", "/svc.signers.json"] {
        elsewhere.put(path, mallorys());
    }
    for path in ["/mallory/svc.signers.json", "/acme/app/uploads/svc.signers.json"] {
        shared.files.put(path, mallorys());
    }
    let other = elsewhere.port();
    for url in [
        elsewhere.url("/acme/app/svc.signers.json"),
        format!("http://localhost:{port}/acme/app/svc.signers.json"),
        format!("http://localhost:{other}/acme/app/svc.signers.json"),
        format!("https://127.0.0.1:{port}/acme/app/svc.signers.json"),
        format!("http://127.0.0.1:{port}@127.0.0.1:{other}/acme/app/svc.signers.json"),
        format!("http://127.0.0.1:{other}#@127.0.0.1:{port}/acme/app/svc.signers.json"),
        format!("http://127.0.0.1:{other}\\@127.0.0.1:{port}/acme/app/svc.signers.json"),
        format!("http://127.0.0.1:{port}/acme/app/svc.signers.json?x"),
        format!("http://127.0.0.1:{port}/acme/app/svc.signers.json#x"),
        format!("http://127.0.0.1:{port}/acme/app/"),
        format!("http://127.0.0.1:{port}/acme%2Fapp/svc.signers.json"),
        format!("http://127.0.0.1:{port}/acme/app/../../mallory/svc.signers.json"),
        format!("http://127.0.0.1:{port}/acme/app/%2e%2e/svc.signers.json"),
        format!("http://127.0.0.1:{port}//acme/app/svc.signers.json"),
        shared.files.url("/mallory/svc.signers.json"),
        shared.files.url("/acme/svc.signers.json"),
        shared.files.url("/acme/app/uploads/svc.signers.json"),
        shared.files.url("/acme/app/1.0/svc.signers.json"),
        "file:///etc/hostname".to_owned(),
        "/acme/app/svc.signers.json".to_owned(),
        String::new(),
    ] {
        shared.claim(&origin("file_server", &url));
        shared.refused(&[]);
    }
    assert_eq!(elsewhere.asked(), [""; 0]);
    assert_eq!(shared.files.asked(), [""; 0]);

    // A claim about the forge does not make a file server one.
    for kind in ["github", "gitlab", "forgejo"] {
        shared.claim(&origin(kind, &shared.files.url("/acme/app/svc.signers.json")));
        shared.refused(&[]);
    }
    shared.claim(&origin("gopher", &shared.files.url("/acme/app/svc.signers.json")));
    Victim::of(&shared.server).refuses(&shared.url, 3, &["metadata is invalid"]);
    assert_eq!(shared.files.asked(), [""; 0]);

    // A signers file that the project does not publish is refused.
    let elsewhere = FileServer::start();
    elsewhere.put("/x", mallorys());
    shared.claim(&origin("file_server", &shared.files.url("/acme/app/svc.signers.json")));
    // Both digests are named: what the project publishes, and what the server shows.
    let published = SignersFile::of(1, &[&alice()]).bytes();
    let [published, shown] = [published, mallorys()].map(|bytes| digest_of(&bytes));
    shared.refused(&[&published, &shown]);
    let with_space = [mallorys(), b" ".to_vec()].concat();
    for answer in [
        Answer::BrokenOff(mallorys()),
        Answer::Endless,
        Answer::Bytes(Vec::new()),
        Answer::Bytes(with_space),
        Answer::Redirect(elsewhere.url("/x")),
        Answer::Redirect(shared.files.url("/acme/app/svc.signers.json")),
    ] {
        shared.files.set("/acme/app/svc.signers.json", answer);
        shared.refused(&[&shared.files.url("/acme/app/svc.signers.json")]);
    }
    assert_eq!(elsewhere.asked(), [""; 0], "a redirect to another host is not followed");
}

#[test]
fn a_digest_that_the_user_brings_along_is_not_talked_over() {
    let shared = Shared::start();
    shared.files.put("/acme/app/svc.signers.json", mallorys());
    shared.claim(&origin("file_server", &shared.files.url("/acme/app/svc.signers.json")));
    let digest = digest_of(b"another file");
    let victim = Victim::of(&shared.server);
    let ran = victim.run(&["download", "--force", &shared.url, "--signers-digest", &digest]).failed(3);
    ran.says(&["has the digest that you gave"]);
    victim.assert_untouched();
    assert!(victim.memory().is_empty());
    assert_eq!(shared.files.asked(), [""; 0]);
}

#[test]
fn a_directory_of_that_name_at_the_root_speaks_for_the_whole_host() {
    // D27 as it is: where strangers may choose names at the root (buckets, accounts), one who takes the name
    // `svc.signers` and owns the server vouches for everyone's files, to all who have not met their project.
    let shared = Shared::start();
    shared.files.put("/svc.signers/x.json", mallorys());
    let project = shared.files.mirror_path("");
    let index = shared.files.mirror_path("/acme/app/1.0/svc.index.json");
    let origin = origin("file_server", &shared.files.url("/svc.signers/x.json"));
    make_up(&shared.server, &project, &index, None, &shared.url, &origin);
    Victim::of(&shared.server).takes(&shared.url, b"evil");
}
