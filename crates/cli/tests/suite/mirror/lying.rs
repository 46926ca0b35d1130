//! An origin that sends commits that it made up. The mirror stops before them, says which, and keeps serving.

use crate::support::hostile::{HostileServer, Lie};
use crate::support::mirrors::{commits_of, start_mirror, tip_of, url_of};
use crate::support::{
    Git, Request, fsck::fsck, http::send, past::past, rewriting::import, server::TestServer,
    waiting::wait_until,
};

/// The whole journal of the past that has everything in it, as the real server writes it.
fn honest_journal() -> String {
    let mut server = TestServer::prepare(|launch| launch.arg("--dev"));
    past().git().run(&["clone", "--quiet", "--mirror", ".", server.repository().to_str().unwrap()]);
    server.start_again();
    let journal = send(server.address(), &Request::get("/v1/journal")).body;
    String::from_utf8(journal).expect("text")
}

/// The ids of all commits, oldest first.
fn ids_in(journal: &str) -> Vec<&str> {
    journal.lines().filter_map(|line| line.strip_prefix("original-oid ")).collect()
}

/// Follows an origin that sends this, and must be refused for these words. How many commits it took.
#[track_caller]
fn refuses(journal: String, words: &str) -> usize {
    let hostile = HostileServer::alone();
    hostile.lie(move |asked| {
        let is_first = !asked.path.contains("after=");
        is_first.then(|| Lie::journal(journal.clone()))
    });
    let mirror = start_mirror(&hostile.url());
    assert_refused(&mirror, words)
}

#[track_caller]
fn assert_refused(mirror: &TestServer, words: &str) -> usize {
    mirror.await_log("the mirror stops following", 1);
    let said = mirror.get("/readyz").error(503);
    assert!(said.contains(words), "{said}");
    let kept = std::fs::read_to_string(mirror.data_dir().join("mirror.refused")).unwrap();
    assert!(kept.contains("\"at\"") && kept.contains("\"theirs\""), "{kept}");
    let taken = commits_of(mirror);
    if taken > 0 {
        Git::at(mirror.repository()).assert_sound();
        fsck(&mirror.data_dir(), &[]).is_clean();
    }
    taken
}

#[test]
fn another_id_is_refused() {
    let journal = honest_journal();
    let ids = ids_in(&journal);
    let lie = "1234567890123456789012345678901234567890";
    let changed = journal.replacen(ids[5], lie, 1);
    assert_eq!(refuses(changed, lie), 5);
}

/// Each id fits its commit, and Git finds nothing wrong. Only the rules do.
#[test]
fn a_commit_that_the_rules_do_not_give_is_refused() {
    let past = past();
    let mut commits = past.commits.clone();
    let index = "acme/app/v4/svc.index.json";
    let at = past.find("Sign", index);
    // Complete with one signature, where two are needed.
    let complete = format!("{}.signatures.json", past.path(index));
    let pending = format!("{complete}.pending");
    let set = past.content(at, &pending);
    commits[at].remove(&pending);
    commits[at].write(&complete, set);
    commits[at].message = commits[at].message.replacen("Sign", "Sign and complete", 1);
    commits.truncate(at + 1);
    let mut origin = TestServer::prepare(|launch| launch.arg("--dev"));
    let ids = import(&origin.repository(), &commits);
    origin.start_again();
    let mirror = start_mirror(&url_of(&origin));
    let taken = assert_refused(&mirror, &format!("the commit {} breaks the rules", ids[at]));
    assert_eq!((taken, tip_of(&mirror).as_deref()), (at, Some(ids[at - 1].as_str())));
}

#[test]
fn a_refused_mirror_asks_no_more() {
    let journal = honest_journal().replacen("key leaked", "key leakeD", 1);
    let hostile = HostileServer::alone();
    hostile.lie(move |asked| {
        let is_first = !asked.path.contains("after=");
        is_first.then(|| Lie::journal(journal.clone()))
    });
    let mut mirror = start_mirror(&hostile.url());
    mirror.await_log("the mirror stops following", 1);
    let (asked, tip) = (hostile.asked().len(), tip_of(&mirror));
    for _ in 0..2 {
        mirror.restart();
        mirror.await_log("the mirror does not follow", 1);
        wait_until("it is not ready", || mirror.get("/readyz").status == 503);
    }
    assert_eq!(hostile.asked().len(), asked, "not even after a restart");
    assert_eq!(tip_of(&mirror), tip);
    assert_eq!(mirror.get("/projects").status, 200, "it serves what it has");
}
