//! The catalogue by key: where it is listed, what it signed, and what waits for it (D52).

use countersign_api::catalogue::{
    KeyListing, KeyPendingResponse, ListedRebuilds, ReleaseState, SignedRelease, WaitingFile, WaitingKind,
};
use countersign_core::documents::signers::Role;
use countersign_core::values::{bounds::KEY_ENTRIES, bounds::LIST_ENTRIES, key::SecretKey};
use countersign_store::catalogue::WantedReleases;
use countersign_testing::{Signers, alice, bob, carol, dave, key, mallory, shifted_seconds, signers};

use crate::support::{path, team::Team, team::time};

const APP: &str = "https/github.com/443/acme/app";
const TOOL: &str = "https/github.com/443/other/tool";

/// Alice and Bob sign releases, Carol is admin, Dave is master, and two of Bob, Carol and key 5 revoke.
fn file(timestamp: &str) -> Signers {
    signers(timestamp)
        .artifact(2, [&alice(), &bob()])
        .admin(1, [&carol()])
        .master(1, [&dave()])
        .revocation(2, [&bob(), &carol(), &key(5)])
        .named(&bob(), "Bob")
}

async fn team() -> Team {
    let team = Team::new();
    let everyone = [&alice(), &bob(), &carol(), &dave(), &key(5)];
    team.activate(APP, &file("2026-01-31T10:00:00Z"), &everyone).await;
    team
}

fn pending(team: &Team, key: &SecretKey) -> Vec<WaitingFile> {
    let KeyPendingResponse { public_key, pending, more } =
        team.catalogue.look().pending_for(&key.public_key());
    assert_eq!((public_key, more), (key.public_key(), false));
    pending
}

fn kinds(team: &Team, key: &SecretKey) -> Vec<WaitingKind> {
    pending(team, key).into_iter().map(|file| file.kind).collect()
}

/// What waits for two signatures of a role on the release v1, since someone began it in this minute.
fn waiting_file(kind: WaitingKind, index: &str, role: Role, by: &SecretKey, since: i64) -> WaitingFile {
    WaitingFile {
        kind,
        file_path: path(index),
        project_id: path(APP),
        tag: Some("v1".to_owned()),
        collected: 0,
        needed: 2,
        roles: vec![role],
        since: time(since),
        by: Some(by.public_key()),
        reason: None,
        objections: Vec::new(),
        rebuilds: None,
        waits_until: None,
        completes: false,
    }
}

#[tokio::test]
async fn a_release_waits_for_the_artifact_signers_who_have_not_signed() {
    let team = team().await;
    let index = team.add(APP, "v1", &["one"], &carol()).await;
    let added = team.minute();
    let waiting = |collected| WaitingFile {
        collected,
        completes: collected == 1,
        ..waiting_file(WaitingKind::Release, &index, Role::Artifact, &carol(), added)
    };
    assert_eq!(pending(&team, &alice()), [waiting(0)]);
    team.sign(&index, &[&alice()]).await;
    assert_eq!(pending(&team, &alice()), []);
    assert_eq!(pending(&team, &bob()), [waiting(1)]);
    assert_eq!(pending(&team, &carol()), []);
    // Who registered it is found again in the history of commits.
    let team = team.restart();
    assert_eq!(pending(&team, &bob()), [waiting(1)]);
    team.add(APP, "v1", &["two"], &bob()).await;
    let corrected = WaitingFile { since: time(team.minute()), by: Some(bob().public_key()), ..waiting(0) };
    assert_eq!(pending(&team, &alice()), [corrected]);
    team.sign(&index, &[&alice(), &bob()]).await;
    assert_eq!(pending(&team, &bob()), []);
}

