//! What the fuzz targets check. Nothing here needs a fuzzer: the same checks run over the seeds in `corpus` as a test of
//! the workspace (`crates/server/tests/suite/corpus.rs`), and the model as another one (`crates/server/tests/suite/model.rs`).

#![allow(clippy::unwrap_used, reason = "for tests: a check that fails panics")]

pub mod checks;
pub mod model;
