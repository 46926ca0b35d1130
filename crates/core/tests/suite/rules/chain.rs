//! The chain of signers files: building it (D19), and refusing every one that was tampered with (D10, D12, D15).

use std::sync::LazyLock;

use countersign_core::{
    documents::{
        history::{History, HistoryEntry},
        metadata::Metadata,
        signatures::{Collected, SignatureSet},
    },
    rules::chain::{self, ChainFault, ChainRefusal},
    values::{
        digest::Sha512,
        key::{PublicKey, SecretKey},
        path::RepoPath,
    },
};
use countersign_testing::{
    ACTIVE, HISTORY, INDEX, PENDING, PROJECT, Signers, World, alice, at, bob, carol, dave, key, mallory,
    path, release, shifted_seconds, signers,
};

/// The four generations of signers: each one with the people whose signatures put it into effect.
fn generation(n: usize) -> (Signers, Vec<SecretKey>) {
    match n {
        0 => (
            signers("2026-01-01T00:00:00Z").artifact(2, [&alice(), &bob()]).master(1, [&dave()]),
            vec![alice(), bob(), dave()],
        ),
        1 => (
            signers("2026-01-02T00:00:00Z").artifact(2, [&alice(), &carol()]).master(1, [&dave()]),
            vec![alice(), bob(), carol()],
        ),
        2 => (
            signers("2026-01-03T00:00:00Z").artifact(1, [&key(5)]).admin(2, [&carol(), &key(6)]),
            vec![dave(), carol(), key(5), key(6)],
        ),
        3 => (
            signers("2026-01-04T00:00:00Z").artifact(1, [&key(7)]).admin(1, [&carol()]),
            vec![carol(), key(6), key(7)],
        ),
        _ => unreachable!("there are four generations"),
    }
}

/// A world with three rotations behind it; before each a release was signed, v0 to v2.
fn world() -> World {
    let (first, everyone) = generation(0);
    let mut world = World::with(&first, &everyone.iter().collect::<Vec<_>>());
    let artifact_signers = [vec![alice(), bob()], vec![alice(), carol()], vec![key(5)]];
    for (n, signers) in artifact_signers.iter().enumerate() {
        world.pass(3_600);
        world.add_release(&release(&format!("v{n}"), "content"), &signers[0]).expect("a release");
        world.sign_all(&index(n), &signers.iter().collect::<Vec<_>>());
        world.pass(3_600);
        let (next, people) = generation(n + 1);
        world.rotate(&next, &people.iter().collect::<Vec<_>>());
    }
    world
}

fn index(n: usize) -> String {
    format!("{PROJECT}/releases/tag/v{n}/svc.index.json")
}

fn history() -> History {
    static VALID: LazyLock<History> = LazyLock::new(|| world().repo.history(PROJECT));
    VALID.clone()
}

/// Signs both texts of an entry anew, as these people would if they agreed.
fn sign_anew(entry: &mut HistoryEntry, people: &[SecretKey]) {
    let set = |text: &str| {
        let mut set = SignatureSet::default();
        for person in people {
            let signature = person.sign(&Sha512::of(text.as_bytes()));
            set.add(person.public_key(), Collected { signature, collected_at: at("2026-02-01T12:00:00Z") });
        }
        set
    };
    (entry.signatures, entry.metadata_signatures) = (set(&entry.signers_config), set(&entry.metadata));
}

/// Rewrites an entry's metadata; its signers sign the new text.
fn rewrite_metadata(entry: &mut HistoryEntry, people: &[SecretKey], change: impl FnOnce(&mut Metadata)) {
    let mut metadata = Metadata::parse(entry.metadata.as_bytes()).expect("sound metadata");
    change(&mut metadata);
    entry.metadata = String::from_utf8(metadata.write()).expect("text");
    sign_anew(entry, people);
}

/// Gives an entry another signers file, with metadata that fits; these people sign both.
fn replace_signers(entry: &mut HistoryEntry, text: String, people: &[SecretKey]) {
    let digest = Sha512::of(text.as_bytes());
    entry.signers_config = text;
    rewrite_metadata(entry, people, |metadata| metadata.signers_file_digest = digest);
}

fn without(set: &SignatureSet, absent: &SecretKey) -> SignatureSet {
    let mut fewer = SignatureSet::default();
    set.entries
        .iter()
        .filter(|(key, _)| **key != absent.public_key())
        .for_each(|(key, entry)| fewer.add(*key, *entry));
    assert!(set.entries.contains_key(&absent.public_key()), "{absent:?} did not sign");
    fewer
}

