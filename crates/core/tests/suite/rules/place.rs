//! Whether an index is about the place where it lies (D6, D26, D34).

use countersign_core::documents::index::ReleaseIndex;
use countersign_core::rules::place::{PlaceError, check_place};
use countersign_testing::evidence::{checksums_index, file, index_path, release_index};
use countersign_testing::{INDEX, PROJECT, assert_mentions, path};

fn released(tag: &str, url: &str, source: &str) -> ReleaseIndex {
    let mut index = release_index(tag);
    index.release_url = Some(url.to_owned());
    index.published_files[0].source = source.to_owned();
    index
}

#[test]
fn an_index_lies_where_its_release_says() {
    for (dir, tag) in [
        ("v1", "v1"),
        ("a/b", "a%2Fb"),
        ("a/b", "a/b"),
        ("@scope/app@1.0", "%40scope%2Fapp%401.0"),
        ("v 1", "v%201"),
        ("ü", "%C3%BC"),
        ("v1+2", "v1%2B2"),
        ("100%", "100%25"),
    ] {
        let (url, source) = (
            format!("https://github.com/acme/app/releases/tag/{tag}"),
            format!("https://github.com/acme/app/releases/download/{tag}/app.tar.gz"),
        );
        let index = released("x", &url, &source);
        assert_eq!(check_place(&index, &path(&index_path(dir))), Ok(()), "{tag}");
    }
    // NFC and NFD are two tags, and so are two letter cases.
    for (dir, tag) in
        [("ü", "u%CC%88"), ("v1", "V1"), ("v1", "v1%20"), ("a/b", "a%252Fb"), ("a", "a/b"), ("a/b", "b")]
    {
        let url = format!("https://github.com/acme/app/releases/tag/{tag}");
        let index = released("x", &url, "https://cdn.example/app");
        let place = check_place(&index, &path(&index_path(dir)));
        assert!(matches!(place, Err(PlaceError::OtherRelease(_))), "{tag}: {place:?}");
    }
}

fn place_of_asset(source: &str) -> Result<(), PlaceError> {
    check_place(&released("v1", "https://github.com/acme/app/releases/tag/v1", source), &path(INDEX))
}

#[test]
fn an_asset_is_of_this_release_or_from_elsewhere() {
    for source in [
        "https://github.com/acme/app/releases/download/v1/app.tar.gz",
        "https://github.com:443/acme/app/releases/download/v1/app.tar.gz",
        "https://cdn.example/whatever?token=1",
        "https://cdn.example//a/%2Fb%2F..%2Fc",
        "https://github.com/acme/app2/releases/download/v2/app.tar.gz",
        "https://github.com/acme/app/raw/main/app.tar.gz",
        "https://api.github.com/repos/acme/app/releases/assets/1",
    ] {
        assert_eq!(place_of_asset(source), Ok(()), "{source}");
    }
    for source in [
        "https://github.com/acme/app/releases/download/v2/app.tar.gz",
        "https://github.com/acme/app/releases/download/v1/other.tar.gz",
        "https://github.com/acme/app/releases/download/v1/sub/app.tar.gz",
        "https://github.com/acme/app/releases/download/v1%2Fv2/app.tar.gz",
        "https://GITHUB.com/acme/app/releases/download/v2/app.tar.gz",
        "https://github.com/acme/app/releases/%64ownload/v2/app.tar.gz",
        "https://github.com/acme/app/-/releases/v2/downloads/app.tar.gz",
        "https://github.com/acme/app/-/releases/v10/downloads/app.tar.gz",
        "https://github.com/acme/app/-/releases/permalink/latest/downloads/app.tar.gz",
        "https://github.com/acme/app/-/releases/v1/downloads/other.tar.gz",
        "https://github.com/acme/app/-/releases/v1/app.tar.gz",
        "https://github.com/acme/app/releases/x/v1/app.tar.gz",
        "https://github.com/acme/app/releases/x/v1/downloads/app.tar.gz",
        "https://github.com/acme/app/Releases/download/v1/app.tar.gz",
        "https://github.com/acme/app/-/Releases/v1/downloads/app.tar.gz",
    ] {
        let place = place_of_asset(source);
        assert!(matches!(place, Err(PlaceError::OtherSource { .. })), "{source}: {place:?}");
    }
}

