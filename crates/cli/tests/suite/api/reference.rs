//! The API's reference, `/openapi.json` and `/docs`: it says what the server does, of every route. Besides what is
//! here, every answer in these tests is compared with it (`support::reference`).

use std::{collections::BTreeSet, fs, path::Path};

use countersign_api::requests::WithdrawBody;
use countersign_api::{answers::ChangedResponse, error_code::ErrorCode, event::EventBody};
use countersign_core::documents::signers::SignersFile as Signers;
use countersign_core::log::checkpoint::{Checkpoint, WitnessRequest};
use countersign_core::log::note::{Note, NoteSignature};
use countersign_core::values::verifier_key::VerifierKey;
use countersign_server::api::openapi::{Content, ContentSchema, EndpointAccess, RequestPart, Row};
use countersign_server::serve::table;
use serde_json::{Value, json};

use crate::journal::read_journal;
use crate::support::reference::{check_instance, document, rows};
use crate::support::{Request, TestServer, html::open};

const METHODS: [&str; 8] = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "QUERY"];

/// The path of a route with its example.
fn target(row: &Row) -> String {
    let path = row.endpoint.parameters.iter().find(|parameter| parameter.part == RequestPart::Path);
    path.map_or_else(
        || row.path.clone(),
        |path| {
            let example = path.example.as_str().expect("a path is text");
            // The rest of a path keeps its slashes; anything else is one segment.
            let example = if path.name == "path" { example.to_owned() } else { example.replace('/', "%2F") };
            row.path.replace(&format!("{{{}}}", path.name), &example)
        },
    )
}

fn contents(row: &Row) -> impl Iterator<Item = &Content> {
    row.endpoint.answers.iter().flat_map(|answer| &answer.contents).chain(&row.endpoint.body)
}

#[test]
fn every_route_is_in_the_document_and_the_other_way_round() {
    let routes: BTreeSet<_> =
        table::all().rows.iter().map(|row| (row.path.clone(), row.method.to_lowercase())).collect();
    let paths = document()["paths"].as_object().unwrap();
    let described: BTreeSet<_> = paths
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (path.clone(), method.clone()))
        })
        .collect();
    assert_eq!(routes, described);
    let ids: BTreeSet<_> = rows().iter().map(|row| row.endpoint.id).collect();
    assert_eq!(ids.len(), routes.len(), "two endpoints share an id");
}

/// A route that does not go through the table would not be described: the table is the only one who makes any.
#[test]
fn no_route_is_made_outside_the_table() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/src");
    let mut found = BTreeSet::new();
    list_uses(&source, &mut found);
    // The second has the route of the other listener, for metrics, and those of its tests.
    let expected = ["routing.rs", "table.rs"].map(str::to_owned);
    assert_eq!(found, BTreeSet::from(expected));
    let router = fs::read_to_string(source.join("serve/table.rs")).unwrap();
    let program = router.split("#[cfg(test)]").next().unwrap();
    assert_eq!(program.matches(".route(").count(), 1, "only `/metrics` is routed by hand");
}

