#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| countersign_model::checks::documents::check_rebuild(data));
