//! The checks of the fuzz targets, over the seeds that are committed with them. A finding of a fuzzer becomes a seed,
//! and so a test.

use std::{collections::BTreeSet, fs, path::Path};

#[test]
fn every_seed_keeps_the_promises_of_its_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (target, check) in countersign_model::checks::TARGETS {
        let mut seeds: Vec<_> = fs::read_dir(corpus.join(target))
            .unwrap_or_else(|error| panic!("seeds of {target}: {error}"))
            .map(|entry| entry.unwrap().path())
            .collect();
        seeds.sort();
        assert!(!seeds.is_empty(), "{target} has no seeds");
        for seed in seeds {
            let data = fs::read(&seed).unwrap();
            let outcome = std::panic::catch_unwind(|| check(&data));
            assert!(outcome.is_ok(), "{target} does not hold for {}", seed.display());
        }
    }
}

#[test]
fn every_target_is_run_over_its_seeds() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let files: BTreeSet<String> = fs::read_dir(targets)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let mut checked: BTreeSet<String> =
        countersign_model::checks::TARGETS.map(|(name, _)| name.to_owned()).into();
    // In `model.rs`.
    checked.insert("model".to_owned());
    assert_eq!(files, checked);
}
