//! Pages beside files, forges and programs. What each page says is in `scenarios/pages.txt`.

use countersign_forge::{file_server::FileServers, forges::Forges, url::SourceUrl};

use crate::support::fake_forge::{Asset, ForgeWorld, Kind};
use crate::support::html::{Html, open, visit};
use crate::support::{Request, SignersFile, TestServer, World, alice, client::Computer};
use crate::support::{waiting::wait_until, witnesses::start_witnessed};

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
fn a_release_says_as_of_when_how_many_witnesses_saw_it_not_revoked() {
    let alice = alice();
    let (world, mut witness) = start_witnessed();
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let address = format!("/p/{}", world.add_signed_release("acme/app/1.0", &[&alice]));
    let words = || open(&world.server, &address).words;
    wait_until("the page names the witness", || words().contains(" UTC, by 1 of 1 witness."));
    assert!(words().contains("Not revoked as of "), "{}", words());
    // A release that is completed while the witness is away has no proof.
    witness.server.stop();
    let address = format!("/p/{}", world.add_signed_release("acme/app/2.0", &[&alice]));
    open(&world.server, &address).says(&["no proof by witnesses yet that it is not revoked"]);
    let old = format!("/p/{}", world.index_path("acme/app/1.0"));
    open(&world.server, &old).says(&["Not revoked as of ", "The newest release is 2.0."]);
}

#[test]
fn sizes_are_shown_where_they_are_known_and_rounded() {
    let forge = ForgeWorld::with_project(Kind::GitHub);
    let assets = [("a", 999), ("b", 1_000), ("c", 99_950), ("d", 1), ("e", 0)];
    let assets = assets.map(|(name, length)| Asset::new(name, vec![7; length]));
    forge.register_release(&forge.forge.put_release("acme/app", "v1.0", &assets)).ok();
    let page = open(&forge.world.server, &format!("/p/{}", forge.forge.index_path("acme/app", "v1.0")));
    page.says(&[
        "File Size Digest", " a 999 bytes sha256:", " b 1.0 kB", " c 100.0 kB", " d 1 byte ", " e 0 bytes",
    ]);
    page.says(&["v1.0 collecting", "Whole digests, SHA-512"]);
}

#[test]
fn a_release_that_cannot_be_read_hides_no_other() {
    let alice = alice();
    let mut world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let broken = world.add_release(&alice, "acme/app/1.0");
    world.add_signed_release("acme/app/2.0", &[&alice]);
    world.server.stop();
    world.git().commit_file(&format!("{broken}.signatures.json.pending"), b"not json");
    world.server.start_again();
    let page = open(&world.server, &format!("/p/{}", world.id("acme/app")));
    page.says(&["1.0 collecting cannot be read", "2.0 complete has 1 of 1"]);
    let page = visit(&world.server, &format!("/p/{broken}"));
    assert_eq!(page.status, 500);
    page.says(&["Something went wrong"]);
}

#[test]
fn a_page_loads_its_style_its_icon_and_its_scripts_from_here_and_they_are_small() {
    let server = TestServer::start();
    let page = open(&server, "/");
    let loaded: Vec<&String> = page.links.iter().filter(|link| link.starts_with("/assets/")).collect();
    assert_eq!(loaded.len(), 3, "{loaded:?}");
    for (target, kind) in
        loaded.into_iter().zip(["text/css; charset=utf-8", "image/svg+xml", "text/javascript; charset=utf-8"])
    {
        let reply = server.get(target);
        assert_eq!((reply.status, reply.header("content-type")), (200, Some(kind)), "{target}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert!(reply.header("cache-control").unwrap().starts_with("max-age="));
        assert!(!reply.text().contains("url(") && !reply.text().contains("@import"), "{target}");
    }
    assert_eq!(server.get("/favicon.ico").status, 200);
    let script = server.get("/assets/page.mjs").text();
    assert!(script.len() < 3_000 && !script.contains("fetch") && !script.contains("innerHTML"), "{script}");
    // The page that verifies files has more of them.
    let (mut bytes, mut wanted, mut seen) = (0, vec!["/assets/verify/page.mjs".to_owned()], Vec::new());
    while let Some(path) = wanted.pop() {
        if seen.contains(&path) {
            continue;
        }
        let reply = server.send(&Request::get(&path));
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.header("content-type"), Some("text/javascript; charset=utf-8"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        // Modules of two versions do not belong together.
        assert_eq!(reply.header("cache-control"), Some("no-cache"));
        let text = reply.text();
        assert!(
            !text.contains("innerHTML") && !text.contains("http://") && !text.contains("https://"),
            "{path}"
        );
        bytes += text.len();
        let imports = text.match_indices("from \"./").map(|(at, found)| &text[at + found.len()..]);
        let names = imports.map(|rest| rest.split('"').next().unwrap());
        wanted.extend(names.map(|name| format!("/assets/verify/{name}")));
        seen.push(path);
    }
    assert!(seen.len() > 1 && bytes < 68_000, "{bytes} bytes in {seen:?}");
}
