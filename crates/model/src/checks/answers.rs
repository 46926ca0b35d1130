//! A server's answers as its client reads them.

use countersign_api::reading::{
    parse_chain, parse_error, parse_files_to_sign, parse_pending, parse_ping, parse_proposed,
    parse_registered_release, parse_revoked, parse_signed,
};

use super::{
    history::check_chain,
    promises::{assert_no_duplicates, assert_path, assert_shown},
};

pub fn check(data: &[u8]) {
    let accepted = [
        parse_proposed(data)
            .inspect_err(assert_shown)
            .inspect(|proposed| assert_path(&proposed.project_id))
            .is_ok(),
        parse_signed(data).inspect_err(assert_shown).is_ok(),
        parse_files_to_sign(data)
            .inspect_err(assert_shown)
            .inspect(|files| files.keys().for_each(assert_path))
            .is_ok(),
        parse_chain(data).inspect_err(assert_shown).inspect(check_chain).is_ok(),
        parse_pending(data)
            .inspect_err(assert_shown)
            .inspect(|waiting| waiting.paths.iter().for_each(assert_path))
            .is_ok(),
        parse_registered_release(data).inspect_err(assert_shown).inspect(assert_path).is_ok(),
        parse_revoked(data).inspect_err(assert_shown).is_ok(),
        parse_ping(data).inspect_err(assert_shown).is_ok(),
        parse_error(data).is_some(),
    ];
    if accepted.contains(&true) {
        assert_no_duplicates(data);
    }
}