#[tokio::test]
async fn a_begun_revocation_waits_for_every_revoker_who_has_not_joined() {
    let team = team().await;
    let index = team.add_signed(APP, "v1", &["one"], &[&alice(), &bob()]).await;
    let document = team.revocation(&index, "a bad build");
    assert!(!team.revoke(&index, &document, &carol()).await);
    let begun = team.minute();
    let waiting = WaitingFile {
        collected: 1,
        reason: Some("a bad build".to_owned()),
        completes: true,
        ..waiting_file(WaitingKind::Revocation, &index, Role::Revocation, &carol(), begun)
    };
    let check = |team: &Team| {
        for revoker in [bob(), key(5)] {
            assert_eq!(pending(team, &revoker), std::slice::from_ref(&waiting));
        }
        for other in [alice(), carol(), dave(), mallory()] {
            assert_eq!(pending(team, &other), []);
        }
        let known = team.catalogue.look().describe_key(&carol().public_key());
        // Carol cannot complete it by signing again.
        assert_eq!(known.begun, [WaitingFile { completes: false, ..waiting.clone() }]);
        assert_eq!(team.catalogue.look().describe_key(&bob().public_key()).begun, []);
    };
    check(&team);
    let team = team.restart();
    check(&team);
    assert!(team.revoke(&index, &document, &key(5)).await);
    assert_eq!(pending(&team, &bob()), []);
    assert_eq!(team.catalogue.look().describe_key(&carol().public_key()).begun, []);
}

#[tokio::test]
async fn new_revokers_are_asked_and_former_ones_are_not() {
    let team = team().await;
    let index = team.add_signed(APP, "v1", &["one"], &[&alice(), &bob()]).await;
    let document = team.revocation(&index, "a bad build");
    team.revoke(&index, &document, &carol()).await;
    assert_eq!(kinds(&team, &key(5)), [WaitingKind::Revocation]);
    let rotate = async |timestamp: &str, threshold, signs: &[&SecretKey]| {
        let next = signers(timestamp)
            .artifact(1, [&alice()])
            .admin(1, [&carol()])
            .revocation(threshold, [&carol(), &key(6)]);
        team.propose(APP, &next, &carol()).await;
        team.sign_signers(APP, signs).await;
    };
    rotate("2026-02-01T10:00:00Z", 2, &[&carol(), &key(6)]).await;
    assert_eq!(pending(&team, &key(5)), []);
    assert_eq!(kinds(&team, &key(6)), [WaitingKind::Revocation]);
    assert_eq!(kinds(&team, &carol()), []);
    // One signature is enough now, and it is there: any revoker can carry it out (D20).
    rotate("2026-02-02T10:00:00Z", 1, &[&carol()]).await;
    let waiting = pending(&team, &carol());
    assert_eq!((waiting.len(), waiting[0].collected, waiting[0].needed), (1, 1, 1));
}

#[tokio::test]
async fn a_signers_file_says_as_which_signer_a_key_is_asked() {
    let team = Team::new();
    let everyone = [&alice(), &bob(), &carol(), &dave(), &key(5)];
    team.register(APP, &file("2026-01-31T10:00:00Z"), &alice()).await;
    let registered = team.minute();
    let first = pending(&team, &bob()).remove(0);
    assert_eq!(first.file_path, path(&format!("{APP}/svc.signers.pending/svc.signers.json")));
    assert_eq!((first.kind, first.tag), (WaitingKind::Signers, None));
    assert_eq!((first.collected, first.needed), (0, 5));
    assert_eq!(first.roles, [Role::Artifact, Role::Revocation]);
    assert_eq!((first.since, first.by), (time(registered), Some(alice().public_key())));
    team.sign_signers(APP, &everyone).await;
    let next = signers("2026-02-01T10:00:00Z")
        .artifact(2, [&alice(), &key(7)])
        .admin(1, [&carol()])
        .master(1, [&dave()]);
    team.propose(APP, &next, &alice()).await;
    let roles = |signer: &SecretKey| -> Vec<Vec<Role>> {
        pending(&team, signer).into_iter().map(|file| file.roles).collect()
    };
    assert_eq!(roles(&carol()), [[Role::Admin]]);
    assert_eq!(roles(&dave()), [[Role::Master]]);
    assert_eq!(roles(&key(7)), [[Role::Artifact]], "it is added");
    assert_eq!(roles(&alice()), [[]; 0], "an artifact signer does not decide who signs");
    team.drop_pending(APP).await;
    assert_eq!(roles(&carol()), [[]; 0]);
}

