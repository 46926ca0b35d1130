//! What a forge's document says of a release.

use countersign_core::documents::index::{AssetNameError, IndexTooLarge};
use countersign_core::values::bounds::{INDEX_BYTES, INDEX_FILES, INDEX_NAMES_BYTES};
use countersign_forge::forges::{ForgeKind, Forges, ReleaseSource};
use countersign_forge::release::{ReleaseError, ReleaseMetadata, ReleaseProblem, read_document};
use serde_json::{Value, json};

use crate::support::forge::{config, fixture_text};

const SERVER: &str = "https://git.example";
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn fixture(kind: ForgeKind) -> Value {
    serde_json::from_str(&fixture_text(kind, SERVER)).unwrap()
}

fn source(kind: ForgeKind) -> ReleaseSource {
    let page = match kind {
        ForgeKind::Github | ForgeKind::Forgejo => "acme/app/releases/tag/v1.0",
        ForgeKind::Gitlab => "acme/app/-/releases/v1.0",
    };
    Forges::new(vec![config("git.example", kind)])
        .unwrap()
        .locate_release(&format!("{SERVER}/{page}"))
        .unwrap()
}

/// What a document of GitHub's says, if it is one of a release.
fn read_up_to(
    kind: ForgeKind,
    document: &Value,
    max_assets: usize,
) -> Result<ReleaseMetadata, ReleaseProblem> {
    match read_document(&source(kind), document.to_string().as_bytes(), max_assets) {
        Ok(metadata) => Ok(metadata),
        Err(ReleaseError::Refused { problem, .. }) => Err(problem),
        Err(other) => panic!("{other}"),
    }
}

fn read(kind: ForgeKind, document: &Value) -> Result<ReleaseMetadata, ReleaseProblem> {
    read_up_to(kind, document, 3)
}

/// The fixture with the value at this place replaced.
fn with(kind: ForgeKind, pointer: &str, value: Value) -> Result<ReleaseMetadata, ReleaseProblem> {
    let mut document = fixture(kind);
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).unwrap();
    match key.parse::<usize>() {
        Ok(index) => parent[index] = value,
        Err(_) => parent[key] = value,
    }
    read(kind, &document)
}

#[test]
fn each_forge_describes_its_assets() {
    let table = [
        (
            ForgeKind::Github,
            "app-old.zip",
            "acme/app/releases/download/v1.0/app-linux.tar.gz",
            Some(5),
            Some(5),
        ),
        (ForgeKind::Gitlab, "app old.zip", "acme/app/-/releases/v1.0/downloads/app-linux.tar.gz", None, None),
        (
            ForgeKind::Forgejo,
            "app-old.zip",
            "acme/app/releases/download/v1.0/app-linux.tar.gz",
            Some(5),
            None,
        ),
    ];
    for (kind, second, path, first_size, second_size) in table {
        let metadata = read(kind, &fixture(kind)).unwrap();
        assert_eq!(metadata.published_on.unwrap().to_string(), "2026-03-01T09:30:00Z", "{kind:?}");
        let names: Vec<&str> = metadata.assets.iter().map(|asset| asset.name.as_str()).collect();
        assert_eq!(names, ["app-linux.tar.gz", second], "{kind:?}");
        assert_eq!(metadata.assets[0].source, format!("{SERVER}/{path}"));
        assert_eq!((metadata.assets[0].size, metadata.assets[1].size), (first_size, second_size), "{kind:?}");
    }
    let github = read(ForgeKind::Github, &fixture(ForgeKind::Github)).unwrap();
    assert_eq!(github.assets[0].sha256.unwrap().to_string(), HELLO);
    assert_eq!(github.assets[1].sha256, None);
}

