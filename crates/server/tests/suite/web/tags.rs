use axum::http::Request;
use countersign_server::web::{reply::entity_tag, visit::Visit};

use crate::support::{INDEX, commit, get, start};

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
