//! Staples, verified as a client does.

use std::{collections::BTreeSet, time::Duration};

use countersign_core::proof::freshness::{Freshness, LogTrust, LoggedSigners, StapleError, StapleSubject};
use countersign_core::proof::{bundle::Staple, freshness};
use countersign_core::values::{digest::Sha512, time::Timestamp};
use countersign_core::{documents::layout, log::record::LoggedState, rules::snapshot::Snapshot as _};
use countersign_log::{LogOptions, NoStaple, TransparencyLog};
use countersign_testing::path;

use crate::support::{Fixture, complete, index, log_key, policy, revoke, wait_for, witness};

const ONE: &str = "https/a.example/443/one";
const NOW: u64 = 1_800_000_000;

fn now() -> Timestamp {
    Timestamp::from_unix_seconds(i64::try_from(NOW).unwrap()).unwrap()
}

fn subject(fixture: &Fixture, release: &str) -> StapleSubject {
    let head = fixture.store().head();
    let digest = |path| Sha512::of(&head.read(&path).unwrap().unwrap());
    let signers = [format!("{ONE} 1"), format!("{ONE} 2")];
    StapleSubject {
        index_path: index(release),
        index_digest: digest(index(release)),
        project: path(ONE),
        signers: signers.iter().map(|signers| Sha512::of(signers.as_bytes())).collect(),
        signer_keys: BTreeSet::new(),
    }
}

fn staple(fixture: &Fixture, log: &TransparencyLog, release: &str) -> Result<Staple, NoStaple> {
    let made = log.staple(|| fixture.store().head(), &index(release)).1?;
    // As it goes over the network.
    let bytes = made.write();
    assert!(bytes.len() < 6_000, "{} bytes", bytes.len());
    let read = Staple::parse(&bytes).unwrap();
    assert_eq!(read, made);
    Ok(read)
}

fn verify(fixture: &Fixture, staple: &Staple, release: &str) -> Result<Freshness, StapleError> {
    freshness::verify(staple, &subject(fixture, release), LogTrust::Key(&log_key().public), now())
}

#[test]
fn they_say_what_the_repository_holds() {
    let fixture = Fixture::new();
    let log = fixture.start_log();
    fixture.fill();
    let newest = fixture.wait_for_all(&log);
    let revocation = Sha512::of(format!("revocation of {ONE}/releases/v2").as_bytes());
    for (release, state, newer) in [
        ("v1", LoggedState::Complete, 3),
        ("v2", LoggedState::Revoked(revocation), 2),
        ("v4", LoggedState::Complete, 0),
    ] {
        let release = format!("{ONE}/releases/{release}");
        let shown = staple(&fixture, &log, &release).unwrap();
        let proven = verify(&fixture, &shown, &release).unwrap();
        assert_eq!((proven.state, proven.newer, proven.signers), (state, newer, LoggedSigners::Newest));
        assert_eq!(&proven.checkpoint, newest.checkpoint());
        assert_eq!(proven.as_of, None, "no witness has said anything");
    }
}

#[test]
fn a_release_without_a_staple_is_told_why() {
    let fixture = Fixture::new();
    let options = LogOptions { checkpoint_every: Duration::from_secs(3_600), ..fixture.options() };
    fixture.fill();
    let log = TransparencyLog::start(fixture.store(), options).unwrap();
    fixture.wait_for_all(&log);
    let release = format!("{ONE}/releases/v5");
    let refused = staple(&fixture, &log, &release).unwrap_err();
    assert!(matches!(refused, NoStaple::Collecting(_)), "{refused}");
    fixture.commit(complete(&release));
    let refused = staple(&fixture, &log, &release).unwrap_err();
    assert!(matches!(refused, NoStaple::NotLogged { size: 25, .. }), "{refused}");
    let refused = staple(&fixture, &log, &format!("{ONE}/releases/v9")).unwrap_err();
    assert!(matches!(refused, NoStaple::Unknown(_)), "{refused}");
    // A path that is no index has none either.
    let signers = log.staple(|| fixture.store().head(), &layout::active_signers(&path(ONE))).1.unwrap_err();
    assert!(matches!(signers, NoStaple::Collecting(_)), "{signers}");
}

