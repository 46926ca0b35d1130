//! D26, D27, D10: signers files on GitHub, GitLab and Forgejo. Every form of a URL is read in the tests of forge.

use serde_json::json;

use crate::support::fake_forge::{FakeForge, ForgeAnswer, ForgeWorld, KINDS, Kind};
use crate::support::{SignersFile, alice, days_ago};

const FILE: &str = "svc.signers.json";
const HASH: &str = "f8d3d94cbd347e924aa7b715845e439d00e80ca4";

fn file() -> SignersFile {
    SignersFile::of(1, &[&alice()])
}

#[test]
fn a_project_is_registered_and_updated_from_branches() {
    let kind = Kind::GitHub;
    let page = kind.page_of("acme/app", "main", FILE);
    let forge = ForgeWorld::start_with(FakeForge::start(kind), "", "", &["--allow-fetch", "127.0.0.1:*"]);
    // What the rules refuse is not fetched: forms of other kinds, other places, pages of releases.
    let others = KINDS.into_iter().filter(|other| *other != kind);
    let others = others.map(|other| other.page_of("acme/app", "main", FILE));
    let places = ["/svc.signers.json", "/acme/svc.signers.json", "/acme/app/svc.signers.json"];
    let release = kind.release_page("acme/app", "v1.0");
    for page in others.chain(places.map(str::to_owned)).chain([release]) {
        let reply = forge.register(&forge.forge.url(&page));
        assert_eq!(reply.status, 400, "{page}: {}", reply.text());
    }
    assert_eq!(forge.forge.targets(), [""; 0]);

    // It follows redirects only within its own origin.
    let (url, project) = (forge.forge.url(&page), forge.forge.project("acme/app"));
    let elsewhere = FakeForge::start(kind);
    elsewhere.set("/x", ForgeAnswer::bytes(file().bytes()));
    let target = kind.branch_target("acme/app", "main", FILE);
    forge.forge.set(&target, ForgeAnswer::redirect(&elsewhere.url("/x")));
    forge.register(&url).refused(500, &forge.forge.host());
    assert_eq!(elsewhere.targets(), [""; 0]);
    assert_eq!(forge.forge.targets(), ["/acme/app/raw/refs/heads/main/svc.signers.json"]);
    forge.forge.set(&target, ForgeAnswer::redirect("/elsewhere/on/the/same/host"));
    forge.forge.set("/elsewhere/on/the/same/host", ForgeAnswer::bytes(file().bytes()));
    let answer = forge.register(&url).ok();
    assert_eq!((&answer["project_id"], &answer["success"]), (&json!(project), &json!(true)));
    assert_eq!(answer["message"], json!("Project registered successfully. Collect signatures to activate."));
    let pending = format!("{project}/svc.signers.pending/svc.signers.json");
    assert_eq!(forge.world.read(&pending), file().bytes());
    let metadata = forge.world.read_json(&format!("{pending}.metadata.json"));
    assert_eq!(metadata["origin"]["kind"], json!(kind.name()));
    assert_eq!(metadata["origin"]["url"], json!(url), "as given");
    assert_eq!(metadata["origin"]["retrieval_url"], json!(forge.forge.url(&target)), "as requested");
    assert!(metadata["origin"]["retrieved_at"].as_str().unwrap().ends_with('Z'), "{metadata}");
    assert_eq!((&metadata["project_id"], &metadata["previous"]), (&json!(project), &json!(null)));
    forge.world.sign_all(&pending, &[&alice()]);

    // A branch with a slash is found by asking the forge. A commit is none.
    let next = file().redated(days_ago(1));
    forge.forge.put_signers("acme/app", "release/2.x", FILE, &next);
    let propose = |page: &str| {
        let body = json!({ "signers_file_url": forge.forge.url(page), "public_key": alice().body_key() });
        forge.world.post_as(&alice(), "/v1/update_signers", &body)
    };
    propose(&kind.page_of("acme/app", HASH, FILE)).error(400);
    let answer = propose(&kind.page_of("acme/app", "release/2.x", FILE)).ok();
    assert_eq!(answer["project_id"], json!(project));
    forge.world.sign_all(&pending, &[&alice()]);
    assert_eq!(forge.world.read(&format!("{project}/svc.signers/svc.signers.json")), next.bytes());
}

#[test]
fn a_configured_raw_host_serves_the_file_of_a_page_and_belongs_to_the_repository() {
    for kind in KINDS {
        let raw = FakeForge::start(kind);
        let entry = format!("raw = \"{}\"", raw.url(""));
        let forge = ForgeWorld::start_with(FakeForge::start(kind), &entry, "", &[]);
        raw.put_signers("acme/app", "main", FILE, &file());
        // GitHub's raw host has no segment `raw`, and its addresses can be given too.
        raw.set("/acme/app/refs/heads/main/svc.signers.json", ForgeAnswer::bytes(file().bytes()));
        let page = match kind {
            Kind::GitHub => raw.url("/acme/app/main/svc.signers.json"),
            Kind::GitLab | Kind::Forgejo => forge.forge.url(&kind.page_of("acme/app", "main", FILE)),
        };
        let answer = forge.register(&page).ok();
        assert_eq!(answer["project_id"], json!(forge.forge.project("acme/app")));
        assert_eq!((raw.targets().len(), forge.forge.targets()), (1, vec![]), "{kind:?}");
    }
}
