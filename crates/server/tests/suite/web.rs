//! What the pages are made of, and when a browser may keep them.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use axum::http::Request;
use countersign_core::values::path::RepoPath;
use countersign_server::web::links::{client, home_of, outside, page, quote, shown_path};
use countersign_server::web::visit::{BY_NUMBER, Paging, Visit};
use countersign_server::web::{parts::count, reply::entity_tag};

use crate::support::{INDEX, commit, get, start};

#[test]
fn a_shell_takes_every_name_for_one_word() {
    let names =
        ["a b", "a'b", "$(reboot)", "`x`", "a\"b", "x;y", "!x", "~", "*", "a\\b", "'", "''", "ü&|<>#"];
    for name in names {
        let script = format!("printf %s {}", quote(name));
        let printed = Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
        assert_eq!(String::from_utf8(printed).unwrap(), name);
    }
}

#[test]
fn a_command_has_nothing_that_cannot_be_seen() {
    assert_eq!(
        client("sign", "https/h/443/a", Some("https://s.example")).as_deref(),
        Some("countersign sign https/h/443/a --server https://s.example")
    );
    assert_eq!(client("sign", "a b", None).as_deref(), Some("countersign sign 'a b' --server SERVER"));
    for hidden in ["a\u{202e}b", "a\nb", "a\u{200b}b", "-x", &"x".repeat(400)] {
        assert_eq!(client("sign", hidden, None), None);
    }
}

fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).unwrap()
}

#[test]
fn whatever_a_name_has_in_it_stays_in_its_segment() {
    let odd = path("https/h/443/a b/\"><i>?q=1#x%2f/ü");
    assert_eq!(page(&odd), "/p/https/h/443/a%20b/%22%3E%3Ci%3E%3Fq%3D1%23x%252f/%C3%BC");
}

#[test]
fn only_addresses_of_the_web_are_followed() {
    assert_eq!(outside("https://a.example/x").as_deref(), Some("https://a.example/x"));
    assert_eq!(outside("HTTP://A.example").as_deref(), Some("http://a.example/"));
    for url in [
        "javascript:alert(1)", " javascript:alert(1)", "data:text/html,x", "//a.example", "/x",
        "ftp://a.example", "https://u:p@a.example", "https://trusted.example@a.example", "",
    ] {
        assert_eq!(outside(url), None, "{url}");
    }
}

#[test]
fn paths_are_shown_as_people_write_them() {
    assert_eq!(shown_path(&path("https/github.com/443/acme/app")), "github.com/acme/app");
    assert_eq!(shown_path(&path("http/127.0.0.1/8000/acme")), "http://127.0.0.1:8000/acme");
    assert_eq!(shown_path(&path("https/github.com")), "github.com");
    assert_eq!(shown_path(&path("x/y")), "x/y");
    assert_eq!(home_of(&path("https/github.com/443/acme/app")).unwrap(), "https://github.com/acme/app");
}

#[test]
fn pages_cover_a_list_without_gaps() {
    let of = |page, total| Paging::of(Some(page), 50, total).map(|paging| paging.range());
    assert_eq!((of(1, 0), of(2, 0)), (Some(0..0), None));
    assert_eq!((of(1, 50), of(2, 50)), (Some(0..50), None));
    assert_eq!((of(2, 51), of(3, 51)), (Some(50..51), None));
    assert_eq!(of(usize::MAX, 51), None);
    assert_eq!(Paging::of(None, 50, 51), None);
    assert_eq!(Paging::of(Some(2), 50, 51).unwrap().range_from_end(), 0..1);
    assert_eq!(Paging::of(Some(1), 50, 51).unwrap().range_from_end(), 1..51);
}

#[test]
fn the_way_to_other_pages_is_short() {
    let links = Paging::of(Some(50), 10, 1_000).unwrap().links("x", "/?page=", BY_NUMBER).into_string();
    for page in [1, 49, 51, 100] {
        assert!(links.contains(&format!("href=\"/?page={page}\"")), "{links}");
    }
    assert_eq!(links.matches("<a ").count(), 6);
    assert!(links.contains("aria-current=\"page\">50<"), "{links}");
    assert_eq!(Paging::of(Some(1), 10, 10).unwrap().links("x", "/", BY_NUMBER).into_string(), "");
}

#[test]
fn numbers_are_easy_to_read() {
    assert_eq!(count(1_000, "key", "keys"), "1,000 keys");
    assert_eq!((count(1, "key", "keys"), count(2, "key", "keys")), ("1 key".into(), "2 keys".into()));
}

