//! The activity page: what the commits tell, newest first.

use crate::support::{
    Person, SignersFile, World,
    html::{Html, open, visit},
};

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
    let release = world.files.url("/acme/app/1.0");
    assert_in_order(
        &page,
        &[
            "registered signers of",
            "widgets/tool by",
            &format!("revoked {release} by {}", alice.key()),
            &format!("complete {release}"),
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
    of(&index).says(&["revoked", "release added"]).lacks(&["signers in force"]);
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
    first.says(&["acme/app/54 ", "acme/app/5 ", "Older"]).lacks(&["acme/app/4 ", "beginning"]);
    let older = first.links.iter().find(|link| link.contains("?before=")).unwrap().clone();
    world.add_release(&alice, "acme/app/new");
    let second = open(&world.server, &older);
    second
        .says(&["acme/app/4 ", "acme/app/0 ", "Newest", "beginning"])
        .lacks(&["acme/app/5 ", "acme/app/new"]);
    for before in ["x", "", &"0".repeat(40), &"f".repeat(41)] {
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
