//! The reading routes: files, files-to-sign, get_signers (spec §4.5–4.7), HEAD and ETag.

use countersign_core::values::key::encode_base64;
use serde_json::json;

use crate::support::{Person, Request, SignersFile, World, alice, days_ago};

fn file() -> SignersFile {
    SignersFile::of(1, &[&alice()])
}

fn world() -> World {
    World::with_project(&file(), &[&alice()])
}

#[test]
fn a_file_is_served_as_its_bytes() {
    let world = world();
    let reply = world.file(&world.active_path("acme/app"));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.body, file().bytes());
    assert_eq!(reply.header("content-type"), Some("application/octet-stream"));
    assert_eq!(reply.header("content-length"), Some(file().bytes().len().to_string().as_str()));
}

#[test]
fn a_directory_is_400_and_an_absent_file_404() {
    let world = world();
    for path in ["acme/app", "acme/app/", "acme", "acme/app/svc.signers"] {
        world.file(&world.id(path)).error(400);
    }
    world.file("http").error(400);
    world.file(&world.id("acme/app/none")).error(404);
    world.file(&format!("{}/below", world.active_path("acme/app"))).error(404);
    world.file("none").error(404);
}

#[test]
fn files_we_write_are_indented_by_two_and_end_in_one_newline() {
    let world = world();
    let index = world.add_release(&alice(), "acme/app/v1");
    let active = world.active_path("acme/app");
    let history = format!("{}/svc.signers.history.json", world.id("acme/app"));
    let metadata = format!("{active}.metadata.json");
    for path in [index.clone(), format!("{index}.signatures.json.pending"), metadata, history] {
        let text = String::from_utf8(world.read(&path)).unwrap();
        assert!(text.starts_with("{\n  \""), "{path}: {text}");
        assert!(text.ends_with("}\n") && !text.ends_with("\n\n"), "{path}: {text}");
        assert!(!text.contains('\t') && !text.contains('\r'), "{path}: {text}");
    }
}

#[test]
fn the_etag_is_the_blob_id_and_is_honoured() {
    let world = world();
    let path = world.active_path("acme/app");
    let blob = world.git().run(&["rev-parse", &format!("main:{path}")]);
    for route in [format!("/v1/files/{path}"), format!("/v1/get_signers/{}", world.id("acme/app/v1/x"))] {
        let tag = world.server.get(&route).header("etag").expect("an ETag").to_owned();
        assert_eq!(tag, format!("\"{blob}\""));
        for matching in [tag.clone(), "*".to_owned(), format!("\"other\", {tag}"), format!("W/{tag}")] {
            let reply = world.server.send(&Request::get(&route).with_header("if-none-match", &matching));
            assert_eq!(reply.status, 304, "{matching}: {}", reply.text());
            assert_eq!(reply.body, b"");
            assert_eq!(reply.header("etag"), Some(tag.as_str()));
        }
        for other in ["\"other\"".to_owned(), format!("\"x{blob}\"")] {
            let reply = world.server.send(&Request::get(&route).with_header("if-none-match", &other));
            assert_eq!(reply.status, 200, "{other}");
        }
    }
}

#[test]
fn the_etag_changes_with_the_content() {
    let (alice, bob) = (alice(), Person::named("bob"));
    let world = world();
    let route = format!("/v1/get_signers/{}", world.id("acme/app"));
    let old = world.server.get(&route).header("etag").unwrap().to_owned();
    let next = SignersFile::dated(days_ago(1)).artifact(1, &[&bob]);
    world.rotate("acme/app", &next, &[&alice, &bob]);
    let reply = world.server.send(&Request::get(&route).with_header("if-none-match", &old));
    assert_eq!((reply.status, &reply.body), (200, &next.bytes()));
}

