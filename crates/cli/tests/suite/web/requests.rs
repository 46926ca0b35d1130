//! How pages are asked for: addresses, versions, errors, and what comes along with them.

use crate::support::{Person, Request, SignersFile, TestServer, World, html::open, html::visit};

fn acme() -> (World, Person) {
    let alice = Person::named("alice");
    (World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]), alice)
}

fn conditional(world: &World, target: &str, tag: &str) -> u16 {
    world.server.send(&Request::get(target).with_header("if-none-match", tag)).status
}

#[test]
fn a_page_that_the_visitor_has_is_not_sent_again_until_something_changes() {
    let (world, alice) = acme();
    for target in ["/".to_owned(), format!("/p/{}", world.id("acme/app"))] {
        let reply = world.server.get(&target);
        let tag = reply.header("etag").expect("a tag").to_owned();
        assert_eq!(conditional(&world, &target, &tag), 304);
        assert_eq!(conditional(&world, &target, &format!("\"x\", W/{tag}")), 304);
        let elsewhere = Request::get(&target)
            .with_header("if-none-match", &tag)
            .with_header("x-forwarded-proto", "https");
        assert_eq!(world.server.send(&elsewhere).status, 200, "it shows another address of the server");
        world.add_release(&alice, &format!("acme/app/{}", target.len()));
        assert_eq!(conditional(&world, &target, &tag), 200);
    }
    assert_eq!(conditional(&world, "/p/nowhere", "*"), 404);
}

#[test]
fn head_answers_without_a_body() {
    let (world, _) = acme();
    let project = format!("/p/{}", world.id("acme/app"));
    let badge = format!("/badge/{}.svg", world.id("acme/app"));
    for target in [
        "/",
        "/projects",
        &project,
        &badge,
        "/activity.atom",
        "/assets/style.css",
        "/assets/preview.png",
        "/favicon.ico",
    ] {
        let reply = world.server.send(&Request::head(target));
        assert_eq!((reply.status, reply.body.len()), (200, 0), "{target}");
        assert_eq!(reply.header("etag"), world.server.get(target).header("etag"), "{target}");
    }
    assert_eq!(world.server.send(&Request::head("/p/nowhere")).status, 404);
}

#[test]
fn programs_are_told_errors_in_json_and_browsers_on_a_page() {
    let server = TestServer::start();
    for (target, status) in
        [("/p/nowhere", 404), ("/projects?page=9", 404), ("/p/a/../b", 400), ("/nowhere", 404)]
    {
        server.get(target).error(status);
        let accepting = Request::get(target).with_header("accept", "application/json, */*");
        server.send(&accepting).error(status);
        let page = visit(&server, target);
        assert_eq!(page.status, status);
        page.says(&["Search with the field above"]).links_to("/projects");
    }
    // The API speaks JSON to everyone.
    server.send(&Request::get("/v1/nothing").with_header("accept", "text/html")).error(404);
    server.send(&Request::post("/", &serde_json::json!({}))).error(405);
}

#[test]
fn other_spellings_of_an_address_lead_to_the_one() {
    let (world, alice) = acme();
    let index = world.add_release(&alice, "acme/app/1.0");
    let project = world.id("acme/app");
    let port = world.files.port();
    for (from, to) in [
        (format!("{project}/1.0"), index.clone()),
        (format!("{project}/1.0/"), format!("{project}/1.0")),
        (format!("{project}/svc.signers/svc.signers.json"), project.clone()),
        (format!("{project}/svc.signers"), project.clone()),
        (format!("{project}/"), project.clone()),
        (format!("HTTP/127.0.0.1/{port}/acme/app"), project.clone()),
    ] {
        let reply = world.server.get(&format!("/p/{from}"));
        assert_eq!((reply.status, reply.header("location")), (307, Some(&*format!("/p/{to}"))), "{from}");
    }
    let missing = visit(&world.server, &format!("/p/{project}/9.9/svc.index.json"));
    assert_eq!(missing.status, 404);
    missing.says(&["Nothing is stored at"]).links_to(&format!("/p/{project}"));
    let other_case = visit(&world.server, &format!("/p/{}", project.replace("acme", "ACME")));
    assert_eq!(other_case.status, 404);
    other_case.links_to(&format!("/p/{project}"));
}

#[test]
fn a_page_loads_its_style_its_icon_and_its_script_and_nothing_else() {
    let (world, _) = acme();
    let page = open(&world.server, "/");
    let loaded: Vec<&String> = page.links.iter().filter(|link| link.starts_with("/assets/")).collect();
    assert_eq!(loaded.len(), 3, "{loaded:?}");
    for (target, kind) in
        loaded.into_iter().zip(["text/css; charset=utf-8", "image/svg+xml", "text/javascript; charset=utf-8"])
    {
        let reply = world.server.get(target);
        assert_eq!((reply.status, reply.header("content-type")), (200, Some(kind)), "{target}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert!(reply.header("cache-control").unwrap().starts_with("max-age="));
        assert!(!reply.text().contains("url(") && !reply.text().contains("@import"), "{target}");
    }
    assert_eq!(world.server.get("/favicon.ico").status, 200);
    let script = world.server.get("/assets/page.mjs").text();
    assert!(script.len() < 3_000 && !script.contains("fetch") && !script.contains("innerHTML"), "{script}");
}

#[test]
fn other_sites_can_show_a_preview() {
    let (world, _) = acme();
    let page = open(&world.server, &format!("/p/{}", world.id("acme/app")));
    let meta = |name: &str| {
        let at = format!("<meta property=\"og:{name}\" content=\"");
        page.text
            .split_once(&at)
            .unwrap_or_else(|| panic!("no {name}"))
            .1
            .split('"')
            .next()
            .unwrap()
            .to_owned()
    };
    assert!(meta("title").ends_with("/acme/app"), "{}", meta("title"));
    assert!(meta("description").starts_with("Signed releases of "));
    assert_eq!(meta("image"), "http://localhost/assets/preview.png");
    assert_eq!(meta("url"), format!("http://localhost/p/{}", world.id("acme/app")));
    let picture = world.server.get("/assets/preview.png");
    assert_eq!(picture.header("content-type"), Some("image/png"));
    assert!(picture.body.starts_with(b"\x89PNG\r\n\x1a\n"));
}
