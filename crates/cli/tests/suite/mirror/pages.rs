//! Pages of a mirror say what it is, and send people who change something to the origin.

use crate::support::mirrors::{await_same, start_mirror, start_origin, url_of};
use crate::support::{Person, Request, SignersFile};

#[test]
fn pages_name_the_origin_and_commands_that_change_something_ask_it() {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let world = start_origin();
    world.activate("acme/app", &SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let index = world.add_release(&alice, "acme/app/1.0");
    let mirror = start_mirror(&url_of(&world.server));
    await_same(&mirror, &world.server);
    let origin = url_of(&world.server);
    let page = |target: &str| {
        let request = Request::get(target).with_header("accept", "text/html");
        // The name of an option stays in one piece on narrow screens.
        mirror.send(&request).text().replace("<span class=\"together\">--server</span>", "--server")
    };
    let link = format!("This is a mirror of <a href=\"{origin}\">{origin}</a>");
    for target in ["/", "/projects", "/verify", "/docs", &format!("/p/{index}"), "/p/nothing", "/nowhere"] {
        assert!(page(target).contains(&link), "{target}: {}", page(target));
    }
    let release = page(&format!("/p/{index}"));
    assert!(release.contains(&format!("countersign sign {index} --server {origin}")), "{release}");
    let landing = page("/");
    let register = format!(
        "countersign register https://github.com/acme/app/blob/main/svc.signers.json --server {origin}"
    );
    assert!(landing.contains(&register), "{landing}");
    assert!(
        landing.contains("app.tar.gz --server http://localhost"),
        "downloads go to the mirror: {landing}"
    );
    let own = world.server.send(&Request::get("/").with_header("accept", "text/html")).text();
    assert!(!own.contains("is a mirror"), "{own}");
}
