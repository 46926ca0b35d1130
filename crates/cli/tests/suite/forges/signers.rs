//! D26, D27, D10: signers files on GitHub, GitLab and Forgejo.

use serde_json::json;

use crate::support::{
    SignersFile, days_ago,
    fake_forge::{FakeForge, ForgeAnswer, ForgeWorld, KINDS, Kind, alice},
};

const FILE: &str = "svc.signers.json";
const HASH: &str = "f8d3d94cbd347e924aa7b715845e439d00e80ca4";

fn file() -> SignersFile {
    SignersFile::of(1, &[&alice()])
}

/// Registers a repository from this page of a fresh server; the targets that the forge saw.
#[track_caller]
fn register_page(kind: Kind, repository: &str, branch: &str, path: &str, page: &str) -> Vec<String> {
    let forge = ForgeWorld::start(kind);
    forge.forge.put_signers(repository, branch, path, &file());
    let answer = forge.register(&forge.forge.url(page)).ok();
    assert_eq!(answer["project_id"], json!(forge.forge.project(repository)), "{page}");
    assert_eq!(answer["success"], json!(true));
    assert_eq!(answer["message"], json!("Project registered successfully. Collect signatures to activate."));
    let pending = format!("{}/svc.signers.pending/svc.signers.json", forge.forge.project(repository));
    assert_eq!(forge.world.read(&pending), file().bytes());
    forge.forge.targets()
}

/// Each of these pages is refused with 400 and without a question to the forge.
#[track_caller]
fn assert_refused(kind: Kind, pages: &[String]) {
    let forge = ForgeWorld::start(kind);
    for page in pages {
        let reply = forge.register(&forge.forge.url(page));
        assert_eq!(reply.status, 400, "{page}: {}", reply.text());
        reply.error(400);
    }
    assert_eq!(forge.forge.targets(), [""; 0], "a URL that the rules refuse is not fetched");
    assert_eq!(forge.world.git().commit_count(), 1);
}

#[test]
fn a_github_project_is_registered_from_every_form_of_a_branch_url() {
    for page in [
        "/acme/app/blob/main/svc.signers.json",
        "/acme/app/raw/main/svc.signers.json",
        "/acme/app/blob/refs/heads/main/svc.signers.json",
        "/acme/app/raw/refs/heads/main/svc.signers.json",
    ] {
        let asked = register_page(Kind::GitHub, "acme/app", "main", FILE, page);
        assert_eq!(asked, ["/acme/app/raw/refs/heads/main/svc.signers.json"], "{page}");
    }
}

#[test]
fn a_gitlab_project_is_registered_from_every_form_of_a_branch_url_with_sub_groups() {
    for repository in ["acme/app", "acme/tools/app", "acme/tools/deep/er/app"] {
        for form in ["blob", "raw"] {
            let page = format!("/{repository}/-/{form}/main/svc.signers.json");
            let asked = register_page(Kind::GitLab, repository, "main", FILE, &page);
            assert_eq!(
                asked,
                [format!("/{repository}/-/raw/main/svc.signers.json?ref_type=heads")],
                "{page}"
            );
        }
    }
}

#[test]
fn a_forgejo_project_is_registered_from_every_form_of_a_branch_url() {
    for form in ["src", "raw"] {
        let page = format!("/acme/app/{form}/branch/main/svc.signers.json");
        let asked = register_page(Kind::Forgejo, "acme/app", "main", FILE, &page);
        assert_eq!(asked, ["/acme/app/raw/branch/main/svc.signers.json"], "{page}");
    }
}

#[test]
fn a_github_file_of_the_raw_host_belongs_to_the_repository_page() {
    for page in ["/acme/app/main/svc.signers.json", "/acme/app/refs/heads/main/svc.signers.json"] {
        let raw = FakeForge::start(Kind::GitHub);
        let entry = format!("raw = \"{}\"", raw.url(""));
        let forge = ForgeWorld::start_with(FakeForge::start(Kind::GitHub), &entry, "", &[]);
        raw.set("/acme/app/refs/heads/main/svc.signers.json", ForgeAnswer::bytes(file().bytes()));
        let answer = forge.register(&raw.url(page)).ok();
        assert_eq!(answer["project_id"], json!(forge.forge.project("acme/app")), "{page}");
        assert_eq!(raw.targets(), ["/acme/app/refs/heads/main/svc.signers.json"]);
        assert_eq!(forge.forge.targets(), [""; 0]);
    }
}

