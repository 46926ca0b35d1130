//! Which projects the URL of a signers file speaks for.

use countersign_core::documents::signers::{SignersOrigin, SourceKind};
use countersign_core::values::{path::RepoPath, time::Timestamp};
use countersign_forge::forges::speaks_for;

fn check(kind: SourceKind, url: &str, project: &str) -> Result<(), String> {
    let retrieved_at = Timestamp::from_unix_seconds(0).unwrap();
    let origin = SignersOrigin { kind, url: url.to_owned(), retrieval_url: url.to_owned(), retrieved_at };
    speaks_for(&origin, &RepoPath::parse(project).unwrap())
}

#[test]
fn a_url_speaks_for_the_project_that_it_names() {
    use SourceKind::{FileServer, Forgejo, Github, Gitlab};
    for (kind, url, project) in [
        (Github, "https://github.com/acme/app/blob/main/svc.signers.json", "https/github.com/443/acme/app"),
        (FileServer, "https://dl.example.org/acme/svc.signers.json", "https/dl.example.org/443/acme"),
        (Forgejo, "https://git.corp/o/r/src/branch/main/svc.signers.json", "https/git.corp/443/o/r"),
        // Raw files of a self-hosted forge, on a host that only its configuration names, or in a directory.
        (Github, "https://raw.corp:8443/o/r/refs/heads/main/svc.signers.json", "https/git.corp/443/o/r"),
        (Github, "https://raw.corp/some/base/o/r/main/svc.signers.json", "https/git.corp/443/o/r"),
        (Github, "http://git.corp:81/raw/o/r/main/svc.signers.json", "http/git.corp/81/o/r"),
        (Github, "https://git.corp/raw/o/r/refs/heads/a/b/svc.signers.json", "https/git.corp/443/o/r"),
        (Github, "https://raw.corp/o/r/main/.svc.signers/next.json", "https/git.corp/443/o/r"),
        (Gitlab, "https://raw.corp/g/s/r/-/raw/main/svc.signers.json", "https/git.corp/443/g/s/r"),
        (Gitlab, "https://raw.corp/x/g/r/-/raw/main/svc.signers.json", "https/git.corp/443/g/r"),
        (Forgejo, "https://raw.corp/x/o/r/raw/branch/main/svc.signers.json", "https/git.corp/443/o/r"),
    ] {
        assert_eq!(check(kind, url, project), Ok(()), "{url}");
    }
}

#[test]
fn a_url_speaks_for_no_other_project() {
    use SourceKind::{FileServer, Github};
    for (kind, url, project) in [
        (Github, "https://github.com/evil/app/blob/main/svc.signers.json", "https/github.com/443/acme/app"),
        (FileServer, "https://evil.example/acme/svc.signers.json", "https/dl.example.org/443/acme"),
        (FileServer, "https://dl.example.org/evil/svc.signers.json", "https/dl.example.org/443/acme"),
        (Github, "https://evil.example/evil/app/refs/heads/main/svc.signers.json", "https/git.corp/443/o/r"),
        (FileServer, "not a URL", "https/dl.example.org/443/acme"),
    ] {
        assert!(check(kind, url, project).is_err(), "{url}");
    }
}

#[test]
fn a_known_forge_has_its_raw_files_where_everybody_knows() {
    use SourceKind::{Forgejo, Github, Gitlab};
    const HASH: &str = "0123456789abcdef0123456789abcdef01234567";
    const APP: &str = "https/github.com/443/acme/app";
    let raw = |rest: &str| format!("https://raw.githubusercontent.com/acme/app/{rest}");
    assert_eq!(check(Github, &raw("main/svc.signers.json"), APP), Ok(()));
    for url in [
        // Forks' commits, pull requests and tags are shown under the name of the repository.
        raw(&format!("{HASH}/svc.signers.json")),
        raw("refs/pull/7/head/svc.signers.json"),
        raw("refs/tags/v1/svc.signers.json"),
        raw("main/docs/other.json"),
        raw("main/svc.signers.json").replace("https:", "http:"),
        raw("main/svc.signers.json").replace(".com", ".com:8443"),
        raw("main/svc.signers.json").replace("raw.", "objects."),
        "https://evil.example/acme/app/main/svc.signers.json".to_owned(),
        "https://evil.example/acme/app/-/raw/main/svc.signers.json".to_owned(),
        "https://gitlab.com/evil/x/-/raw/main/acme/app/svc.signers.json".to_owned(),
    ] {
        for kind in [Github, Gitlab, Forgejo] {
            assert!(check(kind, &url, APP).is_err(), "{url}");
        }
    }
    let url = "https://raw.githubusercontent.com/o/r/main/svc.signers.json";
    assert!(check(Github, url, "https/git.corp/443/o/r").is_err());
    for project in [
        "http/github.com/80/acme/app", "https/github.com/8443/acme/app",
        "https/raw.githubusercontent.com/443/acme/app", "https/objects.githubusercontent.com/443/acme/app",
    ] {
        assert!(check(Github, "https://evil.example/acme/app/main/svc.signers.json", project).is_err());
    }
}

#[test]
fn a_raw_file_of_another_forge_has_the_form_of_its_kind() {
    use SourceKind::{FileServer, Forgejo, Github, Gitlab};
    const R: &str = "https/git.corp/443/o/r";
    for (kind, url, project) in [
        (Github, "https://raw.corp/o/r/x", R),
        (Github, "https://raw.corp/o/r/main/docs/other.json", R),
        (Github, "https://raw.corp/o/r/refs/tags/v1/svc.signers.json", R),
        (Github, "https://raw.corp/o/r/0123456789abcdef0123456789abcdef01234567/svc.signers.json", R),
        (Github, "https://raw.corp/o/r/main/svc.signers.json#x", R),
        (Github, "https://raw.corp/a/b/c/main/svc.signers.json", "https/git.corp/443/a/b/c"),
        (Github, "https://git.corp/o/r/main/svc.signers.json", R),
        (Github, "http://git.corp:443/raw/o/r/main/svc.signers.json", R),
        (Gitlab, "https://raw.corp/o/r/main/svc.signers.json", R),
        (Gitlab, "https://raw.corp/r/-/raw/main/svc.signers.json", "https/git.corp/443/r"),
        (Forgejo, "https://raw.corp/o/r/raw/tag/main/svc.signers.json", R),
        (Forgejo, "https://raw.corp/a/b/c/raw/branch/main/svc.signers.json", "https/git.corp/443/a/b/c"),
        (FileServer, "https://raw.corp/o/r/main/svc.signers.json", R),
        (Github, "https://raw.corp/o/r/main/svc.signers.json", "ftp/git.corp/1/o/r"),
        (Gitlab, "https://raw.corp/o/r/-/raw/main/svc.signers.json", "zzz/y/x/o/r"),
        (Gitlab, "https://raw.corp/o/r/-/raw/main/svc.signers.json", "https/evil host/443/o/r"),
    ] {
        assert!(check(kind, url, project).is_err(), "{url}");
    }
}
