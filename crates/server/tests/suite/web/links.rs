use countersign_core::values::path::RepoPath;
use countersign_server::web::links::{home_of, outside, page, shown_path};

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
        "javascript:alert(1)",
        " javascript:alert(1)",
        "data:text/html,x",
        "//a.example",
        "/x",
        "ftp://a.example",
        "https://u:p@a.example",
        "https://trusted.example@a.example",
        "",
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
