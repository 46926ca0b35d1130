//! Pages as a browser asks for them, and reads them: strictly, so that nothing of a stranger's can have become markup.

use super::{Person, http::Request, server::TestServer};

const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Nothing else is ever on a page of ours. None of it but `link` and `script` loads anything.
const ELEMENTS: &str = " html head meta title link body a header nav main footer h1 h2 h3 p div span section ul ol li dl dt dd \
    table thead tbody tr th td form label input select option button pre code q strong time details summary aside \
    article bdi svg path rect script noscript br ";
const VOID: &str = " meta link input br ";
const ATTRIBUTES: &str = " lang charset name content rel href type class id tabindex role action method for value maxlength \
    autocomplete placeholder datetime scope colspan reversed start disabled multiple hidden selected title property viewBox d x y width height src ";

pub(crate) struct Html {
    pub(crate) status: u16,
    pub(crate) text: String,
    /// What a reader sees, without tags and with entities resolved.
    pub(crate) words: String,
    pub(crate) links: Vec<String>,
    /// Where its scripts come from: that of all pages, and perhaps its own.
    scripts: Vec<String>,
}

/// Asks as a browser does. Whatever the page is, its headers and its markup are checked.
#[track_caller]
pub(crate) fn visit(server: &TestServer, target: &str) -> Html {
    let (status, text) = ask(server, target, POLICY);
    let html = Html::read(status, text);
    assert_eq!(html.scripts.len(), 1, "{:?}", html.scripts);
    html
}

/// Visits a page that has this script, and may fetch from us.
#[track_caller]
pub(crate) fn open_with_script(server: &TestServer, target: &str, script: &str) -> Html {
    let policy = POLICY.replace("form-action", "connect-src 'self'; form-action");
    let (status, text) = ask(server, target, &policy);
    let html = Html::read(status, text);
    assert_eq!(html.scripts.get(1).map(String::as_str), Some(script));
    assert_eq!(html.status, 200, "{target}: {}", html.words);
    html
}

#[track_caller]
fn ask(server: &TestServer, target: &str, policy: &str) -> (u16, String) {
    let reply = server.send(&Request::get(target).with_header("accept", "text/html,application/xhtml+xml"));
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{target}: {}", reply.text());
    assert_eq!(reply.header("content-security-policy"), Some(policy));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(reply.header("cache-control"), Some("no-cache"));
    (reply.status, reply.text())
}

/// Visits a page that must be there.
#[track_caller]
pub(crate) fn open(server: &TestServer, target: &str) -> Html {
    let html = visit(server, target);
    assert_eq!(html.status, 200, "{target}: {}", html.words);
    html
}

/// The key of a person in short, which pages and lists of the client show.
pub(crate) fn short_key(person: &Person) -> String {
    let key = person.key();
    let code = key.strip_prefix("svc-pub:").expect("the form of a key");
    format!("svc-pub:{}…{}", &code[..6], &code[code.len() - 6..])
}

/// The address of the page with all of it.
pub(crate) fn key_page(person: &Person) -> String {
    format!("/keys/{}", person.key().replace('+', "-").replace('/', "_"))
}

impl Html {
    #[track_caller]
    fn read(status: u16, text: String) -> Self {
        let mut rest = text.strip_prefix("<!DOCTYPE html>").expect("a doctype");
        let (mut open, mut words, mut links, mut headings, mut scripts) =
            (Vec::new(), String::new(), Vec::new(), Vec::new(), Vec::new());
        while let Some(at) = rest.find('<') {
            words.push_str(&unescape(&rest[..at]));
            let end = rest[at..].find('>').expect("a tag ends") + at;
            let tag = &rest[at + 1..end];
            rest = &rest[end + 1..];
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name), "in {text}");
                continue;
            }
            let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
            assert!(ELEMENTS.contains(&format!(" {name} ")), "<{tag}> is none of ours, in {text}");
            if matches!(name, "h1" | "h2" | "h3") {
                headings.push(name[1..].parse::<usize>().expect("a digit"));
            }
            let target = read_attributes(name, attributes);
            if name == "script" {
                assert!(rest.starts_with("</script>"), "a script has no text of its own, in {text}");
                scripts.extend(target.clone());
            }
            links.extend(target);
            if !VOID.contains(&format!(" {name} ")) {
                open.push(name.to_owned());
            }
            words.push(' ');
        }
        assert!(open.is_empty() && rest.is_empty(), "{open:?} are not closed");
        assert_eq!(headings.iter().filter(|level| **level == 1).count(), 1, "one h1, in {text}");
        assert!(headings.windows(2).all(|pair| pair[1] <= pair[0] + 1), "no level is left out: {headings:?}");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            !words
                .chars()
                .any(|c| ('\u{200b}'..='\u{200f}').contains(&c) || ('\u{202a}'..='\u{202e}').contains(&c))
        );
        assert!(scripts.len() <= 2 && scripts[0].starts_with("/assets/page.mjs?v="), "{scripts:?}");
        Self { status, text, words, links, scripts }
    }

    /// Fails unless a reader sees each of these.
    #[track_caller]
    pub(crate) fn says(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.words.contains(part), "{part:?} is missing in: {}", self.words);
        }
        self
    }

    #[track_caller]
    pub(crate) fn lacks(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(!self.words.contains(part), "{part:?} must not be in: {}", self.words);
        }
        self
    }

    #[track_caller]
    pub(crate) fn links_to(&self, target: &str) -> &Self {
        assert!(self.links.iter().any(|link| link == target), "no link to {target} among {:#?}", self.links);
        self
    }
}

/// Checks the attributes of one tag, and gives where it leads.
#[track_caller]
fn read_attributes(element: &str, text: &str) -> Option<String> {
    let (mut rest, mut link, mut rel) = (text.trim(), None, String::new());
    while !rest.is_empty() {
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let name = &rest[..end];
        assert!(
            name.starts_with("aria-")
                || name.starts_with("data-")
                || ATTRIBUTES.contains(&format!(" {name} ")),
            "{name:?} in <{element} {text}>"
        );
        let Some(after) = rest[end..].strip_prefix("=\"") else {
            let is_known = matches!(name, "reversed" | "disabled" | "multiple" | "hidden" | "selected");
            assert!(is_known, "an attribute without a value in <{element} {text}>");
            rest = rest[end..].trim_start();
            continue;
        };
        let close = after.find('"').expect("a value ends");
        let value = unescape(&after[..close]);
        match name {
            "href" | "src" | "action" => {
                let is_own = value.starts_with('/') && !value.starts_with("//") || value.starts_with('#');
                let may_leave =
                    element == "a" && (value.starts_with("http://") || value.starts_with("https://"));
                assert!(is_own || may_leave, "<{element} {text}> leaves us");
                link = Some(value);
            }
            "rel" => rel = value,
            _ => {}
        }
        rest = after[close + 1..].trim_start();
    }
    if link.as_ref().is_some_and(|link| link.starts_with("http")) {
        assert_eq!(rel, "nofollow noopener noreferrer", "<{element} {text}>");
    }
    link
}

fn unescape(text: &str) -> String {
    assert!(!text.contains('>'), "{text:?}");
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Writes a text as a part of a URL. The characters in `kept` stay as they are, beside those that always may.
pub(crate) fn percent_encode(text: &str, kept: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.as_bytes().contains(&byte);
    text.bytes().map(|b| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}
