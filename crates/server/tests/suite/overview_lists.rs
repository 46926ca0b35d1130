//! Lists of releases and projects: their order, their pages, and finding something in them.

use std::cmp::Ordering;

use countersign_api::catalogue::compare_versions;
use countersign_core::rules::stored::ReleaseState;
use countersign_server::web::overview::{ListedState, ReleaseCounts, ReleaseEntry, ReleaseList};
use countersign_store::catalogue::ProjectSearch;
use countersign_testing::{path, steady};
use proptest::prelude::*;

#[test]
fn versions_are_in_the_order_that_people_expect() {
    let ordered = [
        "v0.9", "v1.0-alpha", "v1.0-rc1", "v1.0-rc2", "v1.0-rc10", "v1.0", "v1.0-1", "v1.0.1", "v1.2",
        "v1.9", "v1.10", "v2~pre", "v2", "v10", "v2026.1", "v99999999999999999999999", "w1",
    ];
    for pair in ordered.windows(2) {
        assert_eq!(compare_versions(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        assert_eq!(compare_versions(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
    }
    assert_eq!(compare_versions("v1.01", "v1.1"), Ordering::Less, "different names are never equal");
    assert_eq!(compare_versions("v1", "v1"), Ordering::Equal);
}

proptest! {
    #![proptest_config(steady())]

    /// Sorting panics where it is not so.
    #[test]
    fn the_order_has_no_contradictions(names in prop::collection::vec("[a0-2.~/-]{0,5}", 3)) {
        let [a, b, c] = [&names[0], &names[1], &names[2]];
        prop_assert_eq!(compare_versions(a, b), compare_versions(b, a).reverse());
        if compare_versions(a, b).is_le() && compare_versions(b, c).is_le() {
            prop_assert!(compare_versions(a, c).is_le());
        }
        prop_assert_eq!(compare_versions(a, b).is_eq(), a == b);
    }

    #[test]
    fn a_page_is_what_sorting_all_would_give(names in prop::collection::btree_set("[a0-9.-]{1,4}", 0..40), from in 0_usize..45, length in 0_usize..20) {
        let list = list_of(names.iter().map(|name| (name.as_str(), "")));
        let mut all: Vec<&String> = names.iter().collect();
        all.sort_by(|a, b| compare_versions(&format!("p/{b}"), &format!("p/{a}")));
        let expected: Vec<String> = all.into_iter().skip(from).take(length).map(|name| format!("p/{name}")).collect();
        let page: Vec<String> = list.newest(from..from + length).into_iter().map(|entry| entry.dir).collect();
        prop_assert_eq!(page, expected);
    }
}

fn list_of<'a>(releases: impl IntoIterator<Item = (&'a str, &'a str)>) -> ReleaseList {
    let mut list = ReleaseList::below(&path("p"));
    for (dir, ending) in releases {
        for file in ["svc.index.json", "svc.index.json.revocation.json.signatures.json.pending"] {
            list.see(&format!("p/{dir}/{file}"));
        }
        list.see(&format!("p/{dir}/svc.index.json.signatures.json{ending}"));
        list.see(&format!("p/{dir}/svc.index.json.signers.json"));
    }
    list
}

#[test]
fn releases_and_their_states_are_told_by_names_alone() {
    let mut list = list_of([("1", ""), ("2", ".pending"), ("3", ".revoked"), ("4", "")]);
    list.see("p/svc.signers/svc.signers.json");
    list.see("p/5/svc.index.json");
    list.see("svc.repository.json");
    assert_eq!(list.count(), ReleaseCounts { complete: 2, collecting: 1, revoked: 1, revoking: 0 });
    assert_eq!((list.len(), list.count().total()), (4, 4));
    let (dir, state) = ("p/3".to_owned(), ReleaseState::Revoked);
    assert_eq!(list.newest(1..2), [ReleaseEntry { dir, state, is_revoking: false }]);
}

#[test]
fn begun_revocations_come_first_and_lists_are_filtered() {
    let mut list = ReleaseList::below(&path("p"));
    for (dir, has_begun) in [("v1.0", false), ("v1.1", true), ("v1.10", false), ("v1.2", false)] {
        if has_begun {
            list.see(&format!("p/{dir}/svc.index.json.revocation.json.pending"));
        }
        list.see(&format!("p/{dir}/svc.index.json.signatures.json"));
    }
    list.see("p/v2.0-RC1/svc.index.json.signatures.json.pending");
    assert_eq!(list.count(), ReleaseCounts { complete: 3, collecting: 1, revoked: 0, revoking: 1 });
    assert_eq!(list.count().total(), 5);
    assert_eq!(list.find_newest().unwrap().dir, "p/v1.10");
    let named = |list: ReleaseList| -> Vec<String> {
        list.newest(0..9).into_iter().map(|entry| entry.dir["p/".len()..].to_owned()).collect()
    };
    assert_eq!(named(list.clone()), ["v1.1", "v2.0-RC1", "v1.10", "v1.2", "v1.0"]);
    assert_eq!(named(list.clone().filter(None, "rc")), ["v2.0-RC1"]);
    let filtered = |name, words| named(list.clone().filter(ListedState::parse(name), words));
    assert_eq!(filtered("complete", "v1.1"), ["v1.10"]);
    assert_eq!(filtered("revocation_begun", ""), ["v1.1"]);
    assert_eq!(filtered("revoked", ""), [""; 0]);
    assert_eq!(ListedState::parse("begun"), None);
}

#[test]
fn a_project_is_found_by_words_in_any_letter_case() {
    let id = "https/github.com/443/acme/app";
    for text in [
        "", "acme", "ACME App", "app acme", "github.com/acme", "github.com/acme/app", "GITHUB.com/Acme/a",
        "hub.com/acme", "https://github.com/acme/app", "https://github.com/acme",
        "https://github.com/acme/app/releases/tag/v1", "https/github.com/443",
    ] {
        assert!(ProjectSearch::parse(text).matches(id), "{text}");
    }
    for text in [
        "acmee", "acme nothing", "https://github.com/acme/ap", "http://github.com/acme", "lab.com/acme", "/x",
    ] {
        assert!(!ProjectSearch::parse(text).matches(id), "{text}");
    }
    assert!(ProjectSearch::parse(" \t").is_empty() && !ProjectSearch::parse("x").is_empty());
}
