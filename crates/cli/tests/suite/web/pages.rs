//! What each page shows, and where it leads.

use countersign_forge::{file_server::FileServers, forges::Forges, url::SourceUrl};

use super::team::Team;
use crate::support::fake_forge::{Asset, ForgeWorld, Kind};
use crate::support::html::{Html, key_page, open, short_key, visit};
use crate::support::{Person, SignersFile, World, client::Computer, days_ago};

/// Each command of a page, without the name of the program.
fn commands(page: &Html) -> Vec<Vec<String>> {
    let text = page.text.replace("<span class=\"together\">", "").replace("</span>", "");
    let codes = text.split("countersign ").skip(1).map(|rest| rest.split('<').next().unwrap());
    codes.map(|code| code.split(' ').map(ToOwned::to_owned).collect()).collect()
}

#[test]
fn the_commands_of_the_first_page_work_when_they_are_pasted() {
    let world = World::start();
    let computer = Computer::of(&world.server);
    let run = |args: &[String], more: &[&str]| {
        let args: Vec<&str> = args.iter().map(String::as_str).chain(more.iter().copied()).collect();
        computer.run(&args)
    };
    let commands = commands(&open(&world.server, "/"));
    let find =
        |verb: &str| commands.iter().find(|words| words[0] == verb).unwrap_or_else(|| panic!("{verb}"));
    run(find("keygen"), &["--no-password"]).ok();
    computer.run(&["keygen", "--out", "bob", "--no-password"]).ok();
    run(find("signers"), &[]).ok();
    assert!(computer.listing().contains(&"svc.signers.json".to_owned()), "{:?}", computer.listing());
    let [_, address, options @ ..] = &find("register")[..] else { panic!("no address: {commands:?}") };
    let address = SourceUrl::parse(address).unwrap();
    let located = Forges::new(Vec::new()).unwrap().locate_signers(&address, &FileServers::default()).unwrap();
    assert_eq!(located.project.as_str(), "https/github.com/443/acme/app");
    let [server, _, key, name] = options else { panic!("{options:?}") };
    assert_eq!([&**server, key, name], ["--server", "--key", "alice"]);
}

#[test]
fn an_empty_server_says_how_to_begin() {
    let world = World::start();
    open(&world.server, "/").says(&[
        "0 projects",
        "There are no releases yet",
        "countersign register https://",
    ]);
    open(&world.server, "/projects").says(&["0 projects", "countersign register URL"]);
}

#[test]
fn the_first_page_says_what_this_is_and_shows_recent_releases() {
    let team = Team::new();
    let world = team.world();
    for release in 0..12 {
        world.add_release(&team.alice, &format!("acme/app/1.{release}"));
    }
    world.add_signed_release("acme/app/0.9", &[&team.alice, &team.bob]);
    let page = open(&world.server, "/");
    page.says(&[
        "Releases that one stolen key cannot forge",
        "Drop the file",
        "countersign download https://",
        "countersign keygen",
        "acme/app 0.9 complete 2 of 2 signatures",
        "acme/app 1.11 collecting 0 of 2 signatures none yet",
        "All 1 project · 12 files waiting for signatures",
    ]);
    page.lacks(&["acme/app 1.2 "]).links_to("/verify").links_to("/activity.atom").links_to("/projects");
    page.links_to(&format!("/p/{}", world.index_path("acme/app/0.9")));
    // Searches have an address of their own.
    for (from, to) in [("/?q=acme", "/projects?q=acme"), ("/?page=2", "/projects?page=2")] {
        let reply = world.server.get(from);
        assert_eq!((reply.status, reply.header("location")), (307, Some(to)));
    }
}

