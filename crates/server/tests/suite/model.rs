//! Sequences of requests, played against the server and against a model of its specification, which must agree. The
//! same model is a fuzz target (`fuzz/fuzz_targets/model.rs`); here the sequences grow from fixed seeds.

use std::{env, fs, path::Path};

use countersign_model::model::{Played, Server, play};
use countersign_testing::Random;

const SEQUENCES: u64 = 60;
const MAX_BYTES: u64 = 900;

/// Bytes that a seed stands for (SplitMix64).
fn grow(seed: u64) -> Vec<u8> {
    let mut random = Random::split_mix(seed);
    let length = random.below(MAX_BYTES);
    (0..length).map(|_| random.draw() as u8).collect()
}

fn add(total: &mut Played, played: Played) {
    total.requests += played.requests;
    total.successes += played.successes;
    total.changes += played.changes;
    total.activations += played.activations;
    total.completed_indexes += played.completed_indexes;
    total.revocations += played.revocations;
    total.withdrawals += played.withdrawals;
    total.objections += played.objections;
    total.rebuilds += played.rebuilds;
    total.waited += played.waited;
    total.vetoes += played.vetoes;
}

#[test]
fn the_server_answers_as_the_model_of_its_specification() {
    let mut server = Server::start();
    let mut total = Played::default();
    let more = env::var("COUNTERSIGN_MODEL_SEQUENCES").ok();
    let sequences = more.map_or(SEQUENCES, |number| number.parse().unwrap());
    for seed in 0..sequences {
        println!("seed {seed}");
        add(&mut total, play(&grow(seed), &mut server));
    }
    println!("{total:?}");
    // Otherwise the sequences would prove little.
    assert!(total.successes * 3 > total.requests, "{total:?}");
    assert!(total.activations > 30 && total.completed_indexes > 30 && total.revocations > 10, "{total:?}");
    assert!(total.withdrawals > 10 && total.objections > 10 && total.rebuilds > 10, "{total:?}");
    assert!(total.waited > 0 && total.vetoes > 0, "{total:?}");
}

#[test]
fn the_server_answers_as_the_model_for_every_seed_of_the_fuzz_target() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/model");
    let mut server = Server::start();
    let mut names: Vec<_> = fs::read_dir(&seeds).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    for name in names {
        println!("{}", name.display());
        let played = play(&fs::read(seeds.join(&name)).unwrap(), &mut server);
        // A seed does what it is called after.
        match name.to_string_lossy().as_ref() {
            "registered-and-signed" => assert_eq!(played.activations, 1, "{played:?}"),
            "released" => assert_eq!((played.activations, played.completed_indexes), (1, 1), "{played:?}"),
            "revoked" => assert_eq!((played.completed_indexes, played.revocations), (1, 1), "{played:?}"),
            "rotated" => assert_eq!((played.activations, played.completed_indexes), (2, 1), "{played:?}"),
            "rotated-while-collecting" => assert_eq!(played.activations, 2, "{played:?}"),
            "revoked-by-two" => assert_eq!(played.revocations, 1, "{played:?}"),
            "pending-revocation-replaced-after-a-rotation" => {
                assert_eq!((played.activations, played.revocations), (2, 1), "{played:?}");
            }
            "withdrawn-and-registered-again" => {
                assert_eq!((played.withdrawals, played.completed_indexes), (1, 1), "{played:?}");
            }
            "objected-and-taken-back" => assert_eq!(played.objections, 2, "{played:?}"),
            "expired-registration" => assert_eq!(played.activations, 1, "{played:?}"),
            _ => {}
        }
    }
}
