//! What the fuzz targets check. The checks do not need a fuzzer. Tests of the workspace run them over the seeds in
//! `corpus` (`crates/server/tests/suite/corpus.rs`) and play the model (`crates/server/tests/suite/model.rs`).

pub mod checks;
pub mod model;
