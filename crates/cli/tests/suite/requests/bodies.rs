//! D29, D30: bodies that are not announced, not text, or kept for good.

use serde_json::json;

use crate::support::{Request, SignersFile, TestServer, World, alice, days_ago};

const BODY_LIMIT: usize = 1024 * 1024;
const KEPT_LIMIT: usize = 64 * 1024;

#[test]
fn a_body_that_is_not_announced_is_bounded_and_bytes_that_are_no_text_are_refused() {
    let server = TestServer::start();
    let post = |body: Vec<u8>| Request::new("POST", "/v1/assets").with_body(body);
    let unannounced = Request { chunked: true, ..post(vec![b' '; BODY_LIMIT + 1]) };
    server.send(&alice().sign(unannounced)).error(413);
    server.send(&post(vec![0xff, 0xfe])).error(401);
    server.send(&alice().sign(post(vec![b'"', 0xff, b'"']))).error(400);
}

/// What would be kept has at most 64 KiB, and a revocation 16.
#[test]
fn what_is_kept_for_good_is_small() {
    let world = World::start();
    let mut commits = 1;
    for (route, file) in [
        ("/v1/register_repo", SignersFile::of(1, &[&alice()])),
        ("/v1/update_signers", SignersFile::of(1, &[&alice()]).redated(days_ago(5))),
    ] {
        let url = world.publish("acme/app", &file);
        // A body of this length, by an unknown field.
        let post = |length: usize| {
            let body = |padding: usize| {
                json!({ "signers_file_url": url, "public_key": alice().body_key(), "x": " ".repeat(padding) })
                    .to_string()
            };
            let body = body(length - body(0).len());
            world.send_as(&alice(), Request::new("POST", route).with_body(body))
        };
        for length in [KEPT_LIMIT + 1, BODY_LIMIT] {
            post(length).refused(413, &KEPT_LIMIT.to_string());
        }
        assert_eq!(world.git().commit_count(), commits);
        post(KEPT_LIMIT).ok();
        world.sign_all(&world.pending_path("acme/app"), &[&alice()]);
        commits += 2;
    }
    let index = world.add_signed_release("acme/app/v1", &[&alice()]);
    let commits = world.git().commit_count();
    let document = world.revocation_of(&index, "key leaked");
    let spaces = |length: usize| document.clone() + &" ".repeat(length - document.len());
    world.revoke_with(&alice(), &index, &spaces(16 * 1024 + 1)).refused(400, "16 KiB");
    world.revoke_with(&alice(), &index, &spaces(KEPT_LIMIT)).error(413);
    assert_eq!(world.git().commit_count(), commits);
    world.revoke_with(&alice(), &index, &spaces(16 * 1024)).ok();
}