#[test]
fn the_list_of_projects_counts_their_releases_and_is_searched() {
    let team = Team::new();
    let world = team.world();
    world.add_signed_release("acme/app/1.0", &[&team.alice, &team.bob]);
    world.add_release(&team.alice, "acme/app/1.1");
    world.activate("widgets/tool", &SignersFile::of(1, &[&team.alice]), &[&team.alice]);
    world.register(&team.bob, "widgets/new", &team.file()).ok();
    let all = open(&world.server, "/projects");
    all.says(&[
        "3 projects, 2 files waiting for signatures",
        "1 complete 1 collecting",
        "no releases",
        "registering",
    ]);
    for project in ["acme/app", "widgets/tool", "widgets/new"] {
        all.links_to(&format!("/p/{}", world.id(project)));
    }
    let found = open(&world.server, "/projects?q=ACME");
    found.says(&["1 project found for", "acme/app"]).lacks(&["widgets"]);
    open(&world.server, "/projects?q=widgets+tool").says(&["widgets/tool"]).lacks(&["widgets/new"]);
    open(&world.server, "/projects?q=nothing+here").says(&["0 projects found"]);
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
        "A release needs any 2 of 3 keys.",
        "Artifact signers any 2 of 3 keys A alice",
        "Admins any 1 of 1 key A alice",
        "No masters: only the admins can change the signers.",
        "Revokers any 1 of 1 key C carol",
        &short_key(&team.alice),
        "This project has no releases here yet",
        "Trust starts from this signers file sha512:",
    ]);
    let file = world.server.get(&format!("/v1/files/{id}/svc.signers/svc.signers.json"));
    page.says(&[&countersign_core::values::digest::Sha512::of(&file.body).to_prefixed()]);
    page.links_to(&key_page(&team.alice)).links_to(&format!("/p/{id}/svc.activity.atom"));
    page.links_to(&format!("/p/{id}/svc.signers.history.json"));
    page.links_to(&format!("/p/{id}/svc.activity"));
    page.links_to(&format!("/v1/files/{id}/svc.signers/svc.signers.json"));
}

#[test]
fn a_release_shows_files_digests_progress_and_commands() {
    let team = Team::new();
    let world = team.world();
    let index = world.add_release(&team.alice, "acme/app/1.0");
    let page = open(&world.server, &format!("/p/{index}"));
    page.says(&[
        "1.0 collecting",
        "0 of 2 signatures so far. Do not use it yet.",
        "0 of 2 signatures any 2 of 3 keys A alice",
        "app.tar.gz",
        "Whole digests, SHA-256",
    ]);
    page.lacks(&["not known", "Size"]);
    // The way there ends with the project, and the name of the file is no part of it.
    page.says(&["acme app 1.0 collecting 0 of 2"]);
    page.says(&[&format!("countersign sign {index} --server http://localhost"), "Too few have signed"]);
    world.sign(&team.alice, &index).ok();
    open(&world.server, &format!("/p/{index}")).says(&[
        "1 of 2 signatures any 2 of 3 keys A alice",
        "signed 20",
        "not yet",
    ]);
    world.sign(&team.carol, &index).ok();
    let page = open(&world.server, &format!("/p/{index}"));
    page.says(&["1.0 complete", "2 of 2 signatures, complete since 20", "not needed", "Completed 20"]);
    let url = world.files.url("/acme/app/1.0/app.tar.gz");
    page.says(&[&format!("countersign download {url} --server http://localhost")])
        .lacks(&["countersign sign "]);
    page.links_to(&url).links_to(&format!("/verify?path={index}")).links_to(&format!("/v1/files/{index}"));
    page.links_to(&format!("/p/{}", world.id("acme/app")));
    let digest = &world.read_json(&index)["published_files"][0]["digests"]["sha256"];
    page.says(&[digest.as_str().unwrap()]);
}

#[test]
fn sizes_are_shown_where_they_are_known_and_rounded() {
    let forge = ForgeWorld::with_project(Kind::GitHub);
    let assets = [("a", 999), ("b", 1_000), ("c", 99_950), ("d", 1), ("e", 0)];
    let assets = assets.map(|(name, length)| Asset::new(name, vec![7; length]));
    forge.register_release(&forge.forge.put_release("acme/app", "v1.0", &assets)).ok();
    let page = open(&forge.world.server, &format!("/p/{}", forge.forge.index_path("acme/app", "v1.0")));
    page.says(&[
        "File Size Digest",
        " a 999 bytes sha256:",
        " b 1.0 kB",
        " c 100.0 kB",
        " d 1 byte ",
        " e 0 bytes",
    ]);
    page.says(&["v1.0 collecting", "Whole digests, SHA-512"]);
}