#[test]
fn they_are_made_for_the_newest_checkpoint_that_enough_witnesses_have_cosigned() {
    let mut fixture = Fixture::new();
    fixture.fill();
    let (one, two, three) = (witness(1), witness(2), witness(3));
    let demanded = policy(2, &[&one, &two, &three]);
    let start = |fixture: &Fixture| {
        let options = LogOptions { policy: Some(demanded.clone()), ..fixture.options() };
        TransparencyLog::start(fixture.store(), options).unwrap()
    };
    let log = start(&fixture);
    let first = fixture.wait_for_all(&log);
    let release = format!("{ONE}/releases/v4");
    assert!(matches!(staple(&fixture, &log, &release), Err(NoStaple::NotCosigned)));
    let cosign = |log: &TransparencyLog, who: &crate::support::NamedKey, size: u64, time: u64| {
        let checkpoint =
            if size == first.checkpoint().size { first.clone() } else { log.newest_checkpoint().unwrap() };
        assert_eq!(checkpoint.checkpoint().size, size);
        let line = checkpoint.cosign(&who.public, &who.secret, time).line;
        log.add_cosignatures(size, &[line])
    };
    cosign(&log, &one, 25, NOW - 100).unwrap();
    // The same witness again is still one.
    cosign(&log, &one, 25, NOW - 90).unwrap();
    assert!(matches!(staple(&fixture, &log, &release), Err(NoStaple::NotCosigned)));
    cosign(&log, &two, 25, NOW - 80).unwrap();
    let as_of = |log: &TransparencyLog, fixture: &Fixture| {
        let shown = staple(fixture, log, &release).unwrap();
        let proven =
            freshness::verify(&shown, &subject(fixture, &release), LogTrust::Policy(&demanded), now())
                .unwrap();
        let as_of = proven.as_of.unwrap().nanos_since(now()) / 1_000_000_000;
        (as_of, proven.state, proven.checkpoint.size)
    };
    assert_eq!(as_of(&log, &fixture), (-90, LoggedState::Complete, 25));

    // A newer checkpoint does not count before enough witnesses have seen it.
    fixture.commit(revoke(&release));
    let second = fixture.wait_for_all(&log);
    assert_eq!(second.checkpoint().size, 26);
    cosign(&log, &two, 26, NOW - 20).unwrap();
    assert_eq!(as_of(&log, &fixture), (-90, LoggedState::Complete, 25));
    // Meanwhile the older one is cosigned once more.
    cosign(&log, &three, 25, NOW - 30).unwrap();
    assert_eq!(as_of(&log, &fixture), (-80, LoggedState::Complete, 25));

    // All of that outlasts a restart, with caches and without.
    drop(log);
    for is_cached in [true, false] {
        fixture.open();
        if !is_cached {
            std::fs::remove_file(fixture.log_dir().join("leaves")).unwrap();
        }
        let log = start(&fixture);
        wait_for(&log, |log| (log.figures().size == 26).then_some(()));
        wait_for(&log, |log| staple(&fixture, log, &release).ok());
        assert_eq!(as_of(&log, &fixture), (-80, LoggedState::Complete, 25));
    }
    let log = start(&fixture);
    wait_for(&log, |log| staple(&fixture, log, &release).ok());
    cosign(&log, &one, 26, NOW - 10).unwrap();
    let (time, state, size) = as_of(&log, &fixture);
    assert!(matches!(state, LoggedState::Revoked(_)));
    assert_eq!((time, size), (-20, 26));
    // What is older does not come back.
    cosign(&log, &three, 25, NOW).unwrap_err();
}
