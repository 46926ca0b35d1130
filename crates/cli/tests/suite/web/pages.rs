//! What each page shows, and where it leads.

use serde_json::json;

use crate::support::{
    Person, SignersFile, World, days_ago,
    html::{open, visit},
    signers::signer,
};

fn named(person: &Person, name: &str) -> serde_json::Value {
    let mut entry = signer(&person.key());
    entry["name"] = json!(name);
    entry
}

struct Team {
    alice: Person,
    bob: Person,
    carol: Person,
}

impl Team {
    fn new() -> Self {
        let [alice, bob, carol] = ["alice", "bob", "carol"].map(Person::named);
        Self { alice, bob, carol }
    }

    /// Any two of three release.
    fn file(&self) -> SignersFile {
        let people = [named(&self.alice, "alice"), named(&self.bob, "bob"), named(&self.carol, "carol")];
        SignersFile::new().with("artifact_signers", json!([{ "threshold": 2, "signers": people }]))
    }

    fn everyone(&self) -> [&Person; 3] {
        [&self.alice, &self.bob, &self.carol]
    }

    fn world(&self) -> World {
        World::with_project(&self.file(), &self.everyone())
    }
}

#[test]
fn an_empty_server_says_how_to_begin() {
    open(&World::start().server, "/").says(&["0 projects", "countersign register URL"]);
}

#[test]
fn the_list_of_projects_counts_their_releases_and_is_searched() {
    let team = Team::new();
    let world = team.world();
    world.add_signed_release("acme/app/1.0", &[&team.alice, &team.bob]);
    world.add_release(&team.alice, "acme/app/1.1");
    world.activate("widgets/tool", &SignersFile::of(1, &[&team.alice]), &[&team.alice]);
    world.register(&team.bob, "widgets/new", &team.file()).ok();
    let all = open(&world.server, "/");
    all.says(&[
        "3 projects, 2 files waiting for signatures",
        "1 complete 1 collecting",
        "no releases",
        "registering",
    ]);
    for project in ["acme/app", "widgets/tool", "widgets/new"] {
        all.links_to(&format!("/p/{}", world.id(project)));
    }
    let found = open(&world.server, "/?q=ACME");
    found.says(&["1 project found for", "acme/app"]).lacks(&["widgets"]);
    open(&world.server, "/?q=widgets+tool").says(&["widgets/tool"]).lacks(&["widgets/new"]);
    open(&world.server, "/?q=nothing+here").says(&["0 projects found"]);
    let below = open(&world.server, &format!("/p/{}", world.id("widgets")));
    below.says(&["2 projects here", "widgets/tool", "widgets/new"]).lacks(&["acme/app"]);
}

#[test]
fn a_project_shows_its_signers_by_role_with_names_keys_and_thresholds() {
    let team = Team::new();
    let file = team.file().admin(1, &[&team.alice]).revocation(1, &[&team.carol]);
    let world = World::with_project(&file, &team.everyone());
    let id = world.id("acme/app");
    let page = open(&world.server, &format!("/p/{id}"));
    page.says(&[
        &id,
        "registered",
        "Artifact signers 2 of 3 needed alice",
        "Admins 1 of 1 needed alice",
        "Masters No one: only the admins can change the signers.",
        "Revokers 1 of 1 needed carol",
        &team.alice.key(),
        &team.carol.key(),
    ]);
    page.links_to(&format!("/p/{id}/svc.signers.history.json"));
    page.links_to(&format!("/p/{id}/svc.activity"));
    page.links_to(&format!("/v1/files/{id}/svc.signers/svc.signers.json"));
}

#[test]
fn a_first_registration_shows_who_is_missing() {
    let team = Team::new();
    let world = World::start();
    world.register(&team.bob, "acme/app", &team.file()).ok();
    let pending = world.pending_path("acme/app");
    world.sign(&team.bob, &pending).ok();
    let project = open(&world.server, &format!("/p/{}", world.id("acme/app")));
    project.says(&["registering", "The first signers file waits", "1 of 3 needed", "Whom to ask next:"]);
    project.links_to(&format!("/p/{pending}")).lacks(&["Signers history"]);
    let page = open(&world.server, &format!("/p/{pending}"));
    page.says(&[
        "Everyone who is listed agrees",
        "1 of 3 needed bob",
        "Proposed by bob",
        &format!("countersign sign {pending} --server http"),
    ]);
}