#[test]
fn a_revoked_release_says_so_first_with_reason_time_and_who() {
    let team = Team::new();
    let world = team.world();
    let index = world.add_signed_release("acme/app/1.0", &[&team.alice, &team.bob]);
    world.revoke(&team.carol, &index).ok();
    let page = open(&world.server, &format!("/p/{index}"));
    page.says(&[
        "Revoked: do not use this release key leaked",
        "Signed by: C carol",
        &short_key(&team.carol),
    ]);
    assert!(page.text.contains("<title>Revoked: 1.0 of "), "{}", page.text);
    page.lacks(&["countersign download http", "Download and check"]);
    let elsewhere = |link: &&String| link.starts_with("http");
    assert_eq!(page.links.iter().find(elsewhere), None, "nothing leads to the files");
    open(&world.server, &format!("/p/{}", world.id("acme/app"))).says(&["Revoked 1", "1.0 revoked"]);
    open(&world.server, "/projects").says(&["1 revoked"]);
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
    page.says(&[
        "1.0 complete revocation begun",
        "A revocation waits for signatures wrong build 1 of 2 signatures any 2 of 2 keys B bob",
    ]);
    page.says(&[&format!("countersign revoke {index} --server")]);
    assert!(page.text.contains("<title>Revocation begun: 1.0 of "), "{}", page.text);
    let verify = world.server.get(&format!("/verify?path={index}")).text();
    assert!(
        verify.contains("A revocation waits for signatures") && verify.contains("wrong build"),
        "{verify}"
    );
    // It comes first on every page, and the release is no longer offered as the newest.
    world.add_signed_release("acme/app/2.0", &[&team.alice, &team.bob]);
    let project = open(&world.server, &format!("/p/{}", world.id("acme/app")));
    project
        .says(&["A revocation of 1.0 waits for signatures 1 of 2 signatures", "Newest release 2.0 complete"]);
    project.says(&["Last signature 1.0 revocation begun 1 of 2 signatures"]);
    open(&world.server, "/").says(&["acme/app 1.0 revocation begun 1 of 2 signatures"]);
    world.activate("aaa/first", &team.file(), &team.everyone());
    let projects = open(&world.server, "/projects");
    projects.says(&["1 revocation begun 2 complete"]);
    let at = |name: &str| projects.text.find(&format!("{name}</bdi>")).expect(name);
    assert!(at("acme/app") < at("aaa/first"), "the one with the revocation comes first");
    open(&world.server, &key_page(&team.carol))
        .says(&["Waits for this key", "acme/app 1.0 revocation begun"]);
    open(&world.server, &key_page(&team.bob)).says(&["Revocations that it signed, and that wait for others"]);
}

#[test]
fn a_release_signed_under_former_signers_says_so() {
    let team = Team::new();
    let world = team.world();
    let index = world.add_signed_release("acme/app/1.0", &[&team.alice, &team.bob]);
    open(&world.server, &format!("/p/{index}")).lacks(&["have changed since"]);
    world.rotate("acme/app", &team.file().redated(days_ago(5)), &[&team.alice, &team.bob]);
    open(&world.server, &format!("/p/{index}"))
        .says(&["The signers of the project have changed since", "2 of 2 signatures"]);
}

#[test]
fn releases_come_highest_version_first_a_page_at_a_time() {
    let team = Team::new();
    let world = World::with_project(&SignersFile::of(1, &[&team.alice]), &[&team.alice]);
    for version in 1..=26 {
        world.add_release(&team.alice, &format!("acme/app/v1.{version}"));
    }
    let project = format!("/p/{}", world.id("acme/app"));
    let place = |page: &Html, version: &str| page.words.find(&format!(" {version} collecting"));
    let first = open(&world.server, &project);
    assert!(place(&first, "v1.26").unwrap() < place(&first, "v1.25").unwrap());
    assert!(place(&first, "v1.10").unwrap() < place(&first, "v1.9").unwrap());
    assert_eq!(place(&first, "v1.1"), None);
    first.says(&["Collecting 26", "Older"]).links_to(&format!("{project}?page=2"));
    let second = open(&world.server, &format!("{project}?page=2"));
    assert!(place(&second, "v1.1").is_some() && place(&second, "v1.2").is_none());
    second.says(&["Collecting 26", "Newer"]);
    for page in ["3", "0", "x", "-1", "18446744073709551616"] {
        assert_eq!(visit(&world.server, &format!("{project}?page={page}")).status, 404, "{page}");
    }
}

