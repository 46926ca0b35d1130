//! The catalogue's answers: what the server writes, the client reads.

use countersign_api::catalogue::{
    KeyListing, KeyPendingResponse, KeyResponse, KeySignedResponse, ListedObjection, ListedRebuilds,
    ListedRelease, ProjectsResponse, ReleaseState, ReleasesResponse, SignedRelease, WaitingFile, WaitingKind,
};
use countersign_core::{documents::signers::Role, rules::quorum::Tally};
use countersign_testing::{INDEX, PROJECT, alice, at, path};
use serde::Serialize;
use serde_json::json;

fn bytes(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).unwrap()
}

fn release() -> ListedRelease {
    ListedRelease {
        index_path: path(INDEX),
        project_id: path(PROJECT),
        tag: None,
        state: ReleaseState::Collecting,
        file_name: None,
        registered_at: at("2026-02-01T12:00:00Z"),
        completed_at: None,
        revoked_at: None,
        revocation_reason: None,
        revocation_begun: None,
        signatures: Tally { collected: 0, needed: 2 },
        objections: 0,
        rebuilds: None,
    }
}

fn rebuilds() -> ListedRebuilds {
    ListedRebuilds { reproduced: false, collected: 1, needed: 2, required: true, different: 3 }
}

fn objection() -> ListedObjection {
    ListedObjection {
        public_key: alice().public_key(),
        objection: "not \"my\" build".to_owned(),
        timestamp: at("2026-02-01T12:00:00.5Z"),
    }
}

fn waiting(kind: WaitingKind) -> WaitingFile {
    WaitingFile {
        kind,
        file_path: path(INDEX),
        project_id: path(PROJECT),
        tag: Some("v1".to_owned()),
        collected: 1,
        needed: 2,
        roles: Role::ALL.to_vec(),
        since: at("2026-02-01T12:00:00Z"),
        by: Some(alice().public_key()),
        reason: Some("a bad build".to_owned()),
        objections: Vec::new(),
        rebuilds: None,
        waits_until: None,
        completes: true,
    }
}

#[test]
fn what_the_server_writes_the_client_reads() {
    let full = ListedRelease {
        tag: Some("v1".to_owned()),
        state: ReleaseState::Revoked,
        file_name: Some("app.tar.gz".to_owned()),
        completed_at: Some(at("2026-02-01T13:00:00Z")),
        revoked_at: Some(at("2026-02-01T14:00:00Z")),
        revocation_reason: Some("a bad build".to_owned()),
        revocation_begun: Some(Tally { collected: 1, needed: 2 }),
        objections: 2,
        rebuilds: Some(rebuilds()),
        ..release()
    };
    let releases = ReleasesResponse { releases: vec![release(), full], more: true };
    assert_eq!(ReleasesResponse::parse(&bytes(&releases)), Ok(releases));
    let projects = ProjectsResponse { projects: vec![path(PROJECT)], more: false };
    assert_eq!(ProjectsResponse::parse(&bytes(&projects)), Ok(projects));
    let mut pending: Vec<_> = WaitingKind::ALL.map(waiting).into();
    pending.push(WaitingFile { rebuilds: Some(rebuilds()), ..waiting(WaitingKind::Rebuild) });
    pending.push(WaitingFile { tag: None, by: None, reason: None, ..waiting(WaitingKind::Release) });
    pending.push(WaitingFile { objections: vec![objection()], ..waiting(WaitingKind::Release) });
    let public_key = alice().public_key();
    let answer = KeyPendingResponse { public_key, pending: pending.clone(), more: false };
    assert_eq!(KeyPendingResponse::parse(&bytes(&answer)), Ok(answer));
    let signed = SignedRelease {
        index_path: path(INDEX),
        project_id: path(PROJECT),
        tag: None,
        state: ReleaseState::Complete,
        signed_at: at("2026-02-01T12:00:00Z"),
        decisive: true,
        rebuilds: Some(ListedRebuilds { reproduced: true, required: false, different: 0, ..rebuilds() }),
    };
    let listed =
        KeyListing { project_id: path(PROJECT), roles: vec![Role::Master], name: None, registrar: true };
    let (signed, listed) = (vec![signed], vec![listed]);
    let all = KeySignedResponse { public_key, signed: signed.clone(), more: true };
    assert_eq!(KeySignedResponse::parse(&bytes(&all)), Ok(all));
    let key = KeyResponse {
        public_key,
        listed,
        listed_more: true,
        formerly: vec![path(PROJECT)],
        last_signed_at: Some(at("2026-02-01T12:00:00Z")),
        signed_count: 9,
        signed,
        begun: pending,
    };
    assert_eq!(KeyResponse::parse(&bytes(&key)), Ok(key));
}

#[test]
fn what_is_not_known_is_absent() {
    let expected = json!({
        "index_path": INDEX,
        "project_id": PROJECT,
        "state": "collecting",
        "registered_at": "2026-02-01T12:00:00Z",
        "signatures": { "collected": 0, "needed": 2 },
    });
    assert_eq!(serde_json::to_value(release()).unwrap(), expected);
    let written = serde_json::to_value(waiting(WaitingKind::Signers)).unwrap();
    assert_eq!(written["roles"], json!(["artifact", "admin", "master", "revocation", "builder"]));
}

#[test]
fn a_field_of_another_kind_is_refused() {
    let releases = serde_json::to_value(ReleasesResponse { releases: vec![release()], more: false }).unwrap();
    let pending = KeyPendingResponse {
        public_key: alice().public_key(),
        pending: vec![WaitingFile { objections: vec![objection()], ..waiting(WaitingKind::Release) }],
        more: false,
    };
    let pending = serde_json::to_value(pending).unwrap();
    for (place, value) in [
        ("/more", json!("no")),
        ("/releases/0/state", json!("done")),
        ("/releases/0/index_path", json!("a/../b")),
        ("/releases/0/registered_at", json!("yesterday")),
        ("/releases/0/signatures", json!({ "collected": 1 })),
        ("/releases/0/signatures/needed", json!(-1)),
        ("/public_key", json!("svc-pub:x")),
        ("/pending/0/kind", json!("other")),
        ("/pending/0/roles", json!(["boss"])),
        ("/pending/0/by", json!("x")),
        ("/pending/0/objections", json!(1)),
        ("/pending/0/objections/0/objection", json!(null)),
        ("/pending/0/objections/0/timestamp", json!("now")),
    ] {
        let mut tried = 0;
        for (good, is_read) in [
            (&releases, (|bytes| ReleasesResponse::parse(bytes).is_ok()) as fn(&[u8]) -> bool),
            (&pending, |bytes| KeyPendingResponse::parse(bytes).is_ok()),
        ] {
            let mut wrong = good.clone();
            let Some(field) = wrong.pointer_mut(place) else { continue };
            *field = value.clone();
            assert!(!is_read(&bytes(&wrong)), "{place}");
            tried += 1;
        }
        assert!(tried > 0, "{place}");
    }
}