/// The colons of an address in brackets begin no port.
#[test]
fn an_asset_of_another_release_is_found_out_on_a_server_without_a_name() {
    let project = "https/[2001:db8::1]/443/acme/app";
    let base = "https://[2001:db8::1]/acme/app/releases";
    let place = |source: String| {
        let mut index = released("v1", &format!("{base}/tag/v1"), &source);
        index.project_id = path(project);
        check_place(&index, &path(&format!("{project}/releases/tag/v1/svc.index.json")))
    };
    assert_eq!(place(format!("{base}/download/v1/app.tar.gz")), Ok(()));
    for source in [base.to_owned(), base.replace("]", "]:443")] {
        let place = place(format!("{source}/download/v2/app.tar.gz"));
        assert!(matches!(place, Err(PlaceError::OtherSource { .. })), "{source}: {place:?}");
    }
}

#[test]
fn without_a_release_page_every_file_lies_below_the_index() {
    let at = path("https/files.example/8443/app/1.0/svc.index.json");
    let base = "https://files.example:8443/app/1.0";
    let place = |name: &str, source: &str| {
        check_place(&checksums_index("https/files.example/8443/app", vec![file(name, source, "x")]), &at)
    };
    for (name, source) in [
        ("a", "a"),
        ("sub/dir/a", "sub/dir/a"),
        ("a b", "a%20b"),
        ("a%20b", "a%2520b"),
        ("a?b#c", "a%3Fb%23c"),
        ("ü", "%C3%BC"),
        ("@x:1", "@x:1"),
    ] {
        assert_eq!(place(name, &format!("{base}/{source}")), Ok(()), "{source}");
    }
    for source in [
        format!("{base}/b"),
        format!("{base}/sub/a"),
        format!("{base}/a?x"),
        format!("{base}/sub/../a"),
        format!("{base}/sub/%2e%2e/a"),
        format!("{base}//a"),
        format!("{base}.evil/a"),
        "https://files.example/app/1.0/a".to_owned(),
        "http://files.example:8443/app/1.0/a".to_owned(),
        "https://files.example:8443/app/1.1/a".to_owned(),
        "https://files.example:8443/App/1.0/a".to_owned(),
        "https://x@files.example:8443/app/1.0/a".to_owned(),
        "a".to_owned(),
        String::new(),
    ] {
        assert!(matches!(place("a", &source), Err(PlaceError::OtherSource { .. })), "{source}");
    }
}

/// What our server makes an index of (D6, D24), our client must be able to verify.
#[test]
fn a_name_that_no_stored_path_could_have_is_still_in_its_place() {
    let project = format!("https/files.example/443/{}", vec!["d".repeat(199); 4].join("/"));
    path(&project).check_storable_dir().expect("a directory that can be stored");
    let base = project.replacen("https/files.example/443", "https://files.example", 1);
    for name in ["n".repeat(200), vec!["s"; 70].join("/"), "app/.git".to_owned()] {
        let index = checksums_index(&project, vec![file(&name, &format!("{base}/{name}"), "x")]);
        assert_eq!(check_place(&index, &path(&format!("{project}/svc.index.json"))), Ok(()), "{name}");
    }
}

#[test]
fn an_index_of_checksums_may_lie_in_the_project_itself() {
    let project = "https/files.example/443/app";
    let index = checksums_index(project, vec![file("a", "https://files.example/app/a", "x")]);
    assert_eq!(check_place(&index, &path(&format!("{project}/svc.index.json"))), Ok(()));
}

#[test]
fn what_a_stranger_wrote_is_escaped_in_the_message() {
    let hostile = "https://evil.example/\u{1b}[2J\u{202e}\n";
    let release =
        check_place(&released("v1", hostile, "https://a/b"), &path(INDEX)).expect_err("another release");
    let mut index = checksums_index(PROJECT, vec![file("a", hostile, "x")]);
    let source = check_place(&index, &path(INDEX)).expect_err("another source");
    index.project_id = path("https/github.com/443/acme/other");
    let project = check_place(&index, &path(INDEX)).expect_err("another project");
    for message in [&release, &source, &project].map(ToString::to_string) {
        assert!(!message.contains(['\u{1b}', '\u{202e}', '\n']), "{message:?}");
    }
    assert_mentions(&source.to_string(), &["a", "evil.example"]);
    assert_mentions(&project.to_string(), &["acme/other"]);
}