#[tokio::test]
async fn revocations_come_first_then_signers_then_releases_and_the_oldest_of_each_kind() {
    let team = team().await;
    let old = team.add_signed(APP, "v1", &["one"], &[&alice(), &bob()]).await;
    let second = team.add(APP, "v2", &["two"], &carol()).await;
    let third = team.add(APP, "v3", &["three"], &carol()).await;
    // Bob is asked as a signer of this first registration, too.
    team.register(TOOL, &signers("2026-01-31T10:00:00Z").artifact(1, [&bob()]), &bob()).await;
    team.revoke(&old, &team.revocation(&old, "a bad build"), &carol()).await;
    let paths: Vec<_> = pending(&team, &bob()).into_iter().map(|file| file.file_path.to_string()).collect();
    let proposal = format!("{TOOL}/svc.signers.pending/svc.signers.json");
    assert_eq!(paths, [old, proposal, second, third]);
}

#[tokio::test]
async fn first_registrations_of_strangers_crowd_out_nothing_else() {
    let team = Team::new();
    for i in 0..LIST_ENTRIES {
        let file = signers("2026-01-31T10:00:00Z").artifact(1, [&mallory(), &bob()]);
        team.register(&format!("https/host{i}.example/443/x"), &file, &mallory()).await;
    }
    assert_eq!(pending(&team, &bob()).len(), LIST_ENTRIES, "exactly as many as fit");
    team.activate(APP, &signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]), &[&alice(), &bob()])
        .await;
    let index = team.add(APP, "v1", &["one"], &alice()).await;
    let answer = team.catalogue.look().pending_for(&bob().public_key());
    assert_eq!((answer.pending.len(), answer.more), (LIST_ENTRIES, true));
    let last = answer.pending.last().unwrap();
    assert_eq!((last.kind, last.file_path.as_str()), (WaitingKind::Release, index.as_str()));
    // Bob builds the releases of another project, of which the newest comes first.
    let tool = signers("2026-01-31T10:00:00Z").artifact(1, [&carol()]).builders(1, [&bob()]);
    team.activate(TOOL, &tool, &[&carol(), &bob()]).await;
    let old = team.add_signed(TOOL, "v1", &["one"], &[&carol()]).await;
    let new = team.add(TOOL, "v2", &["two"], &carol()).await;
    let mut listed = team.catalogue.look().pending_for(&bob().public_key()).pending;
    let asked = listed.split_off(LIST_ENTRIES - 3);
    let found: Vec<_> = asked.iter().map(|file| (file.kind, file.file_path.as_str())).collect();
    let rebuild = WaitingKind::Rebuild;
    assert_eq!(found, [(WaitingKind::Release, index.as_str()), (rebuild, new.as_str()), (rebuild, &old)]);
}

#[tokio::test]
async fn a_key_is_known_by_where_it_is_listed_and_what_it_signed_last() {
    let team = team().await;
    let tool = signers("2026-01-31T10:00:00Z").artifact(1, [&bob()]);
    team.activate(TOOL, &tool, &[&bob()]).await;
    let first = team.add_signed(APP, "v1", &["one"], &[&bob(), &alice()]).await;
    let second = team.add(APP, "v2", &["two"], &alice()).await;
    team.sign(&second, &[&bob()]).await;
    let signed = team.minute();
    let check = |team: &Team| {
        let known = team.catalogue.look().describe_key(&bob().public_key());
        let listing = |project: &str, roles: &[Role], name: Option<&str>| KeyListing {
            project_id: path(project),
            roles: roles.to_vec(),
            name: name.map(str::to_owned),
            registrar: false,
        };
        let app = listing(APP, &[Role::Artifact, Role::Revocation], Some("Bob"));
        assert_eq!(known.listed, [app, listing(TOOL, &[Role::Artifact], None)]);
        assert!(!known.listed_more);
        let release = |index: &str, tag: &str, state, minute| SignedRelease {
            index_path: path(index),
            project_id: path(APP),
            tag: Some(tag.to_owned()),
            state,
            signed_at: time(minute),
            decisive: state == ReleaseState::Complete,
            rebuilds: None,
        };
        let newest = release(&second, "v2", ReleaseState::Collecting, signed);
        let oldest = release(&first, "v1", ReleaseState::Complete, signed - 3);
        assert_eq!((known.signed_count, known.signed), (2, vec![newest, oldest]));
        let stranger = team.catalogue.look().describe_key(&mallory().public_key());
        assert_eq!((stranger.listed, stranger.signed_count), (Vec::new(), 0));
    };
    check(&team);
    let team = team.restart();
    check(&team);
    // What was corrected has to be signed again.
    team.add(APP, "v2", &["other"], &alice()).await;
    assert_eq!(team.catalogue.look().describe_key(&bob().public_key()).signed_count, 1);
}

