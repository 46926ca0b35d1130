//! The page that verifies files, as far as the server makes it: what the script is given, and that it is ours. What the
//! script does with it is tested in `tests/browser`.

use crate::support::{Request, TestServer, html::Html, html::open_with_script};

const SCRIPT: &str = "/assets/verify/page.mjs";
const INDEX: &str = "https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json";

/// What is given to the script: the attributes of the places where it looks.
fn places(html: &Html) -> Vec<&str> {
    html.text.split("<span data-index=").skip(1).map(|rest| rest.split('>').next().unwrap()).collect()
}

#[test]
fn the_file_comes_first_and_the_address_is_asked_for_only_later() {
    let server = TestServer::start();
    let html = open_with_script(&server, "/verify", SCRIPT);
    assert_eq!(places(&html), [""; 0]);
    html.says(&["Drop the file here", "finds its release", "Where the file was downloaded from"]);
    html.says(&["not protect against this server", "countersign verify FILE --server URL"]);
    assert!(html.text.contains("<form class=\"ask\" id=\"ask\" action=\"/verify\" hidden>"), "{}", html.text);
    assert!(html.text.contains("<label for=\"url\">") && html.text.contains("id=\"url\" name=\"url\""));
    assert_eq!(open_with_script(&server, "/verify?url=&path=", SCRIPT).words, html.words);
}

#[test]
fn the_path_of_an_index_is_given_to_the_script() {
    let server = TestServer::start();
    let html = open_with_script(&server, &format!("/verify?path={INDEX}"), SCRIPT);
    assert_eq!(places(&html), [format!("\"{INDEX}\" data-only=\"yes\"")]);
    assert!(html.text.contains("<label for=\"file\">") && html.text.contains("type=\"file\" disabled"));
    assert!(html.text.contains("id=\"result\" role=\"status\""));
    // Read where no script runs.
    html.says(&["Nothing has been checked", "countersign verify", "not protect against this server"]);
    let spelled = open_with_script(
        &server,
        "/verify?path=HTTPS/GitHub.com/acme/app/releases/tag/v1.0/svc.index.json",
        SCRIPT,
    );
    assert_eq!(places(&spelled), places(&html), "paths are normalised");
}

#[test]
fn the_address_of_a_file_leads_to_the_indexes_that_could_list_it() {
    let server = TestServer::start();
    let target =
        "/verify?url=https%3A%2F%2Fgithub.com%2Facme%2Fapp%2Freleases%2Fdownload%2Fv1.0%2Fapp.tar.gz";
    let html = open_with_script(&server, target, SCRIPT);
    let places = places(&html);
    assert_eq!(places[0], format!("\"{INDEX}\" data-name=\"app.tar.gz\" data-only=\"yes\""));
    assert_eq!(
        places[1..3],
        [
            "\"https/github.com/443/acme/app/releases/download/v1.0/svc.index.json\" data-name=\"app.tar.gz\"",
            "\"https/github.com/443/acme/app/releases/download/svc.index.json\" data-name=\"v1.0/app.tar.gz\"",
        ]
    );
}

#[test]
fn what_leads_to_no_release_is_refused_in_words() {
    let server = TestServer::start();
    for (query, why) in [
        ("url=nonsense", "This does not lead to a release"),
        ("url=ftp%3A%2F%2Fexample.org%2Fa", "This does not lead to a release"),
        ("url=https%3A%2F%2Fgithub.com%2Facme%2Fapp%2Freleases%2Flatest%2Fdownload%2Fapp", "latest"),
        ("path=..%2F..%2Fetc%2Fpasswd", "path traversal"),
        ("path=https%2Fgithub.com%2F443%2Facme%2Fapp", "ends in /svc.index.json"),
        ("path=a%2Fsvc.index.json&url=https%3A%2F%2Fa.example%2Fb", "not both"),
    ] {
        let html = open_with_script(&server, &format!("/verify?{query}"), SCRIPT);
        html.says(&[why]);
        assert!(!html.text.contains(" hidden>"), "the address can be mended");
    }
}

#[test]
fn whatever_is_asked_stays_text() {
    let server = TestServer::start();
    let attack = "%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%E2%80%AE";
    let html = open_with_script(&server, &format!("/verify?path={attack}"), SCRIPT);
    assert!(!html.text.contains("<img"));
    for query in [format!("url={attack}"), format!("path={attack}&url={attack}")] {
        let html = open_with_script(&server, &format!("/verify?{query}"), SCRIPT);
        assert!(
            html.text.contains("&quot;&gt;&lt;img src=x") && !html.text.contains("<img"),
            "{}",
            html.text
        );
    }
    let html =
        open_with_script(&server, &format!("/verify?path=https/h/443/{attack}/svc.index.json"), SCRIPT);
    assert!(!html.text.contains("<img"));
    html.says(&["onerror=alert(1)>\\u{202e}"]);
    let html = open_with_script(&server, "/verify?url=https://h.example/%2522%253E%253Cimg%253E/a", SCRIPT);
    assert!(
        html.text.contains("data-index=\"https/h.example/443/&quot;&gt;&lt;img&gt;/svc.index.json\""),
        "{}",
        html.text
    );
    // Neither is a query that is none.
    for query in ["%", "%ff", "path", "&&&", "path=%00", "x=1"] {
        open_with_script(&server, &format!("/verify?{query}"), SCRIPT);
    }
}

#[test]
fn the_whole_script_is_served_from_here_and_small() {
    let server = TestServer::start();
    let (mut bytes, mut wanted, mut seen) = (0, vec![SCRIPT.to_owned()], Vec::new());
    while let Some(path) = wanted.pop() {
        if seen.contains(&path) {
            continue;
        }
        let reply = server.send(&Request::get(&path));
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.header("content-type"), Some("text/javascript; charset=utf-8"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        // Modules of two versions do not belong together.
        assert_eq!(reply.header("cache-control"), Some("no-cache"));
        let text = reply.text();
        assert!(
            !text.contains("innerHTML") && !text.contains("http://") && !text.contains("https://"),
            "{path}"
        );
        bytes += text.len();
        let imports = text.match_indices("from \"./").map(|(at, found)| &text[at + found.len()..]);
        let names = imports.map(|rest| rest.split('"').next().unwrap());
        wanted.extend(names.map(|name| format!("/assets/verify/{name}")));
        seen.push(path);
    }
    assert!(seen.len() > 1 && bytes < 50_000, "{bytes} bytes in {seen:?}");
}
