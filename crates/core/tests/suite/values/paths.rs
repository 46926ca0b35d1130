//! Normalisation of mirror-relative paths (spec §2.1, D6).

use countersign_core::values::path::{PathError, RepoPath};
use countersign_testing::{assert_mentions, steady};
use proptest::prelude::*;

fn normal(text: &str) -> String {
    match RepoPath::parse(text) {
        Ok(path) => path.as_str().to_owned(),
        Err(error) => panic!("{text:?} is refused: {error}"),
    }
}

fn refusal(text: &str) -> PathError {
    match RepoPath::parse(text) {
        Ok(path) => panic!("{text:?} is accepted as {path}"),
        Err(error) => error,
    }
}

/// Text in which the things that matter are frequent.
fn any_path() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z0-9._~-]{0,12}",
        1 => Just("..".to_owned()),
        1 => Just(".".to_owned()),
        1 => Just(String::new()),
        2 => prop_oneof![Just("http"), Just("HTTPS"), Just("https"), Just("443"), Just("0"), Just("65536")]
            .prop_map(str::to_owned),
        1 => Just(".GiT".to_owned()),
        1 => "\\PC{0,6}",
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.join("/"))
}

proptest! {
    #![proptest_config(steady())]

    #[test]
    fn normalising_twice_is_normalising_once(text in any_path()) {
        if let Ok(path) = RepoPath::parse(&text) {
            prop_assert_eq!(RepoPath::parse(path.as_str()), Ok(path));
        }
    }

    #[test]
    fn any_text_is_accepted_or_refused_without_a_panic(text in any::<String>()) {
        if let Ok(path) = RepoPath::parse(&text) {
            prop_assert!(path.as_str().len() <= 1_024);
            prop_assert!(path.segments().count() <= 64);
            prop_assert!(!path.as_str().chars().any(char::is_control));
            prop_assert!(path.segments().all(|s| !matches!(s, "" | "." | "..") && !s.contains('\\')));
        }
    }

    #[test]
    fn scheme_and_host_are_lower_cased_and_the_rest_is_kept(
        scheme in "[hH][tT][tT][pP][sS]?", host in "[a-zA-Z0-9-]{1,20}", port in 1_u16.., rest in "[a-zA-Z0-9]{1,20}",
    ) {
        let (low_scheme, low_host) = (scheme.to_ascii_lowercase(), host.to_ascii_lowercase());
        prop_assert_eq!(
            normal(&format!("{scheme}/{host}/{port}/{rest}")),
            format!("{low_scheme}/{low_host}/{port}/{rest}")
        );
    }

    #[test]
    fn a_path_of_another_shape_is_kept_as_it_is(rest in "[A-Zi-z][a-zA-Z0-9_.-]{0,9}[a-z](/[a-zA-Z0-9]{1,9}){0,4}") {
        prop_assume!(!rest.to_ascii_lowercase().starts_with("http"));
        prop_assert_eq!(normal(&rest), rest);
    }
}

#[test]
fn the_default_port_is_inserted_where_there_is_none() {
    for (text, expected) in [
        ("https/github.com/acme/app", "https/github.com/443/acme/app"),
        ("http/example.org/pool", "http/example.org/80/pool"),
        ("https/github.com", "https/github.com/443"),
        ("https/example.org/8443/a", "https/example.org/8443/a"),
        ("https/example.org/1/a", "https/example.org/1/a"),
        ("https/example.org/65535/a", "https/example.org/65535/a"),
        ("https/example.org/65536/a", "https/example.org/443/65536/a"),
        ("https/example.org/0/a", "https/example.org/443/0/a"),
        ("https/example.org/-1/a", "https/example.org/443/-1/a"),
        ("https/example.org/+80/a", "https/example.org/443/+80/a"),
        ("https/example.org/٤٤٣/a", "https/example.org/443/٤٤٣/a"),
        ("HTTPS/GitHub.COM/Acme/App", "https/github.com/443/Acme/App"),
    ] {
        assert_eq!(normal(text), expected);
    }
}

