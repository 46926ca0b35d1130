//! Histories as one file an entry: what is assembled from them, and how long they may become (D41, D42).

use countersign_api::{answers::ChainResponse, assembly::Assembly};
use countersign_core::documents::{history::EntryFacts, history::HistoryEntry, layout};
use countersign_core::rules::{chain, chain::ChainRefusal, decide::update::UpdateRefusal, stored};
use countersign_core::values::bounds::{FILE_BYTES, HISTORY_BYTES, SIGNATURES, SIGNERS_FILE_BYTES};
use countersign_core::values::key::SecretKey;
use countersign_testing::{ACTIVE, PENDING, PROJECT, Signers, World, alice, at, dave, path, signers};

fn first() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).master(1, [&dave()])
}

/// A project whose signers were replaced so many times, a second after each other.
fn rotated(times: usize) -> World {
    let mut world = World::with(&first(), &[&alice(), &dave()]);
    for n in 0..times {
        world.pass(1);
        let dated = format!("2026-01-31T10:{:02}:{:02}Z", (n + 1) / 60, (n + 1) % 60);
        world.rotate(&signers(&dated).artifact(1, [&alice()]).master(1, [&dave()]), &[&dave()]);
    }
    world
}

fn facts(world: &World) -> Vec<EntryFacts> {
    let project = path(PROJECT);
    stored::history_facts(&world.repo, &project, stored::history_len(&world.repo, &project))
        .expect("a readable history")
}

fn assemble(world: &World, assembly: Assembly, count: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for number in 1..=count {
        let stored = world.repo.bytes(layout::history_entry(&path(PROJECT), number).as_str());
        assembly.append(number, &stored, &mut text);
    }
    text
}

#[test]
fn what_is_assembled_is_the_document_of_the_specification_byte_for_byte() {
    for count in [1, 2, 3, 17] {
        let world = rotated(count - 1);
        let history = world.repo.history(PROJECT);
        assert_eq!(history.entries.len(), count);
        let assembly = Assembly::document(count);
        let document = assemble(&world, assembly, count);
        assert_eq!(String::from_utf8_lossy(&document), String::from_utf8_lossy(&history.write()));
        assert_eq!(assembly.len(facts(&world)), document.len(), "{count} entries");
    }
}

#[test]
fn a_chain_is_the_same_entries_in_the_answer_of_the_specification() {
    let world = rotated(4);
    for count in 1..=5 {
        let assembly = Assembly::chain(count);
        let answered = assemble(&world, assembly, count);
        let read = ChainResponse::parse(&answered).unwrap().history;
        assert_eq!(read.entries, world.repo.history(PROJECT).entries[..count]);
        assert_eq!(assembly.len(facts(&world).into_iter().take(count)), answered.len());
    }
}

#[test]
fn signers_in_force_without_a_history_are_damage() {
    let mut world = World::with(&first(), &[&alice(), &dave()]);
    world.repo.remove(&layout::history_entry(&path(PROJECT), 1));
    assert!(matches!(chain::locate(&world.repo, &path(ACTIVE)), Err(ChainRefusal::Stored(_))));
}

#[test]
fn the_largest_entry_is_a_file_that_can_be_stored() {
    // In a string of JSON a quotation mark takes twice as much.
    let signers_config = "\"".repeat(SIGNERS_FILE_BYTES);
    let metadata = "\"".repeat(16 << 10);
    let seed = |n: usize| std::array::from_fn(|i| if i < 8 { n.to_le_bytes()[i] } else { 9 });
    let people = (0..SIGNATURES).map(|n| SecretKey::from_seed(&seed(n)).public_key()).collect();
    let now = at("2026-01-31T10:00:00Z");
    let bytes = HistoryEntry::largest_assembled(signers_config, metadata, &people, now);
    assert!((FILE_BYTES / 2..FILE_BYTES).contains(&bytes), "{bytes} bytes");
}

/// An entry of this size, as no rotation would make it.
fn filler(world: &World, text_bytes: usize) -> Vec<u8> {
    let mut entry = world.repo.history(PROJECT).entries[0].clone();
    entry.signers_config = "x".repeat(text_bytes);
    entry.write()
}

#[test]
fn a_history_that_took_the_last_proposal_that_fits_is_assembled_within_its_bound() {
    let mut world = World::with(&first(), &[&alice(), &dave()]);
    let project = path(PROJECT);
    let fill = |world: &mut World, number: usize, bytes: usize| {
        let entry = filler(world, bytes);
        world.repo.put(&layout::history_entry(&project, number), &entry);
    };
    const FULL: usize = FILE_BYTES - 8_192;
    let fillers = HISTORY_BYTES / FULL + 1;
    (0..fillers).for_each(|n| fill(&mut world, n + 2, FULL));
    let next = signers("2026-02-01T10:00:00Z").artifact(1, [&alice()]).master(1, [&dave()]);
    let Err(UpdateRefusal::HistoryFull { bytes, .. }) = world.clone().update(&next, &dave()) else {
        panic!("a history of more than its bound")
    };
    fill(&mut world, 2, FULL - (bytes - HISTORY_BYTES));
    world.update(&next, &dave()).unwrap();
    // There was room for the signature of alice, too.
    world.sign_all(PENDING, &[&dave()]);
    let entries = stored::history_len(&world.repo, &project);
    assert_eq!(entries, fillers + 2);
    let length = Assembly::document(entries).len(facts(&world));
    assert!(length <= HISTORY_BYTES && HISTORY_BYTES - length < 1_024, "{length}");
}
