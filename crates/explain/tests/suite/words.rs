//! The words of a verdict.

use countersign_core::rules::quorum::Tally;
use countersign_explain::words::{Doubts, shown_release, shown_url};
use countersign_testing::path;

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
    let mut doubts = Doubts { objections: vec!["not \"mine\"".to_owned()], ..Doubts::default() };
    assert_eq!(doubts.text().unwrap(), r#"1 signer objects: "not \"mine\"""#);
    doubts.objections.push("nor mine".to_owned());
    assert_eq!(doubts.text().unwrap(), r#"2 signers object: "not \"mine\"""#);
    doubts.begun = Some((Tally { collected: 1, needed: 2 }, "wrong build".to_owned()));
    assert_eq!(doubts.text().unwrap(), r#"1 of 2 revokers want it revoked: "wrong build""#);
    assert_eq!(Doubts::default().text(), None);
}
