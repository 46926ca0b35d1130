//! Numbers of signatures: how many count, and how many are needed.

use countersign_core::values::key::SecretKey;
use countersign_core::{documents::signers::SignersFile, rules::quorum::Consent, rules::quorum::Tally};
use countersign_testing::{alice, bob, carol, dave, key, mallory, public, signers};

fn file(signers: &countersign_testing::Signers) -> SignersFile {
    SignersFile::parse(signers.text().as_bytes()).unwrap()
}

#[test]
fn each_group_counts_up_to_its_threshold() {
    let signers = signers("2026-01-31T10:00:00Z");
    let file = file(&signers.artifact(1, [&alice(), &bob()]).artifact(2, [&bob(), &carol(), &dave()]));
    let count = |signed| {
        let Tally { collected, needed } = Tally::of(file.artifact_groups(), &signed);
        (collected, needed)
    };
    assert_eq!(count(public([])), (0, 3));
    assert_eq!(count(public([&alice(), &mallory()])), (1, 3));
    assert_eq!(count(public([&alice(), &bob()])), (2, 3), "the first group needs no second signature");
    assert_eq!(count(public([&alice(), &bob(), &carol(), &dave()])), (3, 3));
}

#[test]
fn a_proposal_counts_its_conditions_in_the_way_that_has_begun_and_is_nearest() {
    let current = file(&signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]).master(1, [&dave()]));
    let proposed = file(&signers("2026-02-01T10:00:00Z").artifact(1, [&alice(), &carol()]));
    let consent = Consent { current: Some(&current), proposed: &proposed };
    let count = |signed| {
        let Tally { collected, needed } = Tally::of_consent(&consent, &signed);
        (collected, needed)
    };
    // Two admins, although the master alone would be nearer, and the key that is added, who is an admin of the new file
    // (D183).
    assert_eq!(count(public([])), (0, 3));
    assert_eq!(count(public([&alice()])), (1, 3), "alice counts in the old file and in the new one");
    assert_eq!(count(public([&dave(), &carol()])), (2, 2));
    assert_eq!(count(public([&alice(), &mallory()])), (1, 3));
    // Dave alone is the nearer way once both have begun, and each way is counted by itself.
    let admins = &consent.conditions()[0];
    for (signed, collected, needed) in
        [(public([]), 0, 2), (public([&alice()]), 1, 2), (public([&alice(), &dave()]), 1, 1)]
    {
        assert_eq!(Tally::of_condition(admins, &signed), Tally { collected, needed });
    }
    // The fewest signatures that are left, not the fewest in all or by share.
    let (three, five) = (public([&alice(), &bob(), &dave()]), public([&alice(), &bob(), &carol(), &dave()]));
    let plain = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]);
    let team = plain.clone().admin(3, [&alice(), &bob(), &carol()]).master(3, [&dave(), &key(5), &key(6)]);
    let large = plain.admin(5, [&alice(), &bob(), &carol(), &key(5), &key(6)]).master(2, [&dave(), &key(7)]);
    for (team, signed, expected) in [(team, three, (2, 3)), (large, five, (1, 2))] {
        let current = file(&team);
        let consent = Consent { current: Some(&current), proposed: &proposed };
        let Tally { collected, needed } = Tally::of_condition(&consent.conditions()[0], &signed);
        assert_eq!((collected, needed), expected);
    }
    let first = Consent { current: None, proposed: &proposed };
    assert_eq!(Tally::of_consent(&first, &public([&alice()])), Tally { collected: 1, needed: 2 });
}

#[test]
fn people_who_count_in_several_groups_are_counted_once() {
    let founders = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).admin(1, [&alice(), &bob()]);
    let current = file(&founders.clone().admin(2, [&bob(), &carol(), &dave()]));
    let consent = Consent { current: Some(&current), proposed: &current };
    let count = |signed| Tally::of_consent(&consent, &signed);
    // Bob is in both groups of admins.
    assert_eq!(count(public([])), Tally { collected: 0, needed: 2 });
    assert_eq!(count(public([&carol()])), Tally { collected: 1, needed: 2 });
    assert_eq!(count(public([&alice()])), Tally { collected: 1, needed: 3 });
    // Bob need not sign any more for the group that alice meets.
    let apart = file(&founders.admin(2, [&carol(), &dave()]));
    let consent = Consent { current: Some(&apart), proposed: &apart };
    assert_eq!(Tally::of_consent(&consent, &public([&alice()])), Tally { collected: 1, needed: 3 });
    let many: Vec<SecretKey> = (1..=100).map(key).collect();
    let crowd = signers("2026-02-01T10:00:00Z").artifact(1, [&many[0]]);
    let crowd = file(&many.iter().fold(crowd, |file, key| file.admin(1, [key])));
    let consent = Consent { current: Some(&crowd), proposed: &crowd };
    assert_eq!(Tally::of_consent(&consent, &public([&many[5]])), Tally { collected: 1, needed: 100 });
}

#[test]
fn any_one_admin_revokes_unless_the_file_says_otherwise() {
    let signers = signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]);
    let signed = public([&alice(), &bob()]);
    let plain = file(&signers);
    assert_eq!(Tally::of_revocation(&plain, &signed), Tally { collected: 1, needed: 1 });
    let explicit = file(&signers.revocation(2, [&bob(), &key(5)]));
    assert_eq!(Tally::of_revocation(&explicit, &signed), Tally { collected: 1, needed: 2 });
}
