//! Whether an index is about the place where it lies (D6, D26, D34).

use countersign_core::documents::index::ReleaseIndex;
use countersign_core::rules::place::{PlaceError, check_place, release_tag};
use countersign_testing::evidence::{checksums_index, file, index_path, release_index};
use countersign_testing::{INDEX, PROJECT, assert_mentions, path};

/// D6: only in the tag is `%2F` a separator; elsewhere it makes another place of it.
#[test]
fn an_encoded_slash_outside_the_tag_is_refused() {
    let url = "https://github.com/acme%2Fapp/releases/tag/v1";
    assert_eq!(release_tag(url, &path(PROJECT)), None, "{url}");
    let index = checksums_index(
        "https/files.example/443/app",
        vec![file("sub/a.tar.gz", "https://files.example/app%2F1.0/sub%2Fa.tar.gz", "a")],
    );
    let place = check_place(&index, &path("https/files.example/443/app/1.0/svc.index.json"));
    assert!(matches!(place, Err(PlaceError::OtherSource { .. })), "{place:?}");
}

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

#[test]
fn a_release_lies_in_no_other_directory_of_its_project() {
    for at in [
        format!("{PROJECT}/svc.index.json"),
        format!("{PROJECT}/v1/svc.index.json"),
        format!("{PROJECT}/releases/v1/svc.index.json"),
        format!("{PROJECT}/-/releases/v1/svc.index.json"),
        format!("{PROJECT}/releases/download/v1/svc.index.json"),
        format!("{PROJECT}/releases/tag/v1/v1/svc.index.json"),
        format!("{PROJECT}/x/releases/tag/v1/svc.index.json"),
    ] {
        let place = check_place(&release_index("v1"), &path(&at));
        assert!(matches!(place, Err(PlaceError::OtherRelease(_))), "{at}: {place:?}");
    }
}

#[test]
fn an_index_names_the_project_that_contains_it() {
    for project in [
        "https/github.com/443/acme/ap", "https/github.com/443/acme/app2", "https/github.com/443/acme/App",
        INDEX,
    ] {
        let mut index = release_index("v1");
        index.project_id = path(project);
        assert_eq!(check_place(&index, &path(INDEX)), Err(PlaceError::OtherProject(path(project))));
    }
}

#[test]
fn only_an_index_has_the_place_of_one() {
    for name in ["index.json", "svc.signers.json", "svc.index.json.signatures.json", "SVC.INDEX.JSON"] {
        let at = path(&INDEX.replace("svc.index.json", name));
        assert_eq!(check_place(&release_index("v1"), &at), Err(PlaceError::NotAnIndex(at)));
    }
    let alone = path("svc.index.json");
    assert_eq!(check_place(&release_index("v1"), &alone), Err(PlaceError::NotAnIndex(alone)));
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
        "https://github.com/acme/app/releases/x/v1/app.tar.gz",
        "https://github.com/acme/app/releases/x/v1/downloads/app.tar.gz",
        "https://github.com/acme/app/Releases/download/v1/app.tar.gz",
        "https://github.com/acme/app/-/Releases/v1/downloads/app.tar.gz",
    ] {
        let place = place_of_asset(source);
        assert!(matches!(place, Err(PlaceError::OtherSource { .. })), "{source}: {place:?}");
    }
}

/// A spelling that we do not read as a place is still one that a download would follow.
#[test]
fn an_asset_of_another_release_is_found_out_in_every_spelling() {
    for source in [
        "https://github.com/acme/app/releases/download/v2/app.tar.gz?",
        "https://github.com/acme/app/releases/download/v2/app.tar.gz?x=1",
        "https://github.com/acme/app/releases/download/v2/app.tar.gz#x",
        "https://x@github.com/acme/app/releases/download/v2/app.tar.gz",
        "https://github.com./acme/app/releases/download/v2/app.tar.gz",
        "https://github.com:443/acme/app/releases/download/v2/app.tar.gz",
        "https://github.com/acme/app/releases/download/v1/../v2/app.tar.gz",
        "https://github.com/acme/app/./releases/download/v2/app.tar.gz",
        "https://github.com/acme/app/releases/download/v2/a\tpp.tar.gz",
        "https:\\\\github.com\\acme\\app\\releases\\download\\v2\\app.tar.gz",
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

/// D35: letter case makes no other project. And the latest release is this one only for a while.
#[test]
fn an_asset_of_another_release_is_found_out_by_every_road() {
    for source in [
        "https://github.com/ACME/App/releases/download/v2/app.tar.gz",
        "https://github.com/acme/app/releases/latest/download/app.tar.gz",
    ] {
        let place = place_of_asset(source);
        assert!(matches!(place, Err(PlaceError::OtherSource { .. })), "{source}: {place:?}");
    }
}

#[test]
fn a_gitlab_asset_is_named_by_the_last_segment_of_its_link() {
    let project = "https/gitlab.com/443/g/s/app";
    let base = "https://gitlab.com/g/s/app/-/releases";
    let place = |source: String| {
        let mut index = released("x", &format!("{base}/a%2Fb"), &source);
        index.project_id = path(project);
        check_place(&index, &path(&format!("{project}/releases/tag/a/b/svc.index.json")))
    };
    assert_eq!(place(format!("{base}/a%2Fb/downloads/app.tar.gz")), Ok(()));
    assert_eq!(place(format!("{base}/a/b/downloads/bin/linux/app.tar.gz")), Ok(()));
    for source in [
        "a/downloads/app.tar.gz", "a%2Fb/app.tar.gz", "a%2Fb/downloads/app.tar.gz/x",
        "a%2Fbc/downloads/app.tar.gz",
    ] {
        assert!(place(format!("{base}/{source}")).is_err(), "{source}");
    }
}

#[test]
fn a_port_is_not_the_beginning_of_another() {
    let project = path("https/github.com/4430/acme/app");
    for (url, tag) in [
        ("https://github.com:4430/acme/app/releases/tag/v1", Some("v1")),
        ("https://github.com/acme/app/releases/tag/v1", None),
        ("https://github.com:44/acme/app/releases/tag/v1", None),
        ("https://github.com:44300/acme/app/releases/tag/v1", None),
    ] {
        assert_eq!(release_tag(url, &project).as_deref(), tag, "{url}");
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
