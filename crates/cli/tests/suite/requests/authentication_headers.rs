//! Spec §5: each header in every wrong way. All of them are 401, and none says more than it must.

use crate::support::{
    Person, Request, TestServer,
    people::{new_nonce, now, seconds_ago},
};

const HEADERS: [&str; 4] = ["X-svc-timestamp", "X-svc-nonce", "X-svc-sig", "X-svc-pk"];

fn pending() -> Request {
    Request::get("/v1/pending_signatures")
}

/// The same request with one header's value changed, everything else as it was signed.
#[track_caller]
fn assert_refused_with(server: &TestServer, header: &str, value: &str) {
    let request = Person::named("alice").sign(pending()).replace_header(header, value);
    let reply = server.send(&request);
    assert_eq!(reply.status, 401, "{header}: {value:?} was answered {}", reply.text());
    reply.error(401);
}

#[test]
fn a_signed_request_is_accepted() {
    let server = TestServer::start();
    server.send(&Person::named("alice").sign(pending())).ok();
}

#[test]
fn each_of_the_four_headers_is_needed() {
    let server = TestServer::start();
    for header in HEADERS {
        let request = Person::named("alice").sign(pending()).without_header(header);
        server.send(&request).error(401);
    }
    server.send(&pending()).error(401);
}

#[test]
fn a_header_given_twice_is_refused_even_with_the_same_value() {
    let server = TestServer::start();
    for header in HEADERS {
        let request = Person::named("alice").sign(pending());
        let twice = request.clone().with_header(header, request.header(header));
        server.send(&twice).error(401);
        let first_wrong =
            request.clone().replace_header(header, "x").with_header(header, request.header(header));
        server.send(&first_wrong).error(401);
    }
}

#[test]
fn an_empty_or_garbled_header_is_refused() {
    let server = TestServer::start();
    for header in HEADERS {
        for value in ["", "x", "null", "0", "\u{e9}"] {
            assert_refused_with(&server, header, value);
        }
    }
}

#[test]
fn the_timestamp_is_canonical_byte_for_byte_whatever_was_signed() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    let canonical = now().to_whole_seconds().to_header();
    let bare = canonical.trim_end_matches("+00:00").to_owned();
    let (date, time) = bare.split_once('T').unwrap();
    for spelling in [
        format!("{bare}Z"),
        format!("{bare}z"),
        format!("{bare}-00:00"),
        format!("{bare}+0000"),
        format!("{bare}+00"),
        format!("{bare}.0+00:00"),
        format!("{bare}.10+00:00"),
        format!("{bare}.123000+00:00"),
        format!("{bare}.+00:00"),
        format!("{bare},5+00:00"),
        format!("{date} {time}+00:00"),
        format!("{date}t{time}+00:00"),
        bare.clone(),
        format!("{bare} +00:00"),
        now().unix_seconds().to_string(),
    ] {
        let request = alice.sign_spelled(pending(), &spelling, &new_nonce());
        let reply = server.send(&request);
        assert_eq!(reply.status, 401, "{spelling} was answered {}", reply.text());
        reply.error(401);
    }
    server.send(&alice.sign_spelled(pending(), &canonical, &new_nonce())).ok();
    server.send(&alice.sign_spelled(pending(), &format!("{bare}.1+00:00"), &new_nonce())).ok();
}

#[test]
fn the_same_instant_at_another_offset_is_refused() {
    let server = TestServer::start();
    let later = seconds_ago(-2 * 3600).to_header();
    let elsewhere = later.replace("+00:00", "+02:00");
    server.send(&Person::named("alice").sign_spelled(pending(), &elsewhere, &new_nonce())).error(401);
}

#[test]
fn a_request_may_be_nearly_six_minutes_old_and_no_older() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    for (age, status) in [(5 * 60, 200), (5 * 60 + 45, 200), (6 * 60, 401), (7 * 60, 401), (24 * 3600, 401)] {
        let reply = server.send(&alice.sign_at(pending(), seconds_ago(age), &new_nonce()));
        assert_eq!(reply.status, status, "{age} seconds old: {}", reply.text());
    }
}