/// Whose signature on the entry is looked at first.
fn first_signer(n: usize) -> PublicKey {
    *history().entries[n].signatures.entries.iter().next().expect("a signature").0
}

fn people(n: usize) -> Vec<SecretKey> {
    generation(n).1
}

/// Tampers with a valid chain, and expects to be found out at this entry, for this reason.
#[track_caller]
fn assert_found_out(entry: usize, fault: &ChainFault, tamper: impl FnOnce(&mut History)) {
    let mut history = history();
    tamper(&mut history);
    let error = chain::verify(&history, &path(PROJECT)).expect_err("the chain verifies");
    assert_eq!((error.entry, &error.fault), (entry, fault));
}

fn build(world: &World, file: &str) -> Result<usize, ChainRefusal> {
    world.repo.chain_of(file).map(|history| history.entries.len())
}

#[test]
fn a_chain_of_three_rotations_verifies() {
    let history = history();
    let verified = chain::verify(&history, &path(PROJECT)).unwrap();
    assert_eq!(verified.project, path(PROJECT));
    assert_eq!(verified.links.len(), 4);
    for (n, link) in verified.links.iter().enumerate() {
        assert_eq!(link.digest, Sha512::of(generation(n).0.text().as_bytes()));
        assert_eq!(link.activated_at, history.entries[n].timestamp);
    }
    assert_eq!(verified.last().signers.timestamp(), at("2026-01-04T00:00:00Z"));
}

#[test]
fn every_beginning_of_a_chain_verifies() {
    for length in 1..=4 {
        let mut history = history();
        history.entries.truncate(length);
        assert_eq!(chain::verify(&history, &path(PROJECT)).unwrap().links.len(), length);
    }
}

#[test]
fn a_chain_ends_with_the_signers_file_that_governed_the_artifact() {
    let world = world();
    for n in 0..3 {
        let history = world.repo.chain_of(&index(n)).unwrap();
        assert_eq!(history.entries.len(), n + 1);
        assert_eq!(history.entries[n].signers_config, generation(n).0.text());
        assert!(chain::verify(&history, &path(PROJECT)).is_ok());
    }
}

#[test]
fn the_active_signers_file_has_the_whole_history() {
    assert_eq!(build(&world(), ACTIVE), Ok(4));
}

#[test]
fn a_revoked_artifact_still_has_its_chain() {
    let mut world = World::with(&generation(0).0, &[&alice(), &bob(), &dave()]);
    world.release_signed_by(&[&alice(), &bob()]);
    world.revoke_index(&alice());
    let (next, by) = generation(1);
    world.rotate(&next, &by.iter().collect::<Vec<_>>());
    assert_eq!(build(&world, INDEX), Ok(1));
}

#[test]
fn what_is_not_complete_has_no_chain() {
    let mut world = world();
    world.add_release(&release("v3", "content"), &key(7)).unwrap();
    let next = signers("2026-01-05T00:00:00Z").artifact(1, [&key(7)]);
    world.update(&next, &carol()).unwrap();
    let copy = format!("{}.signers.json", index(0));
    for file in
        [&index(3), &index(9), PENDING, HISTORY, PROJECT, &copy, "x", "a/svc.signers/svc.signers.json"]
    {
        let refusal = build(&world, file).unwrap_err();
        assert_eq!(refusal, ChainRefusal::NotSigned(path(file)));
        assert!(refusal.to_string().starts_with("Invalid artifact path:"), "{refusal}");
    }
}

#[test]
fn a_copy_that_the_history_does_not_hold_is_a_fault_of_ours() {
    let mut world = world();
    world.repo.put(
        &path(&format!("{}.signers.json", index(0))),
        generation(0).0.text().replace(", ", ",").as_bytes(),
    );
    assert!(matches!(build(&world, &index(0)), Err(ChainRefusal::Stored(_))));
}

#[test]
fn an_empty_chain_proves_nothing() {
    assert_found_out(0, &ChainFault::Empty, |history| history.entries.clear());
}

#[test]
fn the_chain_of_another_project_is_refused() {
    let other = path("https/github.com/443/acme/other");
    let error = chain::verify(&history(), &other).unwrap_err();
    assert_eq!((error.entry, error.fault), (0, ChainFault::OtherProject(path(PROJECT))));
}