/// Two of three builders have to get the same.
#[tokio::test]
async fn a_release_waits_for_its_builders_until_enough_of_them_got_the_same() {
    let builders = [key(21), key(22), key(23)];
    let [first, second, third] = &builders;
    let file = |timestamp| signers(timestamp).artifact(1, [&alice()]).admin(1, [&carol()]);
    let team = Team::new();
    let everyone = [&alice(), &carol(), first, second, third];
    let rebuilt = file("2026-01-31T10:00:00Z").builders(2, builders.each_ref()).reproduced_first();
    team.activate(APP, &rebuilt, &everyone).await;
    let index = team.add(APP, "v1", &["one"], &alice()).await;
    let added = team.minute();
    let rebuilds = |collected, different| ListedRebuilds {
        reproduced: collected == 2,
        collected,
        needed: 2,
        required: true,
        different,
    };
    let waiting = |collected, different| WaitingFile {
        collected,
        rebuilds: Some(rebuilds(collected, different)),
        completes: collected == 1,
        ..waiting_file(WaitingKind::Rebuild, &index, Role::Builder, &alice(), added)
    };
    assert_eq!(pending(&team, first), [waiting(0, 0)]);
    assert_eq!(kinds(&team, &alice()), [WaitingKind::Release]);
    team.rebuild(&index, &["other"], first).await;
    assert_eq!(pending(&team, &alice())[0].rebuilds, Some(rebuilds(0, 1)));
    assert_eq!((pending(&team, first), pending(&team, second)), (vec![], vec![waiting(0, 1)]));
    team.rebuild(&index, &["one"], first).await;
    team.sign(&index, &[&alice()]).await;
    // Who registered a release is known while it collects signatures.
    let complete = |collected| WaitingFile { by: None, ..waiting(collected, 0) };
    let check = |team: &Team, collected| {
        assert_eq!((pending(team, first), pending(team, &alice())), (vec![], vec![]));
        let asked = if collected == 2 { vec![] } else { vec![complete(collected)] };
        assert_eq!(pending(team, third), asked);
        let look = team.catalogue.look();
        let wanted = WantedReleases { project: path(APP), tag: None, state: None };
        let listed = look.releases_of(&wanted, None).unwrap().releases;
        assert_eq!(listed[0].rebuilds, Some(rebuilds(collected, 0)));
        let signed = look.describe_key(&alice().public_key()).signed;
        assert_eq!(signed[0].rebuilds, Some(rebuilds(collected, 0)));
    };
    check(&team, 1);
    let team = team.restart();
    check(&team, 1);
    // A key that is no builder any more cannot state anything.
    team.propose(APP, &file("2026-02-01T10:00:00Z").builders(1, [first, second]), &carol()).await;
    team.sign_signers(APP, &[&carol()]).await;
    assert_eq!((pending(&team, third), pending(&team, second)), (vec![], vec![complete(1)]));
    team.rebuild(&index, &["one"], second).await;
    check(&team, 2);
    check(&team.restart(), 2);
}

