//! What the fuzz targets check. Nothing here needs a fuzzer: the same checks run over the seeds in `corpus` as a test of
//! the workspace (`crates/server/tests/corpus.rs`), and the model as another one (`crates/server/tests/model.rs`).

pub mod checks;
pub mod model;
