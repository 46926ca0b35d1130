//! The words of a verdict and of progress.

use countersign_core::rules::quorum::Tally;
use countersign_explain::progress::{Names, describe_groups};
use countersign_explain::verdict::{Doubts, shown_release, shown_url, standing_text};
use countersign_testing::path;

use crate::progress::{file, signed_by};

#[test]
fn a_release_is_named_with_the_address_of_its_project() {
    for (project, url) in [
        ("https/github.com/443/acme/app", "https://github.com/acme/app"),
        ("http/127.0.0.1/8000/acme/app", "http://127.0.0.1:8000/acme/app"),
        ("http/dl.example.org/80/app", "http://dl.example.org/app"),
        ("https/dl.example.org/443", "https://dl.example.org"),
        ("ftp/dl.example.org/21/app", "ftp/dl.example.org/21/app"),
    ] {
        assert_eq!(shown_url(&path(project)), url);
    }
    let project = path("https/github.com/443/acme/app");
    let release = |tail: &str| shown_release(&path(&format!("{project}/{tail}/svc.index.json")), &project);
    assert_eq!(release("releases/tag/v1.1"), "v1.1 of https://github.com/acme/app");
    assert_eq!(release("1.0"), "1.0 of https://github.com/acme/app");
    let lookalike = path("https/github.com/443/acme/\u{430}pp");
    assert!(shown_url(&lookalike).contains("U+0430"), "{}", shown_url(&lookalike));
}

#[test]
fn the_gravest_doubt_is_said_first() {
    let mut doubts = Doubts { begun: None, objections: vec!["not \"mine\"".to_owned()] };
    assert_eq!(doubts.text().unwrap(), r#"1 signer objects: "not \"mine\"""#);
    doubts.objections.push("nor mine".to_owned());
    assert_eq!(doubts.text().unwrap(), r#"2 signers object: "not \"mine\"""#);
    doubts.begun = Some((Tally { collected: 1, needed: 2 }, "wrong build".to_owned()));
    assert_eq!(doubts.text().unwrap(), r#"1 of 2 revokers want it revoked: "wrong build""#);
    assert_eq!(Doubts::default().text(), None);
}

#[test]
fn progress_says_what_is_missing_and_from_whom() {
    let say = |threshold, people: &[(&str, u8)], signed: &[u8]| {
        let file = file(threshold, people);
        let groups = describe_groups(file.artifact_groups(), &signed_by(signed), &Names::of([&file]));
        standing_text(&groups[0])
    };
    let three = [("alice", 1), ("bob", 2), ("carol", 3)];
    assert_eq!(say(2, &three, &[]), "has 0 of 2; 2 more from alice, bob or carol");
    assert_eq!(say(2, &three, &[1]), "has 1 of 2; 1 more from bob or carol");
    assert_eq!(say(3, &three, &[1]), "has 1 of 3; 2 more from bob and carol");
    assert_eq!(say(3, &three, &[1, 3]), "has 2 of 3; 1 more from bob");
    assert_eq!(say(2, &three, &[1, 3, 2]), "has 2 of 2");
    // Names that could read as a part of the sentence are quoted, and a crowd is counted.
    assert_eq!(say(1, &[("bob or eve", 1)], &[]), "has 0 of 1; 1 more from \"bob or eve\"");
    let many: Vec<(String, u8)> = (1..=8).map(|n| (format!("p{n}"), n)).collect();
    let many: Vec<(&str, u8)> = many.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(say(1, &many, &[]), "has 0 of 1; 1 more from p1, p2, p3, p4, p5, p6 or 2 others");
    let unnamed = say(1, &[("", 1)], &[]);
    assert!(
        unnamed.starts_with("has 0 of 1; 1 more from svc-pub:") && unnamed.chars().count() < 45,
        "{unnamed}"
    );
}