#[tokio::test]
async fn a_key_last_signed_a_release_a_rotation_or_a_revocation_and_a_restart_says_the_same() {
    let team = Team::new();
    let file = signers("2026-01-31T10:00:00Z").artifact(1, [&alice(), &bob()]).admin(1, [&carol(), &dave()]);
    team.activate(APP, &file, &[&alice(), &bob(), &carol(), &dave()]).await;
    let last = |team: &Team, key: &SecretKey| team.catalogue.look().last_signed(&key.public_key());
    let listed = last(&team, &bob()).expect("every listed key signed the file that lists it");
    assert_eq!(last(&team, &mallory()), None);
    let index = team.add_signed(APP, "v1", &["one"], &[&alice()]).await;
    let released = time(team.minute());
    assert_eq!((last(&team, &alice()), last(&team, &bob())), (Some(released), Some(listed)));
    let document = team.revocation(&index, "a bad build");
    assert!(team.revoke(&index, &document, &carol()).await);
    let revoked = time(team.minute());
    assert_eq!(last(&team, &carol()), Some(revoked));
    let next = signers("2026-02-01T10:00:00Z").artifact(1, [&alice()]).admin(1, [&carol(), &dave()]);
    team.propose(APP, &next, &dave()).await;
    // What waits can go away again, so it does not count.
    let proposed = team.catalogue.look().last_signed(&dave().public_key());
    team.sign_signers(APP, &[&dave()]).await;
    let rotated = time(team.minute());
    assert_eq!(last(&team, &dave()), Some(rotated));
    assert!(proposed.unwrap() < rotated);
    let check = |team: &Team| {
        let times = [alice(), bob(), carol(), dave()].map(|key| last(team, &key));
        assert_eq!(times, [Some(released), Some(listed), Some(revoked), Some(rotated)]);
        let look = team.catalogue.look();
        let known = look.describe_key(&bob().public_key());
        assert_eq!((known.listed, known.formerly), (Vec::new(), vec![path(APP)]));
        assert_eq!(known.last_signed_at, Some(listed));
        assert_eq!(look.describe_key(&alice().public_key()).formerly, []);
    };
    check(&team);
    check(&team.restart());
}

#[tokio::test]
async fn all_that_a_key_signed_is_listed_in_parts_down_to_a_time() {
    let team = Team::new();
    team.activate(APP, &signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]), &[&alice()]).await;
    let mut minutes = Vec::new();
    for i in 0..=LIST_ENTRIES {
        team.add_signed(APP, &format!("v{i}"), &["x"], &[&alice()]).await;
        minutes.push(team.minute());
    }
    let look = team.catalogue.look();
    let key = alice().public_key();
    let first = look.signed_by(&key, None, None).expect("no place to begin at");
    assert_eq!((first.signed.len(), first.more), (LIST_ENTRIES, true));
    assert!(first.signed.iter().all(|signed| signed.decisive));
    let last = &first.signed.last().unwrap().index_path;
    let rest = look.signed_by(&key, None, Some(last)).expect("a place that is there");
    assert_eq!((rest.signed.len(), rest.more), (1, false));
    assert_eq!(rest.signed[0].tag.as_deref(), Some("v0"));
    // What a key is known by has only the last ones.
    let known = look.describe_key(&key);
    assert_eq!((known.signed_count, known.signed.len()), (LIST_ENTRIES + 1, KEY_ENTRIES));
    assert_eq!(known.signed, first.signed[..KEY_ENTRIES]);
    // The time is inclusive.
    let since = |at| look.signed_by(&key, Some(at), None).expect("no place to begin at").signed.len();
    let newest = time(*minutes.last().unwrap());
    assert_eq!(since(newest), 1);
    assert_eq!(since(shifted_seconds(newest, 1)), 0);
    assert_eq!(since(time(minutes[LIST_ENTRIES - 1])), 2);
    assert!(look.signed_by(&key, None, Some(&path(APP))).is_err());
    assert!(look.signed_by(&bob().public_key(), None, Some(last)).is_err(), "it did not sign that");
    assert_eq!(look.signed_by(&bob().public_key(), None, None).expect("nothing").signed, []);
}