/// The writer publishes a commit and then logs it. A page from between the two must not count as a page from after
/// both.
#[tokio::test]
async fn a_page_from_before_a_commit_was_logged_is_not_kept_after_it() {
    let (_dir, running) = start().await;
    let app = running.app();
    let before = app.store.recent_commits().newest().commit;
    commit(app, &format!("Add {INDEX}")).await;
    let request = Request::get("/activity").header("host", "test").body(()).unwrap();
    let visit = Visit::of(&request.into_parts().0, false, None);
    let after = app.store.recent_commits().newest().commit;
    for (logged, status) in [(before, 200), (after, 304)] {
        let tag = entity_tag(&app.store.head(), logged, &visit);
        let answer = get(running.address, "/activity", &format!("if-none-match: {tag}\r\n")).await;
        assert_eq!(answer.status, status);
    }
    running.stop().await.unwrap();
}

fn visit(target: &str, headers: &[(&str, &str)]) -> Visit {
    let request =
        headers.iter().fold(Request::get(target), |request, (name, value)| request.header(*name, *value));
    Visit::of(&request.body(()).unwrap().into_parts().0, false, None)
}

#[test]
fn the_origin_is_that_of_the_host_header_or_none() {
    for (host, proto, base_url) in [
        ("sign.example.org", None, Some("https://sign.example.org")),
        ("sign.example.org:8443", None, Some("https://sign.example.org:8443")),
        ("127.0.0.1:3000", None, Some("http://127.0.0.1:3000")),
        ("127.0.0.1", None, Some("http://127.0.0.1")),
        ("[::1]:3000", None, Some("http://[::1]:3000")),
        ("[::1]", None, Some("http://[::1]")),
        ("[2001:db8::1]", None, Some("https://[2001:db8::1]")),
        ("localhost.example.org", None, Some("https://localhost.example.org")),
        ("10.0.0.1:3000", Some("http"), Some("http://10.0.0.1:3000")),
        ("localhost", Some("https"), Some("https://localhost")),
        ("localhost", Some("javascript"), Some("http://localhost")),
        ("a$(reboot)", None, None),
        ("a;b", None, None),
        ("\"><script>", None, None),
        ("--config=x", None, None),
        ("a/b", None, None),
        ("a@b", None, None),
    ] {
        let mut headers = vec![("host", host)];
        headers.extend(proto.map(|proto| ("x-forwarded-proto", proto)));
        assert_eq!(visit("/", &headers).base_url.as_deref(), base_url, "{host}");
    }
    assert_eq!(visit("/", &[]).base_url, None);
    let absolute = visit("http://sign.example.org/", &[("host", "other.example.org")]);
    assert_eq!(absolute.base_url.as_deref(), Some("https://sign.example.org"));
    assert_eq!(visit("http://me@sign.example.org/", &[("host", "other.example.org")]).base_url, None);
}

#[test]
fn the_query_gives_words_and_a_page() {
    let seen = visit("/?q=%3Cb%3E+acme&page=3", &[]);
    assert_eq!((seen.search.as_str(), seen.page), ("<b> acme", Some(3)));
    assert_eq!(visit("/", &[]).page, Some(1));
    for page in ["0", "-1", "x", "99999999999999999999999", ""] {
        assert_eq!(visit(&format!("/?page={page}"), &[]).page, None, "{page}");
    }
}

#[test]
fn a_version_that_is_known_is_told_in_any_list() {
    let seen = visit("/", &[("if-none-match", "\"a\", W/\"b\"")]);
    assert!(seen.knows("\"a\"") && seen.knows("\"b\"") && !seen.knows("\"c\""));
    assert!(!visit("/", &[("if-none-match", "*")]).knows("\"a\""));
}

/// Each module by the address at which it is served.
async fn modules() -> BTreeMap<String, String> {
    let (_dir, running) = start().await;
    let mut modules = BTreeMap::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/web/verify")).unwrap() {
        let path = format!("/assets/verify/{}", entry.unwrap().file_name().to_str().unwrap());
        let answer = get(running.address, &path, "").await;
        assert_eq!(answer.status, 200, "{path}");
        modules.insert(path, answer.body);
    }
    running.stop().await.unwrap();
    modules
}

#[tokio::test]
async fn the_script_has_less_than_68_kb_and_makes_no_markup_of_text() {
    let modules = modules().await;
    let bytes: usize = modules.values().map(String::len).sum();
    assert!(bytes > 0 && bytes < 68_000, "{bytes} bytes");
    for (path, text) in modules {
        for door in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("] {
            assert!(!text.contains(door), "{path} has {door}");
        }
    }
}

#[tokio::test]
async fn every_module_that_is_imported_is_served() {
    let modules = modules().await;
    let mut imports = 0;
    for (path, text) in &modules {
        for (_, rest) in text.match_indices("from \"./").map(|(at, found)| text.split_at(at + found.len())) {
            let name = rest.split('"').next().unwrap_or_default();
            assert!(modules.contains_key(&format!("/assets/verify/{name}")), "{path} imports {name}");
            imports += 1;
        }
    }
    assert!(imports >= modules.len() - 1, "{imports} imports are seen");
}