#[test]
fn releases_that_are_not_what_was_asked_for_are_refused() {
    use ForgeKind::{Forgejo, Github, Gitlab};
    let other = ReleaseProblem::OtherTag { tag: "V1.0".into() };
    for (kind, pointer, value, problem) in [
        (Github, "/draft", json!(true), ReleaseProblem::Draft),
        (Forgejo, "/draft", json!(true), ReleaseProblem::Draft),
        (Gitlab, "/upcoming_release", json!(true), ReleaseProblem::Upcoming),
        (Forgejo, "/tag_name", json!("V1.0"), other),
        (Github, "/published_at", json!("yesterday"), ReleaseProblem::PublicationDate),
        (Github, "/assets", json!([]), ReleaseProblem::NoAssets),
        (Forgejo, "/assets", json!(null), ReleaseProblem::NoAssets),
        (Gitlab, "/assets/links", json!([]), ReleaseProblem::NoAssets),
    ] {
        assert_eq!(with(kind, pointer, value).unwrap_err(), problem, "{kind:?} {pointer}");
    }
    let many = json!(vec![fixture(Github)["assets"][0].clone(); 4]);
    assert_eq!(with(Github, "/assets", many).unwrap_err(), ReleaseProblem::TooManyAssets { max: 3 });
}

#[test]
fn assets_that_cannot_be_trusted_are_refused() {
    use ForgeKind::{Forgejo, Github, Gitlab};
    for (name, error) in [
        ("../x", AssetNameError::Segments),
        ("/x", AssetNameError::Segments),
        ("", AssetNameError::Segments),
        ("a\\b", AssetNameError::Characters),
        ("a\u{202e}b", AssetNameError::Characters),
        (&"x".repeat(201), AssetNameError::TooLong),
    ] {
        for kind in [Github, Forgejo] {
            let problem = with(kind, "/assets/0/name", json!(name)).unwrap_err();
            assert!(
                matches!(&problem, ReleaseProblem::AssetName { error: found, .. } if *found == error),
                "{name}: {problem}"
            );
            assert!(!problem.to_string().contains('\u{202e}'));
        }
    }
    for last in ["..", "%2e%2e", "a%2F..", "a%5Cb", ""] {
        let url = json!(format!("{SERVER}/acme/app/-/releases/v1.0/downloads/{last}"));
        let problem = with(Gitlab, "/assets/links/0/direct_asset_url", url).unwrap_err();
        assert!(matches!(problem, ReleaseProblem::AssetName { .. }), "{last}: {problem}");
    }
    let twice = with(Github, "/assets/1/name", json!("app-linux.tar.gz")).unwrap_err();
    assert_eq!(twice, ReleaseProblem::NameUsedTwice { name: "app-linux.tar.gz".into() });
    let twice =
        with(Gitlab, "/assets/links/1/url", json!("https://b.example/x/app-linux.tar.gz")).unwrap_err();
    assert_eq!(twice, ReleaseProblem::NameUsedTwice { name: "app-linux.tar.gz".into() });
    let starter = with(Github, "/assets/0/state", json!("starter")).unwrap_err();
    assert!(matches!(starter, ReleaseProblem::NotUploaded { .. }), "{starter}");
    let digest = with(Github, "/assets/0/digest", json!("sha256:abc")).unwrap_err();
    assert!(matches!(digest, ReleaseProblem::AssetDigest { .. }), "{digest}");
    for url in ["ftp://a.example/x", "https://bob:pw@a.example/x", "/x", "javascript:alert(1)"] {
        let problem = with(Github, "/assets/0/browser_download_url", json!(url)).unwrap_err();
        assert!(matches!(problem, ReleaseProblem::AssetUrl { .. }), "{url}: {problem}");
        assert!(!problem.to_string().contains("pw"), "{problem}");
    }
}

#[test]
fn digests_of_other_algorithms_are_not_compared() {
    let metadata = with(ForgeKind::Github, "/assets/0/digest", json!("sha3:00")).unwrap();
    assert_eq!(metadata.assets[0].sha256, None);
}