#[test]
fn head_answers_every_get_route_like_get_without_the_body() {
    let world = world();
    let index = world.add_signed_release("acme/app/v1", &[&alice()]);
    let targets = [
        (format!("/v1/files/{index}"), 200),
        (format!("/v1/files/{index}.none"), 404),
        ("/v1/files/../x".to_owned(), 400),
        (format!("/v1/get_signers/{index}"), 200),
        (format!("/v1/get_signers_chain/{index}"), 200),
        (format!("/v1/get_artifact_signers_chain/{index}"), 200),
        ("/v1/ping".to_owned(), 200),
        (format!("/v1/signatures/{index}"), 200),
        (format!("/v1/files-to-sign/{index}"), 200),
        ("/v1/pending_signatures".to_owned(), 200),
    ];
    for (target, status) in targets {
        let head = world.send_as(&alice(), Request::head(&target));
        let get = world.send_as(&alice(), Request::get(&target));
        assert_eq!((head.status, get.status), (status, status), "{target}: {}", get.text());
        assert_eq!(head.body, b"", "{target}");
        for header in ["content-type", "content-length", "etag"] {
            assert_eq!(head.header(header), get.header(header), "{header} of {target}");
        }
    }
}

#[test]
fn get_signers_finds_the_nearest_active_file_above_a_path() {
    let world = world();
    let index = world.add_release(&alice(), "acme/app/v1");
    for path in [
        world.id("acme/app"),
        world.id("acme/app/"),
        index,
        world.id("acme/app/no/such/file"),
        world.active_path("acme/app"),
        world.id("acme/app/svc.signers"),
    ] {
        let reply = world.server.get(&format!("/v1/get_signers/{path}"));
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert_eq!(reply.body, file().bytes());
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(reply.header("content-length"), Some(file().bytes().len().to_string().as_str()));
    }
}

#[test]
fn get_signers_says_when_there_is_none() {
    let world = world();
    world.register(&alice(), "pending/project", &file()).ok();
    for path in [world.id("acme/other"), world.id("acme"), world.id("pending/project"), "none".to_owned()] {
        let message = world.server.get(&format!("/v1/get_signers/{path}")).error(404);
        let reason = "Error: No signers file found in parent directories";
        assert_eq!(message, format!("No signers file found for: {path}. {reason}"));
    }
    world.server.get("/v1/get_signers/").error(400);
}

#[test]
fn the_search_for_signers_does_not_climb_above_the_repository() {
    let world = world();
    let above = world.server.data_dir();
    for dir in [above.clone(), above.join("repo.git"), above.parent().unwrap().to_owned()] {
        std::fs::create_dir_all(dir.join("svc.signers")).unwrap();
        std::fs::write(dir.join("svc.signers/svc.signers.json"), file().bytes()).unwrap();
    }
    for path in ["x", "x/y", "http/example.org/80/x", "svc.signers/svc.signers.json"] {
        world.server.get(&format!("/v1/get_signers/{path}")).error(404);
    }
}

#[test]
fn files_to_sign_of_an_index_is_the_index() {
    let world = world();
    let index = world.add_release(&alice(), "acme/app/v1");
    let answer = world.get_as(&alice(), &format!("/v1/files-to-sign/{index}")).ok();
    assert_eq!(answer, json!({ "files": { &index: encode_base64(&world.read(&index)) } }));
}

#[test]
fn files_to_sign_of_a_signers_file_are_both_files() {
    let world = world();
    world.register(&alice(), "other", &file()).ok();
    for path in [world.pending_path("other"), world.active_path("acme/app")] {
        let metadata = format!("{path}.metadata.json");
        let answer = world.get_as(&alice(), &format!("/v1/files-to-sign/{path}")).ok();
        let (first, second) = (encode_base64(&world.read(&path)), encode_base64(&world.read(&metadata)));
        assert_eq!(answer, json!({ "files": { &path: first, metadata: second } }));
    }
}

#[test]
fn files_to_sign_of_an_absent_file_names_it() {
    let world = world();
    let target = "/v1/files-to-sign/HTTP/Example.org/none".replace("HTTP", "http");
    let message = world.get_as(&alice(), &target).error(404);
    assert_eq!(message, "File not found: http/example.org/80/none");
    world.get_as(&alice(), "/v1/files-to-sign/").error(400);
    world.get_as(&alice(), "/v1/files-to-sign/a/../b").refused(400, "path traversal");
}