#[test]
fn a_request_may_be_ten_seconds_early_and_no_earlier() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    for (lead, status) in [(5, 200), (9, 200), (20, 401), (3600, 401)] {
        let reply = server.send(&alice.sign_at(pending(), seconds_ago(-lead), &new_nonce()));
        assert_eq!(reply.status, status, "{lead} seconds early: {}", reply.text());
    }
}

#[test]
fn the_nonce_is_a_uuid_of_version_4() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    for nonce in [
        "7d444840-9dc0-11d1-b245-5ffdce74fad2",
        "00000000-0000-0000-0000-000000000000",
        "7d444840-9dc0-41d1-c245-5ffdce74fad2",
        "7d444840-9dc0-41d1-b245-5ffdce74fad",
        "7d444840-9dc0-41d1-b245-5ffdce74fad22",
        "{7d444840-9dc0-41d1-b245-5ffdce74fad2}",
        "urn:uuid:7d444840-9dc0-41d1-b245-5ffdce74fad2",
        "7d444840-9dc0-41d1-b245-5ffdce74fadg",
        "random",
    ] {
        let reply = server.send(&alice.sign_with_nonce(pending(), nonce));
        assert_eq!(reply.status, 401, "{nonce} was answered {}", reply.text());
        reply.error(401);
    }
}

#[test]
fn the_key_header_has_its_prefix_and_32_bytes_of_the_standard_alphabet() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    let key = alice.key();
    let bare = key.strip_prefix("svc-pub:").unwrap();
    for value in [
        bare.to_owned(),
        format!("SVC-PUB:{bare}"),
        format!("svc-pub: {bare}"),
        format!("svc-pub:{}", &bare[..42]),
        format!("svc-pub:{bare}A"),
        format!("svc-pub:{bare}=="),
        alice.ssh_key(),
        "svc-pub:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned(),
        "svc-pub:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned(),
    ] {
        assert_refused_with(&server, "X-svc-pk", &value);
    }
}

#[test]
fn the_url_safe_alphabet_is_refused_in_headers() {
    let server = TestServer::start();
    // A key and a signature that hold `+` or `/`, so that the alphabets differ.
    let person = (0..).map(|n| Person::named(&format!("person {n}"))).find(|p| p.key().contains(['+', '/']));
    let person = person.unwrap();
    let url_safe = |text: &str| text.replace('+', "-").replace('/', "_");
    let request = person.sign(pending());
    let key = url_safe(request.header("X-svc-pk"));
    server.send(&request.clone().replace_header("X-svc-pk", &key)).error(401);
    let request = std::iter::repeat_with(|| person.sign(pending()))
        .find(|request| request.header("X-svc-sig").contains(['+', '/']))
        .unwrap();
    let signature = url_safe(request.header("X-svc-sig"));
    server.send(&request.replace_header("X-svc-sig", &signature)).error(401);
}

#[test]
fn padding_is_accepted_and_stray_trailing_bits_are_not() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    let request = alice.sign(pending());
    let padded = format!("{}==", request.header("X-svc-sig"));
    let key = format!("{}=", alice.key());
    server.send(&request.replace_header("X-svc-sig", &padded).replace_header("X-svc-pk", &key)).ok();

    let request = alice.sign(pending());
    let signature = request.header("X-svc-sig").to_owned();
    assert!(signature.ends_with(['A', 'Q', 'g', 'w']), "86 characters leave four bits over");
    let last = char::from(signature.as_bytes()[85] + 1);
    server.send(&request.replace_header("X-svc-sig", &format!("{}{last}", &signature[..85]))).error(401);
}

#[test]
fn header_names_are_read_in_any_letter_case() {
    let server = TestServer::start();
    let mut request = Person::named("alice").sign(pending());
    for (name, _) in &mut request.headers {
        *name = name.to_ascii_uppercase();
    }
    server.send(&request).ok();
}