#[test]
fn releases_are_filtered_by_state_and_name() {
    let team = Team::new();
    let world = World::with_project(&SignersFile::of(1, &[&team.alice]), &[&team.alice]);
    for version in 1..=26 {
        world.add_release(&team.alice, &format!("acme/app/v1.{version}"));
    }
    world.add_signed_release("acme/app/v2.0", &[&team.alice]);
    let project = format!("/p/{}", world.id("acme/app"));
    let all = open(&world.server, &project);
    all.says(&["All 27", "Complete 1", "Collecting 26", "Revoked 0", "Newest release v2.0 complete"]);
    all.links_to(&format!("{project}?state=complete"));
    let complete = open(&world.server, &format!("{project}?state=complete"));
    complete.says(&["v2.0 complete"]).lacks(&[" v1.", "Newest release"]);
    open(&world.server, &format!("{project}?state=revoked")).says(&["No release is in this state."]);
    let found = open(&world.server, &format!("{project}?q=V1.2"));
    found.says(&["v1.26 collecting", "v1.2 collecting"]).lacks(&["v1.1 ", "v2.0 complete"]);
    open(&world.server, &format!("{project}?q=nothing")).says(&["No release has nothing in its name."]);
    let kept = open(&world.server, &format!("{project}?state=collecting&q=v1"));
    kept.links_to(&format!("{project}?state=collecting&q=v1&page=2"));
    assert_eq!(visit(&world.server, &format!("{project}?state=odd")).status, 404);
}

#[test]
fn the_page_of_a_key_shows_where_it_is_listed_and_what_it_signed() {
    let team = Team::new();
    let world = team.world();
    for release in 1..=26 {
        world.add_signed_release(&format!("acme/app/1.{release}"), &[&team.alice, &team.bob]);
    }
    world.register(&team.bob, "widgets/new", &team.file()).ok();
    let waits = world.add_release(&team.bob, "acme/app/2.0");
    let address = key_page(&team.alice);
    let page = open(&world.server, &address);
    page.says(&[
        &team.alice.key(),
        "26 releases carry its signature. The newest came 20",
        &format!("acme/app artifact signer alice {}", short_key(&team.alice)),
        "Waits for this key",
        "widgets/new signers 0 of 3 signatures",
        "acme/app 2.0 release 0 of 2 signatures",
        "acme/app 1.26 complete needed 20",
        "These are the last 25.",
    ]);
    page.links_to(&format!("/p/{waits}")).links_to(&format!("/p/{}", world.pending_path("widgets/new")));
    // Other spellings lead there; a key that no one lists has a page, and what is no key has none.
    let spelled = address.replace("svc-pub:", "svc-pub%3A");
    assert_eq!(world.server.get(&spelled).header("location"), Some(&*address));
    let stranger = open(&world.server, &key_page(&Person::named("stranger")));
    stranger.says(&["No signers file in force lists this key"]).lacks(&["Listed in", "Waits for"]);
    for none in ["x", "svc-pub:", "svc-pub:AAAA", "%FF", "%3Cscript%3E"] {
        assert_eq!(visit(&world.server, &format!("/keys/{none}")).status, 404, "{none}");
    }
}

#[test]
fn a_digest_in_the_search_finds_the_releases_that_list_it() {
    let team = Team::new();
    let world = team.world();
    let index = world.add_signed_release("acme/app/1.0", &[&team.alice, &team.bob]);
    let digest =
        world.read_json(&index)["published_files"][0]["digests"]["sha256"].as_str().unwrap().to_owned();
    for spelled in [digest.clone(), format!("sha256:{digest}"), digest.to_uppercase()] {
        let page = open(&world.server, &format!("/projects?q={spelled}"));
        page.says(&["Releases with this file", "acme/app 1.0 app.tar.gz complete"])
            .links_to(&format!("/p/{index}"));
    }
    let none = open(&world.server, &format!("/projects?q={}", "0".repeat(128)));
    none.says(&["No complete or revoked release on this server lists a file with this digest."]);
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
    page.says(&["1.0 collecting cannot be read", "2.0 complete 1 of 1 signature"]);
    let page = visit(&world.server, &format!("/p/{broken}"));
    assert_eq!(page.status, 500);
    page.says(&["Something went wrong"]);
}
