//! Whether a URL may speak for a project, when nobody knows any more how the server was configured.

use countersign_core::{
    metadata::{Origin, OriginKind},
    path::RepoPath,
    shown::shown_text,
};
use countersign_forge::{forges::locate_claimed, url::SourceUrl};

pub(super) fn speaks_for(origin: &Origin, project: &RepoPath) -> Result<(), String> {
    let located = locate_claimed(&origin.url, origin.kind);
    if located.as_ref().is_ok_and(|source| source.project == *project) || may_be_raw(origin, project) {
        return check_retrieval(origin);
    }
    Err(match located {
        Ok(source) => {
            format!("the URL of the signers file speaks for {}", shown_text(source.project.as_str()))
        }
        Err(refusal) => format!("the URL of the signers file speaks for no project: {refusal}"),
    })
}

/// A file server is asked for the URL itself. What a forge is asked for depends on its configuration.
fn check_retrieval(origin: &Origin) -> Result<(), String> {
    let is_itself =
        SourceUrl::parse(&origin.url).is_ok_and(|url| url.request_url().as_str() == origin.retrieval_url);
    match origin.kind {
        OriginKind::FileServer if !is_itself => {
            Err(format!("it was retrieved from another URL, {}", shown_text(&origin.retrieval_url)))
        }
        OriginKind::FileServer | OriginKind::Github | OriginKind::Gitlab | OriginKind::Forgejo => Ok(()),
    }
}

/// A self-hosted forge may serve raw files from another host or port. Which one, only its configuration said; but the
/// names of the project are in the URL.
fn may_be_raw(origin: &Origin, project: &RepoPath) -> bool {
    let Ok(url) = SourceUrl::parse(&origin.url) else { return false };
    let is_forge = match origin.kind {
        OriginKind::Github | OriginKind::Gitlab | OriginKind::Forgejo => true,
        OriginKind::FileServer => false,
    };
    let place = format!("{}/{}", url.host(), url.port());
    let is_elsewhere = !project.segments().skip(1).take(2).eq(place.split('/'));
    let names: Vec<&str> = project.segments().skip(3).collect();
    let segments: Vec<&str> = url.segments().collect();
    is_forge
        && is_elsewhere
        && names.len() >= 2
        && segments.windows(names.len()).any(|window| window == names)
}

#[cfg(test)]
mod tests {
    use countersign_core::time::Timestamp;

    use super::*;

    fn check(kind: OriginKind, url: &str, project: &str) -> Result<(), String> {
        let retrieved_at = Timestamp::from_unix_seconds(0).unwrap();
        let origin = Origin { kind, url: url.to_owned(), retrieval_url: url.to_owned(), retrieved_at };
        speaks_for(&origin, &RepoPath::parse(project).unwrap())
    }

    #[test]
    fn a_url_speaks_for_the_project_that_it_names() {
        use OriginKind::{FileServer, Forgejo, Github};
        for (kind, url, project) in [
            (
                Github,
                "https://github.com/acme/app/blob/main/svc.signers.json",
                "https/github.com/443/acme/app",
            ),
            (FileServer, "https://dl.example.org/acme/svc.signers.json", "https/dl.example.org/443/acme"),
            (Forgejo, "https://git.corp/o/r/src/branch/main/svc.signers.json", "https/git.corp/443/o/r"),
            // Raw files of a self-hosted forge, on a host that only its configuration names.
            (Github, "https://raw.corp:8443/o/r/refs/heads/main/svc.signers.json", "https/git.corp/443/o/r"),
        ] {
            assert_eq!(check(kind, url, project), Ok(()), "{url}");
        }
    }

    #[test]
    fn a_url_speaks_for_no_other_project() {
        use OriginKind::{FileServer, Github};
        for (kind, url, project) in [
            (
                Github,
                "https://github.com/evil/app/blob/main/svc.signers.json",
                "https/github.com/443/acme/app",
            ),
            (FileServer, "https://evil.example/acme/svc.signers.json", "https/dl.example.org/443/acme"),
            (FileServer, "https://dl.example.org/evil/svc.signers.json", "https/dl.example.org/443/acme"),
            (
                Github,
                "https://evil.example/evil/app/refs/heads/main/svc.signers.json",
                "https/git.corp/443/o/r",
            ),
            (FileServer, "not a URL", "https/dl.example.org/443/acme"),
        ] {
            assert!(check(kind, url, project).is_err(), "{url}");
        }
    }
}