fn list_uses(dir: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list_uses(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let makes_routes = [".route(", ".route_service(", ".nest(", ".nest_service("];
            if makes_routes.iter().any(|call| text.contains(call)) {
                found.insert(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
}

#[test]
fn every_kind_of_route_that_is_counted_is_described() {
    let described: Vec<_> = rows().iter().map(|row| table::kinds().kind_of(&target(row))).collect();
    for (kind, name) in table::kinds().all() {
        // Metrics have their own listener.
        let is_elsewhere = matches!(name, "metrics" | "other");
        assert_eq!(described.contains(&kind), !is_elsewhere, "{name}");
    }
}

#[test]
fn every_described_route_exists_and_has_no_other_method() {
    let server = TestServer::start();
    for row in rows() {
        let others = METHODS
            .into_iter()
            .filter(|method| !rows().iter().any(|other| other.path == row.path && other.method == *method));
        for method in others {
            let reply = server.send(&Request::new(method, target(row)));
            reply.error(405);
            let allowed = reply.header("allow").unwrap_or_else(|| panic!("{method} {}: no Allow", row.path));
            assert!(allowed.split(',').any(|allowed| allowed == row.method), "{allowed}");
        }
        // A stream has no end; it has tests of its own.
        if row.endpoint.id == "events" {
            continue;
        }
        let reply = server.send(&Request::new(row.method, target(row)));
        assert!(!reply.text().contains("no such route"), "{} {}", row.method, row.path);
        let expected = row.endpoint.access == EndpointAccess::Signed;
        assert_eq!(reply.status == 401, expected, "{} {}: {}", row.method, row.path, reply.status);
    }
}

#[test]
fn every_example_is_what_its_schema_describes() {
    let mut count = 0;
    for row in rows() {
        for content in contents(row) {
            let ContentSchema::Type(of) = content.schema else { continue };
            assert!(!content.examples.is_empty(), "{}: {of:?} without an example", row.path);
            let schema = &document()["components"]["schemas"][of.name().as_ref()];
            for (name, example) in &content.examples {
                check_instance(schema, example)
                    .unwrap_or_else(|error| panic!("{} {name}: {error}", row.path));
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count} examples were checked");
}

/// D230.
#[test]
fn every_code_of_an_error_is_in_the_reference() {
    let listed = &document()["components"]["schemas"]["ErrorCode"]["enum"];
    assert_eq!(listed, &json!(ErrorCode::ALL.map(ErrorCode::name).to_vec()));
}

#[test]
fn every_error_in_the_reference_has_a_code_of_its_status() {
    let mut count = 0;
    for row in rows() {
        for answer in row.endpoint.answers.iter().filter(|answer| answer.status >= 400) {
            for (_, example) in answer.contents.iter().flat_map(|content| &content.examples) {
                let Some(code) = example["code"].as_str() else { continue };
                let code = ErrorCode::parse(code).unwrap_or_else(|| panic!("{}: {example}", row.path));
                assert_eq!(code.status(), answer.status, "{}: {example}", row.path);
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count} errors have a code");
}

#[test]
fn a_schema_refuses_what_is_not_of_its_type() {
    let schema = |name: &str| &document()["components"]["schemas"][name];
    for (name, value) in [
        ("ErrorResponse", r#"{}"#),
        ("ErrorResponse", r#"{"error": 1, "code": "busy"}"#),
        ("ErrorResponse", r#"{"error": "no"}"#),
        ("ErrorResponse", r#"{"error": "no", "code": "no"}"#),
        ("SignedResponse", r#"{"is_complete": "yes"}"#),
        ("AssetsBody", r#"{}"#),
        ("AssetsBody", r#"{"forge_release_url": "https://a/", "csum_files": ["https://a/b"]}"#),
        ("PingResponse", r#"{"message": "pong", "auth": {"status": "success"}}"#),
        ("StatusResponse", r#"{"file_path": "a", "is_complete": true, "revoked": null}"#),
        ("ChainResponse", r#"{"history": {"entries": [{}]}}"#),
    ] {
        let value = serde_json::from_str(value).unwrap();
        assert!(check_instance(schema(name), &value).is_err(), "{name}: {value}");
    }
}

/// Whether the bytes of an example can be read.
type Reads = fn(&[u8]) -> bool;

/// How the server reads what is sent to it, where that is text, or no type of `api`.
const BODIES: [(&str, Reads); 3] = [
    ("withdraw", |bytes| WithdrawBody::parse(bytes).is_ok()),
    ("add_checkpoint", |bytes| WitnessRequest::parse(bytes).is_ok()),
    ("log_cosignature", is_checkpoint),
];

/// How the client reads what it is answered with, where that is text, or no type of `api`.
const ANSWERS: [(&str, Reads); 9] = [
    ("withdraw", |bytes| ChangedResponse::parse(bytes).is_ok()),
    ("get_signers", |bytes| Signers::parse(bytes).is_ok()),
    ("events", |bytes| {
        let data = bytes.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"data: "));
        EventBody::parse(data.expect("an event has data")).is_ok_and(|event| event.is_some())
    }),
    ("journal", |bytes| read_journal(bytes).len() == 1),
    ("add_checkpoint", |bytes| NoteSignature::parse_lines(bytes).is_ok()),
    ("log_checkpoint", is_checkpoint),
    ("log_cosigned", is_checkpoint),
    ("witnessed_checkpoint", is_checkpoint),
    ("log_key", |bytes| VerifierKey::parse(String::from_utf8_lossy(bytes).trim_end()).is_ok()),
];

fn is_checkpoint(note: &[u8]) -> bool {
    Note::parse(note).is_ok_and(|note| Checkpoint::parse(note.text()).is_ok())
}

#[test]
fn examples_are_read_by_the_server_and_by_the_client() {
    let check = |row: &Row, contents: Vec<&Content>, readers: &[(&str, Reads)]| {
        for (name, example) in contents.iter().flat_map(|content| &content.examples) {
            let reads = readers.iter().find(|(id, _)| *id == row.endpoint.id);
            let Some((id, reads)) = reads else {
                // The tests of `api` read what is JSON.
                assert!(!example.is_string(), "{}: no reader", row.endpoint.id);
                continue;
            };
            // A text is what it says; everything else is JSON.
            let text = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
            assert!(reads(text.as_bytes()), "{id} {name}: {text}");
        }
    };
    for row in rows() {
        check(row, row.endpoint.body.iter().collect(), &BODIES);
        let successes = row.endpoint.answers.iter().filter(|answer| answer.status < 300);
        let successes = successes.flat_map(|answer| &answer.contents);
        let is_read = row.endpoint.id != "log_cosignature";
        check(row, successes.filter(|_| is_read).collect(), &ANSWERS);
    }
}

#[test]
fn everybody_gets_the_document_and_it_is_sent_once_to_each() {
    let server = TestServer::start();
    let reply = server.get("/openapi.json");
    assert_eq!(reply.ok(), *document());
    assert_eq!(document()["openapi"], "3.1.0");
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    let tag = reply.header("etag").unwrap();
    let again = server.send(&Request::get("/openapi.json").with_header("if-none-match", tag));
    assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(tag)));
    let other = server.send(&Request::get("/openapi.json").with_header("if-none-match", "\"another\""));
    assert_eq!(other.status, 200);
}

#[test]
fn the_page_shows_every_endpoint_and_leads_to_it() {
    let server = TestServer::start();
    let overview = open(&server, "/docs");
    for row in rows() {
        let (id, address) = (row.endpoint.id, format!("/docs/{}", row.endpoint.section.slug()));
        overview.links_to(&address).links_to(&format!("{address}#{id}"));
        let page = open(&server, &address).text;
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
        assert!(page.contains(&format!("href=\"#{id}\"")), "{id}");
        assert!(page.contains(&row.path), "{}", row.path);
        for answer in &row.endpoint.answers {
            let plain: String = answer.about.chars().take_while(|c| *c != '`' && *c != '\'').collect();
            assert!(page.contains(&plain), "{id}: {plain}");
        }
    }
    // Examples are text from outside as much as any other.
    let page = open(&server, "/docs/projects").text;
    assert!(page.contains("&quot;signers_file_url&quot;"), "the examples are not escaped");
}

#[test]
fn authentication_is_described_where_it_is_asked_for() {
    let schemes = document()["components"]["securitySchemes"].as_object().unwrap();
    let names: BTreeSet<_> = schemes.values().map(|scheme| scheme["name"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["x-svc-timestamp", "x-svc-nonce", "x-svc-sig", "x-svc-pk"]));
    for row in rows() {
        let method = row.method.to_ascii_lowercase();
        let security = &document()["paths"][&row.path][&method]["security"];
        let all: Value = schemes.keys().map(|name| (name.clone(), Value::Array(Vec::new()))).collect();
        match row.endpoint.access {
            EndpointAccess::Signed => assert_eq!(*security, Value::Array(vec![all])),
            EndpointAccess::Optional => assert_eq!(security[1], all),
            EndpointAccess::Open => assert_eq!(*security, Value::Array(Vec::new())),
        }
    }
}