#[test]
fn what_is_not_a_release_is_not_read_as_one() {
    for text in ["", "[]", "{", "<html></html>", "\"x\"", "{\"assets\": {}}"] {
        let error = read_document(&source(ForgeKind::Github), text.as_bytes(), 3).unwrap_err();
        assert!(matches!(error, ReleaseError::NotADocument { .. }), "{text}: {error}");
    }
}

/// A document of GitHub's with these assets.
fn listing(assets: impl Iterator<Item = (String, String)>) -> Value {
    let mut document = fixture(ForgeKind::Github);
    let like = document["assets"][1].clone();
    let asset = |(name, url): (String, String)| {
        let mut asset = like.clone();
        (asset["name"], asset["browser_download_url"]) = (json!(name), json!(url));
        asset
    };
    document["assets"] = assets.map(asset).collect();
    document
}

fn read_many(document: &Value) -> Result<usize, ReleaseProblem> {
    read_up_to(ForgeKind::Github, document, INDEX_FILES).map(|metadata| metadata.assets.len())
}

#[test]
fn names_and_urls_that_no_index_could_hold_are_refused_before_anything_is_downloaded() {
    let name = |length: usize, i: usize| {
        let path = format!("{i:03}/{}", format!("{}/", "n".repeat(199)).repeat(5));
        format!("{path}{}", "m".repeat(length - path.len()))
    };
    let short = |i: usize| format!("{SERVER}/{i}");
    assert_eq!(read_many(&listing((0..512).map(|i| (name(1_024, i), short(i))))), Ok(512));
    let one_more = (0..512).map(|i| (name(1_024, i), short(i))).chain([("a".to_owned(), short(0))]);
    assert_eq!(
        read_many(&listing(one_more)),
        Err(ReleaseProblem::TooLarge(IndexTooLarge::Names(INDEX_NAMES_BYTES + 1)))
    );
    let problem = read_many(&listing([(name(1_025, 0), short(0))].into_iter())).unwrap_err();
    assert!(
        matches!(&problem, ReleaseProblem::AssetName { error: AssetNameError::TooLong, .. }),
        "{problem}"
    );

    // URLs of 2,000 bytes: each asset adds as many bytes to the index, so two sizes tell how many fit.
    let long = |i: usize| format!("{SERVER}/{i:04}{}", "u".repeat(2_000 - SERVER.len() - 5));
    let of = |count: usize| read_many(&listing((0..count).map(|i| (format!("{i:04}"), long(i)))));
    let bytes_of = |count| match of(count) {
        Err(ReleaseProblem::TooLarge(IndexTooLarge::Bytes(bytes))) => bytes,
        other => panic!("{other:?}"),
    };
    let each = bytes_of(1_001) - bytes_of(1_000);
    let most = 1_000 - (bytes_of(1_000) - INDEX_BYTES).div_ceil(each);
    assert!((800..1_000).contains(&most), "{most}");
    assert_eq!(of(most), Ok(most));
    let bytes = bytes_of(most + 1);
    assert!(bytes > INDEX_BYTES && bytes < INDEX_BYTES + 3_000, "{bytes}");
}

#[test]
fn a_list_of_assets_is_not_read_beyond_what_an_index_can_hold() {
    let assets = |count: usize| listing((0..count).map(|i| (i.to_string(), "https://h/".to_owned())));
    let source = source(ForgeKind::Github);
    let parse = |count| read_document(&source, assets(count).to_string().as_bytes(), INDEX_FILES);
    // It is read to its end, and then the index would be too large.
    let error = parse(INDEX_FILES).unwrap_err();
    assert!(matches!(error, ReleaseError::Refused { problem: ReleaseProblem::TooLarge(_), .. }), "{error}");
    let error = parse(INDEX_FILES + 1).unwrap_err();
    assert!(matches!(error, ReleaseError::NotADocument { .. }), "{error}");
    assert!(error.to_string().contains("more than 10000 assets"), "{error}");
}