#[test]
fn a_proposal_shows_what_it_changes_and_each_condition() {
    let team = Team::new();
    let world = World::with_project(
        &team.file().admin(1, &[&team.alice]).master(1, &[&Person::named("dave")]),
        &[&team.alice, &team.bob, &team.carol, &Person::named("dave")],
    );
    let erin = Person::named("erin");
    let people = [named(&team.alice, "alice"), named(&erin, "bob")];
    let next = SignersFile::dated(days_ago(5))
        .with("artifact_signers", json!([{ "threshold": 1, "signers": people }]))
        .admin(1, &[&team.alice, &erin]);
    world.propose(&team.alice, "acme/app", &next).ok();
    let pending = world.pending_path("acme/app");
    world.sign(&team.alice, &pending).ok();
    let page = open(&world.server, &format!("/p/{pending}"));
    page.says(&[
        "WARNING: a name now stands for another key",
        "WEAKER: 1 key can release; before, it took 2 keys",
        "met Enough of those in force agree",
        "met Enough of those proposed agree",
        "open Everyone who joins agrees 0 of 1 needed Still missing:",
        &erin.key(),
    ]);
    let project = open(&world.server, &format!("/p/{}", world.id("acme/app")));
    project.says(&[
        "A change of the signers waits for signatures",
        "WEAKER",
        "open Everyone who joins agrees",
    ]);
    world.sign(&erin, &pending).ok();
    let gone = visit(&world.server, &format!("/p/{pending}"));
    assert_eq!(gone.status, 404);
    gone.says(&["it may be in force already"]).links_to(&format!("/p/{}", world.id("acme/app")));
}

#[test]
fn a_release_shows_files_digests_progress_and_commands() {
    let team = Team::new();
    let world = team.world();
    let index = world.add_release(&team.alice, "acme/app/1.0");
    let page = open(&world.server, &format!("/p/{index}"));
    page.says(&[
        "collecting release",
        "0 of 2 needed Still missing, any 2 of: alice",
        "app.tar.gz",
        "not known",
        "SHA-256",
    ]);
    page.says(&[&format!("countersign sign {index} --server http://localhost"), "too few have signed"]);
    world.sign(&team.alice, &index).ok();
    open(&world.server, &format!("/p/{index}")).says(&[
        "1 of 2 needed alice",
        "signed 20",
        "Still missing, any 1 of: bob",
    ]);
    world.sign(&team.carol, &index).ok();
    let page = open(&world.server, &format!("/p/{index}"));
    page.says(&["complete release", "2 of 2 needed", "Not needed any more: bob", "Completed 20"]);
    let url = world.files.url("/acme/app/1.0/app.tar.gz");
    page.says(&[&format!("countersign download {url} --server http://localhost")])
        .lacks(&["countersign sign "]);
    page.links_to(&url).links_to(&format!("/verify?path={index}")).links_to(&format!("/v1/files/{index}"));
    page.links_to(&format!("/p/{}", world.id("acme/app")));
    let digest = &world.read_json(&index)["published_files"][0]["digests"]["sha256"];
    page.says(&[digest.as_str().unwrap()]);
}

#[test]
fn a_revoked_release_says_so_first_with_reason_time_and_who() {
    let team = Team::new();
    let world = team.world();
    let index = world.add_signed_release("acme/app/1.0", &[&team.alice, &team.bob]);
    world.revoke(&team.carol, &index).ok();
    let page = open(&world.server, &format!("/p/{index}"));
    page.says(&["Revoked: do not use this release key leaked", "Signed by: carol", &team.carol.key()]);
    page.says(&["The client refuses this release"]).lacks(&["countersign download http"]);
    open(&world.server, &format!("/p/{}", world.id("acme/app"))).says(&["1 revoked"]);
    open(&world.server, "/").says(&["1 revoked"]);
}