#[test]
fn an_entry_spliced_from_another_project_is_refused() {
    let other: RepoPath = path("https/github.com/443/acme/other");
    assert_found_out(2, &ChainFault::OtherProject(other.clone()), |history| {
        rewrite_metadata(&mut history.entries[2], &people(2), |metadata| metadata.project_id = other);
    });
}

#[test]
fn metadata_of_another_signers_file_is_refused() {
    assert_found_out(1, &ChainFault::OtherSigners, |history| {
        rewrite_metadata(&mut history.entries[1], &people(1), |m| {
            m.signers_file_digest = Sha512::of(b"other")
        });
    });
    assert_found_out(1, &ChainFault::OtherSigners, |history| {
        let of_two = (history.entries[2].metadata.clone(), history.entries[2].metadata_signatures.clone());
        (history.entries[1].metadata, history.entries[1].metadata_signatures) = of_two;
    });
}

#[test]
fn a_chain_that_lost_its_root_is_refused() {
    assert_found_out(0, &ChainFault::Broken, |history| drop(history.entries.remove(0)));
}

#[test]
fn a_root_that_claims_a_predecessor_is_refused() {
    assert_found_out(0, &ChainFault::Broken, |history| {
        rewrite_metadata(&mut history.entries[0], &people(0), |m| m.previous = Some(Sha512::of(b"before")));
    });
}

#[test]
fn a_second_root_inside_the_chain_is_refused() {
    assert_found_out(2, &ChainFault::Broken, |history| {
        rewrite_metadata(&mut history.entries[2], &people(2), |metadata| metadata.previous = None);
    });
}

#[test]
fn a_link_to_an_older_entry_is_refused() {
    assert_found_out(3, &ChainFault::Broken, |history| {
        let second = Sha512::of(history.entries[1].signers_config.as_bytes());
        rewrite_metadata(&mut history.entries[3], &people(3), |metadata| metadata.previous = Some(second));
    });
}

#[test]
fn a_missing_entry_in_the_middle_is_refused() {
    assert_found_out(1, &ChainFault::Broken, |history| drop(history.entries.remove(1)));
}

#[test]
fn swapped_and_repeated_entries_are_refused() {
    assert_found_out(1, &ChainFault::Broken, |history| history.entries.swap(1, 2));
    assert_found_out(0, &ChainFault::Broken, |history| history.entries.reverse());
    assert_found_out(2, &ChainFault::Broken, |history| history.entries.insert(1, history.entries[1].clone()));
}

#[test]
fn a_signers_file_that_is_not_later_is_refused() {
    for time in ["2026-01-03T00:00:00Z", "2026-01-02T00:00:00Z"] {
        assert_found_out(3, &ChainFault::NotLater, |history| {
            let text = generation(3).0.text().replace("2026-01-04T00:00:00Z", time);
            replace_signers(&mut history.entries[3], text, &people(3));
        });
    }
}

#[test]
fn an_activation_before_the_one_before_is_refused() {
    assert_found_out(2, &ChainFault::NotLater, |history| {
        history.entries[2].timestamp = shifted_seconds(history.entries[1].timestamp, -1);
    });
}

#[test]
fn a_dropped_signature_that_was_needed_is_refused() {
    for (n, needed) in [
        (0, dave()),
        (0, alice()),
        (1, bob()),
        (1, carol()),
        (2, key(5)),
        (2, dave()),
        (3, key(6)),
        (3, key(7)),
    ] {
        assert_found_out(n, &ChainFault::NotAgreed, |history| {
            history.entries[n].signatures = without(&history.entries[n].signatures, &needed);
        });
        assert_found_out(n, &ChainFault::NotAgreed, |history| {
            history.entries[n].metadata_signatures =
                without(&history.entries[n].metadata_signatures, &needed);
        });
    }
}

#[test]
fn a_changed_byte_of_a_signed_text_is_refused() {
    assert_found_out(1, &ChainFault::OtherSigners, |history| history.entries[1].signers_config.push(' '));
    assert_found_out(1, &ChainFault::BadSignature(first_signer(1)), |history| {
        history.entries[1].metadata.push(' ');
    });
}