#[test]
fn a_configured_raw_host_serves_the_file_of_a_page() {
    for kind in KINDS {
        let raw = FakeForge::start(kind);
        let entry = format!("raw = \"{}\"", raw.url(""));
        let forge = ForgeWorld::start_with(FakeForge::start(kind), &entry, "", &[]);
        raw.put_signers("acme/app", "main", FILE, &file());
        // GitHub's raw host has no segment `raw`.
        raw.set("/acme/app/refs/heads/main/svc.signers.json", ForgeAnswer::bytes(file().bytes()));
        let page = kind.page_of("acme/app", "main", FILE);
        let answer = forge.register(&forge.forge.url(&page)).ok();
        assert_eq!(answer["project_id"], json!(forge.forge.project("acme/app")));
        assert_eq!((raw.targets().len(), forge.forge.targets()), (1, vec![]), "{kind:?}");
    }
}

#[test]
fn a_branch_with_a_slash_works_where_the_url_says_refs_heads() {
    for (kind, form) in [
        (Kind::GitHub, "blob/refs/heads"),
        (Kind::GitHub, "raw/refs/heads"),
        (Kind::GitLab, "-/blob/refs/heads"),
        (Kind::GitLab, "-/raw/refs/heads"),
    ] {
        for path in [FILE, ".svc.signers/team.json"] {
            let page = format!("/acme/app/{form}/release/2.x/{path}");
            let asked = register_page(kind, "acme/app", "release/2.x", path, &page);
            assert!(!asked.iter().any(|target| target.contains("tags")), "{asked:?}");
        }
    }
}

/// Branch `main` has a file in a directory where the server does not look; `main/docs` is no branch.
#[test]
fn a_file_in_another_directory_does_not_pass_for_one_at_the_root_of_a_branch_with_a_slash() {
    let mut taken = Vec::new();
    for (kind, page) in [
        (Kind::GitHub, "/acme/app/blob/main/docs/svc.signers.json"),
        (Kind::GitHub, "/acme/app/blob/refs/heads/main/docs/svc.signers.json"),
        (Kind::GitHub, "/acme/app/raw/refs/heads/main/docs/.svc.signers/team.json"),
        (Kind::GitLab, "/acme/app/-/blob/main/docs/svc.signers.json"),
        (Kind::GitLab, "/acme/app/-/blob/refs/heads/main/docs/svc.signers.json"),
        (Kind::GitLab, "/acme/app/-/raw/refs/heads/main/docs/.svc.signers/team.json"),
        (Kind::Forgejo, "/acme/app/src/branch/main/docs/svc.signers.json"),
        (Kind::Forgejo, "/acme/app/raw/branch/main/docs/.svc.signers/team.json"),
    ] {
        let forge = ForgeWorld::start(kind);
        forge.forge.put_signers("acme/app", "main", "docs/svc.signers.json", &file());
        forge.forge.put_signers("acme/app", "main", "docs/.svc.signers/team.json", &file());
        let reply = forge.register(&forge.forge.url(page));
        if reply.status == 200 {
            taken.push((kind, page, forge.forge.targets()));
        }
    }
    assert!(taken.is_empty(), "registered from a directory that D26 does not allow: {taken:#?}");
}

#[test]
fn a_branch_with_percent_escapes_is_asked_for_by_its_name() {
    for kind in KINDS {
        let page = kind.page_of("acme/app", "d%C3%A9v%231", FILE);
        let asked = register_page(kind, "acme/app", "dév#1", FILE, &page);
        assert!(!asked[0].contains('#') && !asked[0].contains(' '), "{asked:?}");
    }
}

#[test]
fn the_allowed_directories_of_a_signers_file_are_taken() {
    for kind in KINDS {
        for path in ["svc.signers/svc.signers.json", ".svc.signers/team.json", ".svc_signers/keys.json"] {
            register_page(kind, "acme/app", "main", path, &kind.page_of("acme/app", "main", path));
        }
    }
}

#[test]
fn any_other_path_in_the_repository_is_refused() {
    for kind in KINDS {
        let pages: Vec<_> =
            ["README.md", "signers.json", ".svc.signers.json", "svc.signers/", "svc.signers", ""]
                .iter()
                .map(|path| kind.page_of("acme/app", "main", path))
                .collect();
        assert_refused(kind, &pages);
    }
}

#[test]
fn a_directory_between_branch_and_file_is_refused() {
    // D26: a branch is one segment where the URL does not say `refs/heads/`. One with a `/` is found by asking
    // the forge, which knows none here. Either way it is the URL that the rules refuse (D25).
    let mut others = Vec::new();
    for kind in KINDS {
        let forge = ForgeWorld::start(kind);
        for path in [
            "docs/svc.signers.json",
            "docs/svc.signers/svc.signers.json",
            "svc.signers/deep/svc.signers.json",
            "SVC.SIGNERS/svc.signers.json",
        ] {
            forge.forge.put_signers("acme/app", "main", path, &file());
            let reply = forge.register(&forge.forge.url(&kind.page_of("acme/app", "main", path)));
            if reply.status != 400 {
                others.push((kind, path, reply.status, reply.text()));
            }
        }
        assert_eq!(forge.world.git().commit_count(), 1, "nothing is stored");
    }
    assert!(others.is_empty(), "not refused with 400: {others:#?}");
}