#[test]
fn a_revocation_that_lacks_signatures_shows_how_to_join() {
    let team = Team::new();
    let file = team.file().revocation(2, &[&team.bob, &team.carol]);
    let world = World::with_project(&file, &team.everyone());
    let index = world.add_signed_release("acme/app/1.0", &[&team.alice, &team.bob]);
    let document = world.revocation_of(&index, "wrong build");
    assert_eq!(world.revoke_with(&team.bob, &index, &document).status, 202);
    let page = open(&world.server, &format!("/p/{index}"));
    page.says(&["complete release", "A revocation waits for signatures wrong build", "1 of 2 needed bob"]);
    page.says(&[&format!("countersign revoke {index} --server")]);
}

#[test]
fn the_history_shows_every_step_newest_first() {
    let team = Team::new();
    let world = team.world();
    let next = team.file().redated(days_ago(5)).with(
        "artifact_signers",
        json!([{ "threshold": 1, "signers": [named(&team.alice, "alice"), named(&team.bob, "bob")] }]),
    );
    world.rotate("acme/app", &next, &[&team.alice, &team.bob]);
    let target = format!("/p/{}/svc.signers.history.json", world.id("acme/app"));
    let page = open(&world.server, &target);
    page.says(&[
        "2 signers files have been in force",
        "in force What changed",
        "carol",
        "leaves, and was artifact signer",
    ]);
    page.says(&["What it says artifact signers: any 2 of 3 keys: alice", "Who agreed alice"]);
    assert!(page.words.find("Step 2").unwrap() < page.words.find("Step 1").unwrap());
    page.says(&[&format!("countersign chain {} --server", world.id("acme/app"))]);
}

#[test]
fn a_release_signed_under_former_signers_says_so() {
    let team = Team::new();
    let world = team.world();
    let index = world.add_signed_release("acme/app/1.0", &[&team.alice, &team.bob]);
    open(&world.server, &format!("/p/{index}")).lacks(&["have changed since"]);
    world.rotate("acme/app", &team.file().redated(days_ago(5)), &[&team.alice, &team.bob]);
    open(&world.server, &format!("/p/{index}"))
        .says(&["The signers of the project have changed since", "2 of 2 needed"]);
}

#[test]
fn releases_come_highest_version_first_fifty_a_page() {
    let team = Team::new();
    let world = World::with_project(&SignersFile::of(1, &[&team.alice]), &[&team.alice]);
    for version in 1..=51 {
        world.add_release(&team.alice, &format!("acme/app/v1.{version}"));
    }
    let project = format!("/p/{}", world.id("acme/app"));
    let place =
        |page: &crate::support::html::Html, version: &str| page.words.find(&format!(" {version} collecting"));
    let first = open(&world.server, &project);
    assert!(place(&first, "v1.51").unwrap() < place(&first, "v1.50").unwrap());
    assert!(place(&first, "v1.10").unwrap() < place(&first, "v1.9").unwrap());
    assert_eq!(place(&first, "v1.1"), None);
    first.says(&["51 collecting", "Next"]).links_to(&format!("{project}?page=2"));
    let second = open(&world.server, &format!("{project}?page=2"));
    assert!(place(&second, "v1.1").is_some() && place(&second, "v1.2").is_none());
    second.says(&["51 collecting", "Previous"]).lacks(&["Artifact signers"]);
    for page in ["3", "0", "x", "-1", "18446744073709551616"] {
        assert_eq!(visit(&world.server, &format!("{project}?page={page}")).status, 404, "{page}");
    }
}

#[test]
fn a_release_that_cannot_be_read_hides_no_other() {
    let alice = Person::named("alice");
    let mut world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let broken = world.add_release(&alice, "acme/app/1.0");
    world.add_signed_release("acme/app/2.0", &[&alice]);
    world.server.stop();
    world.git().commit_file(&format!("{broken}.signatures.json.pending"), b"not json");
    world.server.start_again();
    let page = open(&world.server, &format!("/p/{}", world.id("acme/app")));
    page.says(&["1.0 collecting cannot be read", "2.0 complete 1 of 1 needed"]);
    let page = visit(&world.server, &format!("/p/{broken}"));
    assert_eq!(page.status, 500);
    page.says(&["Something went wrong"]);
}
