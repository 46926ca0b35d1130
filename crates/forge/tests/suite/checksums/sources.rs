//! Where checksums files lie, and the files that they list.

use countersign_forge::checksums::{ChecksumsSource, locate_checksums};
use countersign_forge::url::{SourceUrl, UrlProblem, UrlRefusal};

use crate::support::problem_of;

fn locate(urls: &[&str]) -> Result<ChecksumsSource, UrlRefusal> {
    locate_checksums(&urls.iter().map(|url| (*url).to_owned()).collect::<Vec<_>>())
}

fn problem(urls: &[&str]) -> UrlProblem {
    problem_of(locate(urls).expect_err("refused"))
}

#[test]
fn files_of_one_directory_are_a_source() {
    let source =
        locate(&["http://127.0.0.1:8080/acme/v1/SHA256SUMS", "http://127.0.0.1:8080/acme/v1/SHA512SUMS"])
            .unwrap();
    assert_eq!(source.dir.as_str(), "http/127.0.0.1/8080/acme/v1");
    let names: Vec<_> = source.files.iter().map(SourceUrl::file_name).collect();
    assert_eq!(names, [Some("SHA256SUMS"), Some("SHA512SUMS")]);
    assert_eq!(locate(&["https://files.example/SUMS"]).unwrap().dir.as_str(), "https/files.example/443");
}

#[test]
fn one_place_in_several_spellings_is_one_place() {
    let source = locate(&["https://files.example/a/X", "HTTPS://FILES.example:443/%61/Y"]).unwrap();
    assert_eq!(source.files.len(), 2);
    assert_eq!(
        problem(&["https://files.example/a/X", "https://files.example/a/%58"]),
        UrlProblem::GivenTwice
    );
}

#[test]
fn a_listed_file_lies_beside_its_checksums_file() {
    let source = locate(&["https://Files.Example:443/a+b/%C3%BC/SUMS"]).unwrap();
    let table = [
        ("app-1.0.tar.gz", "app-1.0.tar.gz"),
        ("linux/app_x~1", "linux/app_x~1"),
        ("a b+c", "a%20b%2Bc"),
        ("ü?#%2e:@", "%C3%BC%3F%23%252e%3A%40"),
    ];
    for (name, encoded) in table {
        let url = source.url_of(name);
        assert_eq!(url, format!("https://files.example/a+b/%C3%BC/{encoded}"));
        assert_eq!(SourceUrl::parse(&url).unwrap().segments()[2..].join("/"), name);
    }
    let at_root = locate(&["http://127.0.0.1:8080/SUMS"]).unwrap();
    assert_eq!(at_root.url_of("x"), "http://127.0.0.1:8080/x");
}

#[test]
fn files_of_several_places_are_refused() {
    let first = "https://files.example/a/X";
    for other in [
        "http://files.example/a/Y", "https://files.example:8443/a/Y", "https://other.example/a/Y",
        "https://files.example/b/Y", "https://files.example/A/Y", "https://files.example/a/b/Y",
        "https://files.example/Y",
    ] {
        assert!(matches!(problem(&[first, other]), UrlProblem::OtherDirectory { .. }), "{other}");
    }
}

#[test]
fn what_is_not_the_place_of_a_file_is_refused() {
    assert_eq!(locate(&[]).unwrap_err(), UrlRefusal::NoUrl);
    assert_eq!(problem(&["https://h/a/X?y"]), UrlProblem::Query);
    assert_eq!(problem(&["https://h/a/X#y"]), UrlProblem::Fragment);
    assert_eq!(problem(&["https://h/a/"]), UrlProblem::NoFileName);
    assert_eq!(problem(&["https://u@h/a/X"]), UrlProblem::UserInfo);
    assert!(matches!(problem(&["https://h/svc.signers/X"]), UrlProblem::Path { .. }));
    assert!(matches!(problem(&["https://h/a/X", "https://h/a/../a/Y"]), UrlProblem::DotSegment));
}
