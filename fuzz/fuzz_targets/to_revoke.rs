#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| countersign_model::checks::to_revoke::check(data));
