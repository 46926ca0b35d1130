//! The activity page: what the commits tell, newest first.

use crate::support::{Person, SignersFile, World, html::Html, html::open, html::short_key, html::visit};

/// A project with a release that was signed and revoked, and another project.
fn lively() -> (World, Person, String) {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_signed_release("acme/app/1.0", &[&alice]);
    world.revoke(&alice, &index).ok();
    world.register(&Person::named("bob"), "widgets/tool", &SignersFile::of(1, &[&Person::named("bob")])).ok();
    (world, alice, index)
}

#[track_caller]
fn assert_in_order(page: &Html, parts: &[&str]) {
    let mut rest = page.words.as_str();
    for part in parts {
        let at =
            rest.find(part).unwrap_or_else(|| panic!("{part:?} is not behind the others in: {}", page.words));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn the_newest_comes_first_with_whose_it_was() {
    let (world, alice, index) = lively();
    let page = open(&world.server, "/activity");
    let release = world.files.url("/acme/app 1.0");
    assert_in_order(
        &page,
        &[
            "UTC registered signers of",
            "widgets/tool by",
            &format!("revoked {release} by {}", short_key(&alice)),
            &format!("complete {release} "),
            &format!("signed {release}"),
            &format!("release added {release}"),
            "signers in force signers of",
            "signed signers of",
            "registered signers of",
            "This goes back to the beginning of this server.",
        ],
    );
    page.links_to(&format!("/p/{index}")).links_to(&format!("/p/{}", world.id("widgets/tool")));
}

#[test]
fn the_activity_of_a_path_is_what_happened_at_or_below_it() {
    let (world, _, index) = lively();
    let of = |path: &str| open(&world.server, &format!("/p/{path}/svc.activity"));
    of(&world.id("acme/app")).says(&["revoked", "signers in force"]).lacks(&["widgets"]);
    of(&world.id("acme")).says(&["revoked", "signers in force"]).lacks(&["widgets"]);
    of(&index).says(&["revoked", "release added"]).lacks(&["UTC signers in force", "svc.index.json"]);
    assert_eq!(visit(&world.server, &format!("/p/{}/svc.activity", world.id("nothing"))).status, 404);
}

#[test]
fn longer_activity_has_pages_that_new_changes_do_not_shift() {
    let alice = Person::named("alice");
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
    for before in ["x", &"0".repeat(40), &"f".repeat(41)] {
        assert_eq!(visit(&world.server, &format!("/activity?before={before}")).status, 404, "{before}");
    }
}

#[test]
fn activity_from_before_a_restart_is_still_shown() {
    let (mut world, _, _) = lively();
    let before = open(&world.server, "/activity").words;
    world.server.restart();
    assert_eq!(open(&world.server, "/activity").words, before);
}

#[test]
fn activity_is_grouped_by_day_and_filtered_by_project_kind_and_key() {
    let (world, alice, _) = lively();
    let today = open(&world.server, "/activity");
    let headings = today.text.matches("<h2>").count();
    assert!((1..=2).contains(&headings), "one day, or two around midnight: {headings}");
    let key = alice.key().replace('+', "%2B").replace('/', "%2F");
    let by_kind = open(&world.server, "/activity?type=revoked");
    by_kind.says(&["UTC revoked http"]).lacks(&["UTC registered", "widgets", "UTC signed"]);
    let by_key = open(&world.server, &format!("/activity?key={key}"));
    by_key.says(&["revoked http", "signed http"]).lacks(&["widgets/tool by"]);
    let project = world.id("acme/app");
    for given in [world.files.url("/acme/app"), project.clone(), "acme/app".to_owned(), "app".to_owned()] {
        let reply =
            world.server.get(&format!("/activity?type=signature&project={}", given.replace(':', "%3A")));
        let expected = format!("/p/{project}/svc.activity?type=signature");
        assert_eq!((reply.status, reply.header("location")), (307, Some(&*expected)));
    }
    world.activate("widgets/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let several = visit(&world.server, "/activity?project=app");
    assert_eq!(several.status, 404);
    several.says(&["Several projects have this name: ", "widgets/app"]);
    let in_address = alice.key().replace('+', "-").replace('/', "_");
    let by_address = open(&world.server, &format!("/activity?type=revoked&key={in_address}"));
    by_address.says(&["revoked http"]);
    let both = open(&world.server, &format!("/p/{project}/svc.activity?type=signature&key={key}"));
    both.says(&["signed 1.0 by"]).lacks(&["revoked 1.0", "complete 1.0"]);
    for query in ["type=odd", "key=odd", "project=a/../b"] {
        assert_eq!(visit(&world.server, &format!("/activity?{query}")).status, 404, "{query}");
    }
}

/// The text of each element of this name, in order, without its markup.
fn elements<'a>(feed: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    feed.split(&open).skip(1).map(|rest| rest.split(&close).next().unwrap()).collect()
}

#[test]
fn feeds_are_atom_and_stay_the_same() {
    let (mut world, _, index) = lively();
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
    assert_eq!(world.server.get("/activity.atom?type=odd").status, 404);
    world.server.restart();
    assert_eq!(elements(&read(&world, "/activity.atom"), "id"), ids);
    let empty = World::start();
    assert_eq!(elements(&read(&empty, "/activity.atom"), "updated"), ["1970-01-01T00:00:00Z"]);
}

#[test]
fn a_feed_has_no_more_entries_than_a_page() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    for release in 0..51 {
        world.add_release(&alice, &format!("acme/app/{release}"));
    }
    assert_eq!(world.server.get("/activity.atom").text().matches("<entry>").count(), 50);
}