#[test]
fn a_lowered_threshold_is_refused_however_far_the_forger_goes() {
    let lowered = || generation(1).0.text().replacen("\"threshold\": 2", "\"threshold\": 1", 1);
    assert_ne!(lowered(), generation(1).0.text());
    assert_found_out(1, &ChainFault::OtherSigners, |history| history.entries[1].signers_config = lowered());
    // With metadata that fits, the old signatures are wrong;
    assert_found_out(1, &ChainFault::BadSignature(first_signer(1)), |history| {
        let signatures = history.entries[1].signatures.clone();
        replace_signers(&mut history.entries[1], lowered(), &people(1));
        history.entries[1].signatures = signatures;
    });
    // and one who would be enough under the lowered threshold is not enough under the current one.
    assert_found_out(1, &ChainFault::NotAgreed, |history| {
        replace_signers(&mut history.entries[1], lowered(), &[alice(), carol()]);
    });
}

#[test]
fn an_entry_that_only_its_own_keys_signed_is_refused() {
    let taken_over = signers("2026-01-05T00:00:00Z").artifact(1, [&mallory()]);
    assert_found_out(4, &ChainFault::NotAgreed, |history| {
        let before = Sha512::of(history.entries[3].signers_config.as_bytes());
        let mut entry = history.entries[3].clone();
        replace_signers(&mut entry, taken_over.text(), &[mallory()]);
        rewrite_metadata(&mut entry, &[mallory()], |metadata| metadata.previous = Some(before));
        history.entries.push(entry);
    });
}

#[test]
fn keys_that_were_rotated_out_decide_nothing_any_more() {
    assert_found_out(4, &ChainFault::NotAgreed, |history| {
        let before = Sha512::of(history.entries[3].signers_config.as_bytes());
        let mut entry = history.entries[3].clone();
        let back = signers("2026-01-05T00:00:00Z").artifact(2, [&alice(), &bob()]).master(1, [&dave()]);
        replace_signers(&mut entry, back.text(), &[alice(), bob(), dave()]);
        rewrite_metadata(&mut entry, &[alice(), bob(), dave()], |metadata| metadata.previous = Some(before));
        history.entries.push(entry);
    });
}

#[test]
fn signatures_of_the_two_files_are_not_interchangeable() {
    let mut history = history();
    let entry = &mut history.entries[2];
    std::mem::swap(&mut entry.signatures, &mut entry.metadata_signatures);
    let error = chain::verify(&history, &path(PROJECT)).unwrap_err();
    assert!(matches!((error.entry, error.fault), (2, ChainFault::BadSignature(_))));
}

#[test]
fn a_signature_put_under_another_name_is_refused() {
    assert_found_out(0, &ChainFault::BadSignature(dave().public_key()), |history| {
        let entry = &mut history.entries[0];
        let (_, alices) =
            entry.signatures.entries.iter().find(|(key, _)| **key == alice().public_key()).expect("Alice's");
        let alices = *alices;
        entry.signatures = without(&entry.signatures, &dave());
        entry.signatures.add(dave().public_key(), alices);
    });
}

#[test]
fn a_wrong_signature_is_refused_even_where_no_one_needs_it() {
    assert_found_out(1, &ChainFault::BadSignature(mallory().public_key()), |history| {
        let signature = mallory().sign(&Sha512::of(b"other"));
        let wrong = Collected { signature, collected_at: at("2026-02-01T12:00:00Z") };
        history.entries[1].signatures.add(mallory().public_key(), wrong);
    });
}

#[test]
fn documents_are_read_strictly() {
    let verify = |change: fn(&mut HistoryEntry)| {
        let mut history = history();
        change(&mut history.entries[0]);
        sign_anew(&mut history.entries[0], &people(0));
        chain::verify(&history, &path(PROJECT)).map(|_| ()).map_err(|error| error.fault)
    };
    let extra =
        verify(|entry| entry.signers_config = entry.signers_config.replacen('{', "{\"extra\": 1, ", 1));
    assert!(matches!(extra, Err(ChainFault::Signers(_))), "{extra:?}");
    let doubled = verify(|entry| entry.metadata = entry.metadata.replacen('{', "{\"version\": 1, ", 1));
    assert!(matches!(doubled, Err(ChainFault::Metadata(_))), "{doubled:?}");
}

#[test]
fn another_root_is_another_digest_and_only_its_user_can_tell() {
    let mut world = World::new();
    let theirs = signers("2026-01-01T00:00:00Z").artifact(1, [&mallory()]);
    world.register(&theirs, &mallory()).unwrap();
    world.sign(PENDING, &mallory()).unwrap();
    let history = world.repo.chain_of(ACTIVE).unwrap();
    let verified = chain::verify(&history, &path(PROJECT)).unwrap();
    assert_ne!(verified.links[0].digest, Sha512::of(generation(0).0.text().as_bytes()));
}
