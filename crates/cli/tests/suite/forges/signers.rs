//! D26, D27, D10: signers files on GitHub, GitLab and Forgejo.

use serde_json::json;

use crate::support::fake_forge::{FakeForge, ForgeAnswer, ForgeWorld, KINDS, Kind};
use crate::support::{SignersFile, alice, days_ago};

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
