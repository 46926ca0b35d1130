//! The activity page a page at a time, and feeds of it. What it says is in `scenarios/activity.txt`.

use crate::support::{SignersFile, World, alice, bob, html::open};

#[test]
fn longer_activity_has_pages_that_new_changes_do_not_shift() {
    let alice = alice();
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    for release in 0..55 {
        world.add_release(&alice, &format!("acme/app/{release}"));
    }
    let first = open(&world.server, "/activity");
    first.says(&["acme/app 54 ", "acme/app 5 ", "Older"]).lacks(&["acme/app 4 ", "beginning"]);
    let older = first.links.iter().find(|link| link.contains("?before=")).unwrap().clone();
    world.add_release(&alice, "acme/app/new");
    let second = open(&world.server, &older);
    second
        .says(&["acme/app 4 ", "acme/app 0 ", "Newest", "beginning"])
        .lacks(&["acme/app 5 ", "acme/app new"]);
    let feed = world.server.get("/activity.atom").text();
    assert_eq!(feed.matches("<entry>").count(), 50, "no more than on a page");
}

/// The text of each element of this name, in order, without its markup.
fn elements<'a>(feed: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    feed.split(&open).skip(1).map(|rest| rest.split(&close).next().unwrap()).collect()
}

#[test]
fn feeds_are_atom_and_stay_the_same() {
    let (alice, bob) = (alice(), bob());
    let mut world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_signed_release("acme/app/1.0", &[&alice]);
    world.revoke(&alice, &index).ok();
    world.register(&bob, "widgets/tool", &SignersFile::of(1, &[&bob])).ok();
    let read = |world: &World, target: &str| {
        let reply = world.server.get(target);
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some("application/atom+xml; charset=utf-8"))
        );
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert!(reply.header("etag").is_some());
        reply.text()
    };
    let feed = read(&world, "/activity.atom");
    assert!(feed.starts_with(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\""
    ));
    let entries = feed.matches("<entry>").count();
    // Each entry, and the feed, has an id, a title and a time of its own.
    let ids = elements(&feed, "id");
    assert_eq!(ids.len(), entries + 1);
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), entries + 1);
    assert!(ids.iter().all(|id| id.starts_with("urn:uuid:") && id.len() == 45), "{ids:?}");
    assert_eq!(
        (elements(&feed, "title").len(), elements(&feed, "updated").len()),
        (entries + 1, entries + 1)
    );
    assert!(elements(&feed, "title")[2].starts_with("revoked: "), "{feed}");
    assert!(feed.contains(
        "<link rel=\"self\" type=\"application/atom+xml\" href=\"http://localhost/activity.atom\">"
    ));
    assert!(feed.contains(&format!("href=\"http://localhost/p/{index}\"")), "{feed}");
    let project = format!("/p/{}/svc.activity.atom", world.id("acme/app"));
    let own = read(&world, &project);
    assert!(!own.contains("widgets") && own.matches("<entry>").count() < entries, "{own}");
    assert_eq!(read(&world, "/activity.atom?type=revoked").matches("<entry>").count(), 1);
    world.server.restart();
    assert_eq!(elements(&read(&world, "/activity.atom"), "id"), ids);
    let empty = World::start();
    assert_eq!(elements(&read(&empty, "/activity.atom"), "updated"), ["1970-01-01T00:00:00Z"]);
}
