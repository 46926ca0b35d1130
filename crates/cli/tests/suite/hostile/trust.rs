//! The first meeting with a project: a chain that is signed by keys which it introduces itself proves nothing.

use serde_json::Value;

use crate::support::{
    Answer, FileServer, SignersFile, World,
    fake_forge::{FakeForge, ForgeAnswer, Kind},
    hostile::{Forgery, HostileServer, Listed, Victim, alice, digest_of, index_of, mallory, origin},
};

const HASH: &str = "f8d3d94cbd347e924aa7b715845e439d00e80ca4";

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
fn a_chain_that_names_its_own_witness_is_refused_and_the_witness_not_asked() {
    let shared = Shared::start();
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
}

#[test]
fn a_claim_about_the_forge_does_not_make_a_file_server_one() {
    let shared = Shared::start();
    for kind in ["github", "gitlab", "forgejo"] {
        shared.claim(&origin(kind, &shared.files.url("/acme/app/svc.signers.json")));
        shared.refused(&[]);
    }
    shared.claim(&origin("gopher", &shared.files.url("/acme/app/svc.signers.json")));
    Victim::of(&shared.server).refuses(&shared.url, 3, &["metadata is invalid"]);
    assert_eq!(shared.files.asked(), [""; 0]);
}

#[test]
fn a_signers_file_that_the_project_does_not_publish_is_refused() {
    let shared = Shared::start();
    let elsewhere = FileServer::start();
    elsewhere.put("/x", mallorys());
    shared.claim(&origin("file_server", &shared.files.url("/acme/app/svc.signers.json")));
    // Both digests are named: what the project publishes, and what the server shows.
    let published = SignersFile::of(1, &[&alice()]).bytes();
    let [published, shown] = [published, mallorys()].map(|bytes| digest_of(&bytes));
    shared.refused(&[&published, &shown]);
    let with_space = [mallorys(), b" ".to_vec()].concat();
    for answer in [
        Answer::Status(404),
        Answer::Status(500),
        Answer::HungUp,
        Answer::BrokenOff(mallorys()),
        Answer::Endless,
        Answer::Bytes(Vec::new()),
        Answer::Bytes(with_space),
        Answer::Bytes(b"<!DOCTYPE html>".to_vec()),
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

/// What a newcomer makes of a signers file of Mallory's at this page of a forge, claimed to be of this kind. The forge
/// would send it: in forks, tags, commits of pull requests, uploads and wikis everyone can put files.
#[track_caller]
fn refused_on_forge(kind: Kind, claimed: &str, project: &str, page: &str) {
    let forge = FakeForge::start(kind);
    let server = HostileServer::alone();
    let asset = forge.asset_target("acme/app", "v1", "app.tar.gz");
    forge.set(&asset, ForgeAnswer::bytes("evil"));
    let sent = ForgeAnswer::bytes(mallorys()).with_header("content-type", "text/plain");
    for target in [page.to_owned(), page.replace("/blob/", "/raw/"), page.replace("/src/", "/raw/")] {
        forge.set(&target, sent.clone());
    }
    let url = forge.url(&asset);
    let id = forge.project(project);
    let (index, release) = if project == "acme/app" {
        (forge.index_path("acme/app", "v1"), Some(forge.release_url("acme/app", "v1")))
    } else {
        (format!("{id}/svc.index.json"), None)
    };
    make_up(&server, &id, &index, release.as_deref(), &url, &origin(claimed, &forge.url(page)));
    let victim = Victim::of(&server);
    let ran = victim.run(&["download", "--force", &url]);
    assert_eq!(ran.code, 3, "{claimed} at {page}: {ran:?}; asked: {:?}", forge.targets());
    victim.assert_untouched();
    assert!(victim.memory().is_empty());
}

#[test]
fn what_is_not_a_branch_of_the_project_is_no_root_on_any_forge() {
    for name in
        [HASH, "refs/tags/v1", "refs/pull/7/head", "refs/merge-requests/7/head", "HEAD", "main~1", "main^2"]
    {
        refused_on_forge(
            Kind::GitHub,
            "github",
            "acme/app",
            &format!("/acme/app/blob/{name}/svc.signers.json"),
        );
        refused_on_forge(
            Kind::GitHub,
            "github",
            "acme/app",
            &format!("/acme/app/raw/{name}/svc.signers.json"),
        );
        refused_on_forge(
            Kind::GitLab,
            "gitlab",
            "acme/app",
            &format!("/acme/app/-/raw/{name}/svc.signers.json"),
        );
        refused_on_forge(
            Kind::Forgejo,
            "forgejo",
            "acme/app",
            &format!("/acme/app/raw/branch/{name}/svc.signers.json"),
        );
    }
    for name in [format!("commit/{HASH}"), "tag/v1".to_owned(), format!("blob/{HASH}")] {
        for form in ["src", "raw", "media"] {
            let page = format!("/acme/app/{form}/{name}/svc.signers.json");
            refused_on_forge(Kind::Forgejo, "forgejo", "acme/app", &page);
        }
    }
}

#[test]
fn a_fork_a_directory_or_another_file_of_the_forge_is_no_root() {
    for (kind, page) in [
        (Kind::GitHub, "/mallory/app/blob/main/svc.signers.json"),
        (Kind::GitHub, "/acme/app/blob/main/docs/svc.signers.json"),
        (Kind::GitHub, "/acme/app/blob/main/README.md"),
        (Kind::GitLab, "/mallory/app/-/blob/main/svc.signers.json"),
        (Kind::GitLab, "/acme/app/fork/-/blob/main/svc.signers.json"),
        (Kind::GitLab, "/acme/app/-/blob/main/docs/svc.signers.json"),
        (Kind::Forgejo, "/mallory/app/src/branch/main/svc.signers.json"),
        (Kind::Forgejo, "/acme/app/src/branch/main/docs/svc.signers.json"),
    ] {
        refused_on_forge(kind, kind.name(), "acme/app", page);
    }
}

#[test]
fn a_forge_that_is_called_a_file_server_vouches_for_no_page() {
    for page in [
        format!("/acme/app/raw/commit/{HASH}/svc.signers.json"),
        format!("/acme/app/raw/{HASH}/svc.signers.json"),
        "/acme/app/blob/main/svc.signers.json".to_owned(),
        format!("/acme/app/-/raw/{HASH}/svc.signers.json"),
        "/acme/app/src/branch/main/svc.signers.json".to_owned(),
        "/attachments/0b3c-11".to_owned(),
    ] {
        refused_on_forge(Kind::Forgejo, "file_server", "acme/app", &page);
    }
}

#[test]
fn an_asset_of_a_release_is_no_signers_file_for_its_neighbours() {
    // D26: a signers file comes from a branch, so that no one publishes one by accident. Who may only attach files to a
    // release, and owns the server, would otherwise vouch for the very files that they attached.
    let dir = "acme/app/releases/download/v1";
    for claimed in ["file_server", "github", "forgejo"] {
        refused_on_forge(Kind::Forgejo, claimed, dir, &format!("/{dir}/svc.signers.json"));
    }
    let dir = "acme/app/-/releases/v1/downloads";
    for claimed in ["file_server", "gitlab"] {
        refused_on_forge(Kind::GitLab, claimed, dir, &format!("/{dir}/svc.signers.json"));
    }
}

#[test]
fn an_asset_of_a_release_registers_no_project() {
    let world = World::start();
    for path in [
        "/acme/app/releases/download/v1/svc.signers.json",
        "/acme/app/releases/download/svc.signers/x.json",
        "/acme/app/-/releases/v1/downloads/svc.signers.json",
    ] {
        world.files.put(path, mallorys());
        let reply = world.register_url(&mallory(), &world.files.url(path));
        assert_eq!(reply.status, 400, "{path}: {}", reply.text());
    }
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

#[test]
fn nothing_but_a_branch_is_a_root_on_the_known_forges_and_nothing_is_asked() {
    let server = HostileServer::alone();
    let raw = "https://raw.githubusercontent.com/acme/app";
    for (host, claimed, url) in [
        ("github.com", "github", format!("https://github.com/acme/app/blob/{HASH}/svc.signers.json")),
        (
            "github.com",
            "github",
            "https://github.com/acme/app/raw/refs/pull/1/head/svc.signers.json".to_owned(),
        ),
        ("github.com", "github", format!("{raw}/{HASH}/svc.signers.json")),
        ("github.com", "github", format!("{raw}/refs/pull/1/merge/svc.signers.json")),
        ("github.com", "github", "https://github.com/mallory/app/blob/main/svc.signers.json".to_owned()),
        ("github.com", "github", "http://github.com/acme/app/blob/main/svc.signers.json".to_owned()),
        ("github.com", "github", "https://github.com:8443/acme/app/blob/main/svc.signers.json".to_owned()),
        (
            "github.com",
            "github",
            "https://github.com.example.org/acme/app/blob/main/svc.signers.json".to_owned(),
        ),
        (
            "github.com",
            "github",
            "https://gist.githubusercontent.com/acme/app/raw/svc.signers.json".to_owned(),
        ),
        ("github.com", "file_server", "https://github.com/acme/app/svc.signers.json".to_owned()),
        ("github.com", "file_server", format!("{raw}/main/svc.signers.json")),
        ("github.com", "forgejo", "https://github.com/acme/app/src/branch/main/svc.signers.json".to_owned()),
        ("github.com", "gitlab", "https://github.com/acme/app/-/blob/main/svc.signers.json".to_owned()),
        (
            "github.com",
            "file_server",
            "https://github.com/acme/app/releases/download/v1/svc.signers.json".to_owned(),
        ),
        ("gitlab.com", "gitlab", format!("https://gitlab.com/acme/app/-/raw/{HASH}/svc.signers.json")),
        ("gitlab.com", "file_server", "https://gitlab.com/acme/app/svc.signers.json".to_owned()),
        (
            "codeberg.org",
            "forgejo",
            format!("https://codeberg.org/acme/app/raw/commit/{HASH}/svc.signers.json"),
        ),
        ("codeberg.org", "github", "https://codeberg.org/acme/app/raw/main/svc.signers.json".to_owned()),
    ] {
        let project = format!("https/{host}/443/acme/app");
        let index = format!("{project}/releases/tag/v1/svc.index.json");
        let (page, file) = if host == "gitlab.com" {
            ("-/releases/v1", "-/releases/v1/downloads/app.tar.gz")
        } else {
            ("releases/tag/v1", "releases/download/v1/app.tar.gz")
        };
        let base = format!("https://{host}/acme/app");
        let (page, download) = (format!("{base}/{page}"), format!("{base}/{file}"));
        make_up(&server, &project, &index, Some(&page), &download, &origin(claimed, &url));
        let victim = Victim::of(&server);
        let ran = victim.refuses(&download, 3, &["--signers-digest"]);
        ran.says_nothing_of(&["could not be read"]);
    }
}