#[test]
fn a_path_that_is_refused_says_why() {
    assert_eq!(normal("a/b/"), "a/b");
    for (text, error) in [
        ("", PathError::Empty),
        ("/", PathError::Empty),
        ("/a", PathError::EmptySegment),
        ("a//b", PathError::EmptySegment),
        ("a/b//", PathError::EmptySegment),
        ("a\\..\\b", PathError::ForbiddenCharacter),
    ] {
        assert_eq!(refusal(text), error);
    }
    for c in ['\0', '\n', '\r', '\t', '\x1b', '\x7f', '\u{85}', '\\'] {
        assert_eq!(refusal(&format!("a/b{c}c")), PathError::ForbiddenCharacter, "{c:?}");
    }
    for text in ["..", ".", "../etc/passwd", "a/../b", "a/./b", "a/..", "https/../443/x", "https/h/443/.."] {
        assert_mentions(&refusal(text).to_string(), &["path traversal"]);
    }
    for text in [".git", "a/.git/config", "a/.GIT", "https/h/443/a/.Git/b"] {
        assert!(matches!(refusal(text), PathError::GitDirectory(_)), "{text}");
    }
    assert_eq!(normal("a/.github/.gitx"), "a/.github/.gitx");
}

/// The vector has the limits of paths that are in their normal form.
#[test]
fn the_limits_hold_for_the_normalised_form() {
    let room_for_no_port = format!("https/h/{}", "a".repeat(1_024 - "https/h/".len()));
    let segments_for_no_port = format!("https/h/{}", vec!["a"; 62].join("/"));
    for text in ["a".repeat(1_025), room_for_no_port, segments_for_no_port] {
        assert_eq!(refusal(&text), PathError::TooLong);
    }
}

#[test]
fn inside_means_below_and_not_beside() {
    let path = |text| RepoPath::parse(text).unwrap();
    assert!(path("a/b/c").is_inside(&path("a")));
    assert!(!path("a").is_inside(&path("a")));
    assert!(!path("ab/c").is_inside(&path("a")));
    let ancestors: Vec<String> = path("a/b/c").self_and_ancestors().map(|p| p.to_string()).collect();
    assert_eq!(ancestors, ["a/b/c", "a/b", "a"]);
}

#[test]
fn what_a_path_begins_with_is_known_where_it_is_there() {
    let path = |text| RepoPath::parse(text).unwrap();
    let project = path("https/example.org/8443/acme/tools/app");
    assert_eq!(project.host(), Some("example.org"));
    assert_eq!(project.host_dir(), Some(path("https/example.org/8443")));
    assert_eq!(project.owner_dir(), Some(path("https/example.org/8443/acme")));
    assert_eq!(project.names().collect::<Vec<_>>(), ["acme", "tools", "app"]);
    assert_eq!(project.below(&path("https/example.org/8443/acme")), Some("tools/app"));
    assert_eq!(project.below(&path("https/example.org/8443/ac")), None);
    assert_eq!(project.below(&project), None);
    let host = path("https/example.org/8443");
    assert_eq!((host.host_dir(), host.owner_dir(), host.names().next()), (Some(host.clone()), None, None));
    assert_eq!((path("a").host(), path("a/b").host_dir()), (None, None));
}

#[test]
fn a_path_is_split_behind_its_server() {
    for (path, split) in [
        ("https/github.com/443/acme/app", Some(("https://github.com", "acme/app"))),
        ("https/github.com/80/acme", Some(("https://github.com:80", "acme"))),
        ("http/127.0.0.1/8000/acme/app", Some(("http://127.0.0.1:8000", "acme/app"))),
        ("http/dl.example.org/80", Some(("http://dl.example.org", ""))),
        ("https/dl.example.org/port/app", Some(("https://dl.example.org", "port/app"))),
        ("ftp/dl.example.org/21/app", None),
        ("notes/large", None),
    ] {
        let split_here = RepoPath::parse(path).unwrap();
        let split_here = split_here.split_server();
        assert_eq!(split_here.as_ref().map(|(server, rest)| (server.as_str(), *rest)), split, "{path}");
    }
}
