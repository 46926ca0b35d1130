//! Every list on a page ends at its bound (docs/bounds.md), and the next page has the rest.

use countersign_core::values::bounds::{FIRST_PAGE_RELEASES, PAGE_FILES, PAGE_ROWS, PAGE_STEPS};

use crate::support::{Person, SignersFile, World, days_ago, html::Html, html::open, html::visit};

fn alice() -> (World, Person) {
    let alice = Person::named("alice");
    (World::with_project(&SignersFile::dated(days_ago(100)).artifact(1, &[&alice]), &[&alice]), alice)
}

/// Fails unless the list has `most` rows on its first page, one on its second, and no third page.
#[track_caller]
fn assert_two_pages(world: &World, target: &str, most: usize, count: impl Fn(&Html) -> usize) {
    let page = |number: usize| format!("{target}?page={number}");
    assert_eq!(count(&open(&world.server, target)), most, "{target}");
    assert_eq!(count(&open(&world.server, &page(2))), 1, "{target}");
    assert_eq!(visit(&world.server, &page(3)).status, 404, "{target}");
}

fn count_rows(page: &Html) -> usize {
    page.text.matches("role=\"rowheader\"").count()
}

#[test]
fn projects_releases_files_and_steps_of_a_history_come_a_page_at_a_time() {
    let (world, alice) = alice();
    for number in 0..PAGE_ROWS {
        world.register(&alice, &format!("acme/p{number}"), &SignersFile::of(1, &[&alice])).ok();
    }
    let count = |page: &Html| page.text.matches("<a class=\"title wrap\"").count();
    assert_two_pages(&world, "/projects", PAGE_ROWS, count);
    assert_two_pages(&world, &format!("/p/{}", world.id("acme")), PAGE_ROWS, count);

    // The first page has a few of the releases.
    for number in 0..=PAGE_ROWS {
        world.add_release(&alice, &format!("acme/app/{number}"));
    }
    assert_two_pages(&world, &format!("/p/{}", world.id("acme/app")), PAGE_ROWS, count_rows);
    assert_eq!(count_rows(&open(&world.server, "/")), FIRST_PAGE_RELEASES);

    let lines: String =
        (0..=PAGE_FILES).map(|number| format!("{}  file{number:04}\n", "a".repeat(64))).collect();
    let url = world.publish_checksums("acme/app/files", &lines);
    world.register_assets(&alice, &[&url]).ok();
    assert_two_pages(&world, &format!("/p/{}", world.index_path("acme/app/files")), PAGE_FILES, count_rows);

    for step in 0..PAGE_STEPS {
        let dated = days_ago(99 - i64::try_from(step).unwrap());
        world.rotate("acme/app", &SignersFile::dated(dated).artifact(1, &[&alice]), &[&alice]);
    }
    let history = format!("/p/{}/svc.signers.history.json", world.id("acme/app"));
    assert_two_pages(&world, &history, PAGE_STEPS, |page| page.text.matches("<li id=\"step-").count());
}