#[test]
fn a_branch_with_a_slash_is_found_by_asking_the_forge() {
    let mut refused = Vec::new();
    for kind in KINDS {
        let forge = ForgeWorld::start(kind);
        forge.forge.put_signers("acme/app", "release/2.x", FILE, &file());
        let reply = forge.register(&forge.forge.url(&kind.page_of("acme/app", "release/2.x", FILE)));
        if reply.status != 200 {
            refused.push((kind, reply.text(), forge.forge.targets()));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn what_is_not_a_branch_is_refused() {
    let refs = [
        HASH.to_owned(),
        HASH.to_uppercase(),
        format!("{HASH}{}", &HASH[..24]),
        "refs/tags/v1.0".to_owned(),
        "refs/pull/7/head".to_owned(),
        "refs/merge-requests/7/head".to_owned(),
        "refs/remotes/origin/main".to_owned(),
    ];
    for kind in [Kind::GitHub, Kind::GitLab] {
        let pages: Vec<_> = refs.iter().map(|name| kind.page_of("acme/app", name, FILE)).collect();
        assert_refused(kind, &pages);
    }
    let pages: Vec<_> = ["src", "raw"]
        .iter()
        .flat_map(|form| {
            ["tag/v1.0".to_owned(), format!("commit/{HASH}")]
                .map(|name| format!("/acme/app/{form}/{name}/{FILE}"))
        })
        .collect();
    assert_refused(Kind::Forgejo, &pages);
}

#[test]
fn a_tag_in_the_place_of_a_branch_is_never_fetched_as_a_tag() {
    for kind in KINDS {
        let forge = ForgeWorld::start(kind);
        // The forge serves the tag in every form that does not insist on a branch.
        for target in [
            "/acme/app/raw/v1.0/svc.signers.json",
            "/acme/app/raw/refs/tags/v1.0/svc.signers.json",
            "/acme/app/-/raw/v1.0/svc.signers.json",
            "/acme/app/raw/tag/v1.0/svc.signers.json",
        ] {
            forge.forge.set(target, ForgeAnswer::bytes(file().bytes()));
        }
        let page = kind.page_of("acme/app", "v1.0", FILE);
        let reply = forge.register(&forge.forge.url(&page));
        assert!([400, 500].contains(&reply.status), "{kind:?}: {}", reply.text());
        assert_eq!(forge.world.git().commit_count(), 1);
    }
}

#[test]
fn an_escaped_slash_in_a_branch_is_refused() {
    for kind in KINDS {
        assert_refused(kind, &[kind.page_of("acme/app", "release%2F2.x", FILE)]);
    }
}

#[test]
fn a_fragment_is_refused_and_a_query_is_ignored() {
    for kind in KINDS {
        let page = kind.page_of("acme/app", "main", FILE);
        assert_refused(kind, &[format!("{page}#L1"), format!("{page}#")]);
        for query in ["ref_type=heads", "ref_type=tags", "plain=1", "token=x"] {
            let asked = register_page(kind, "acme/app", "main", FILE, &format!("{page}?{query}"));
            assert_eq!(asked, [kind.branch_target("acme/app", "main", FILE)]);
        }
    }
}

#[test]
fn a_form_of_another_kind_is_refused() {
    for kind in KINDS {
        let pages: Vec<_> = KINDS
            .into_iter()
            .filter(|other| *other != kind)
            .map(|other| other.page_of("acme/app", "main", FILE))
            .chain(
                ["/svc.signers.json", "/acme/svc.signers.json", "/acme/app/svc.signers.json"]
                    .map(str::to_owned),
            )
            .chain([kind.release_page("acme/app", "v1.0")])
            .collect();
        assert_refused(kind, &pages);
    }
}

#[test]
fn a_forge_form_on_a_host_that_is_not_configured_is_refused_with_the_hint_to_configure_it() {
    let forge = ForgeWorld::start_with(
        FakeForge::start(Kind::GitHub),
        "",
        "",
        &["--file-server", "*", "--allow-fetch", "127.0.0.1:*"],
    );
    let unknown = FakeForge::start(Kind::GitHub);
    for kind in KINDS {
        let page = kind.page_of("acme/app", "main", FILE);
        forge.register(&unknown.url(&page)).refused(400, "forge");
    }
    assert_eq!(unknown.targets(), [""; 0]);
}

#[test]
fn the_known_hosts_are_asked_over_https_only() {
    let forge = ForgeWorld::start(Kind::GitHub);
    for (kind, host) in [
        (Kind::GitHub, "github.com"),
        (Kind::GitLab, "gitlab.com"),
        (Kind::Forgejo, "codeberg.org"),
        (Kind::Forgejo, "gitea.com"),
    ] {
        let page = kind.page_of("acme/app", "main", FILE);
        forge.register(&format!("http://{host}{page}")).error(400);
    }
    forge.register("http://raw.githubusercontent.com/acme/app/main/svc.signers.json").error(400);
}

#[test]
fn the_metadata_file_says_which_forge_and_which_url() {
    for kind in KINDS {
        let forge = ForgeWorld::start(kind);
        forge.forge.put_signers("acme/app", "main", FILE, &file());
        let url = forge.forge.url(&kind.page_of("acme/app", "main", FILE));
        forge.register(&url).ok();
        let project = forge.forge.project("acme/app");
        let metadata = format!("{project}/svc.signers.pending/svc.signers.json.metadata.json");
        let metadata = forge.world.read_json(&metadata);
        assert_eq!(metadata["origin"]["kind"], json!(kind.name()));
        assert_eq!(metadata["origin"]["url"], json!(url), "as given");
        let retrieval = forge.forge.url(&kind.branch_target("acme/app", "main", FILE));
        assert_eq!(metadata["origin"]["retrieval_url"], json!(retrieval), "as requested");
        assert_eq!(metadata["project_id"], json!(project));
        assert_eq!(metadata["previous"], json!(null));
    }
}

#[test]
fn an_update_is_fetched_from_a_branch_too() {
    for kind in KINDS {
        let forge = ForgeWorld::with_project(kind);
        let next = file().redated(days_ago(1));
        forge.forge.put_signers("acme/app", "next", FILE, &next);
        let propose = |page: &str| {
            let body = json!({ "signers_file_url": forge.forge.url(page), "public_key": alice().body_key() });
            forge.world.post_as(&alice(), "/v1/update_signers", &body)
        };
        let hash = if kind == Kind::Forgejo {
            format!("/acme/app/src/commit/{HASH}/{FILE}")
        } else {
            kind.page_of("acme/app", HASH, FILE)
        };
        propose(&hash).error(400);
        let answer = propose(&kind.page_of("acme/app", "next", FILE)).ok();
        assert_eq!(answer["project_id"], json!(forge.forge.project("acme/app")));
        let pending = format!("{}/svc.signers.pending/svc.signers.json", forge.forge.project("acme/app"));
        forge.world.sign_all(&pending, &[&alice()]);
        let active = format!("{}/svc.signers/svc.signers.json", forge.forge.project("acme/app"));
        assert_eq!(forge.world.read(&active), next.bytes());
    }
}

#[test]
fn a_signers_file_follows_redirects_only_within_its_own_origin() {
    for kind in KINDS {
        let elsewhere = FakeForge::start(kind);
        elsewhere.set("/x", ForgeAnswer::bytes(file().bytes()));
        let forge = ForgeWorld::start_with(FakeForge::start(kind), "", "", &["--allow-fetch", "127.0.0.1:*"]);
        let url = forge.forge.url(&kind.page_of("acme/app", "main", FILE));
        let target = kind.branch_target("acme/app", "main", FILE);
        forge.forge.set(&target, ForgeAnswer::redirect(&elsewhere.url("/x")));
        forge.register(&url).refused(500, &forge.forge.host());
        assert_eq!(elsewhere.targets(), [""; 0]);
        forge.forge.set(&target, ForgeAnswer::redirect("/elsewhere/on/the/same/host"));
        forge.forge.set("/elsewhere/on/the/same/host", ForgeAnswer::bytes(file().bytes()));
        forge.register(&url).ok();
    }
}

#[test]
fn a_page_instead_of_a_signers_file_is_invalid_content() {
    for kind in KINDS {
        let forge = ForgeWorld::start(kind);
        let url = forge.forge.url(&kind.page_of("acme/app", "main", FILE));
        for answer in [
            ForgeAnswer::html(),
            ForgeAnswer::status(500, "oops"),
            ForgeAnswer::status(404, "Not Found"),
            ForgeAnswer::broken_off(file().bytes()),
            ForgeAnswer::endless(),
        ] {
            forge.forge.set(&kind.branch_target("acme/app", "main", FILE), answer);
            forge.register(&url).refused(500, &forge.forge.host());
        }
        assert_eq!(forge.world.git().commit_count(), 1);
    }
}
