//! The signers file: its rules and its roles (D8).

use countersign_core::documents::signers::{Role, SignersFile, keys_of};
use countersign_core::values::{json::ParseError, key::PublicKey, key::SecretKey};
use countersign_testing::{
    Signers, alice, assert_mentions, bob, carol, dave, key, public, signer_text, signers, steady,
};
use proptest::prelude::*;

const TIME: &str = "2026-01-31T10:00:00Z";

fn parse(text: &str) -> Result<SignersFile, ParseError> {
    SignersFile::parse(text.as_bytes())
}

fn base() -> Signers {
    signers(TIME).artifact(2, [&alice(), &bob()])
}

/// The valid file with one thing changed.
fn changed(from: &str, to: &str) -> Result<SignersFile, ParseError> {
    let text = base().text();
    assert!(text.contains(from), "{text} has no {from}");
    parse(&text.replacen(from, to, 1))
}

#[track_caller]
fn assert_refused(result: Result<SignersFile, ParseError>, field: &str) {
    let error = result.expect_err(field);
    assert_mentions(&error.to_string(), &[field]);
}

/// A file with one group of artifact signers, given as the text of its entries.
fn with_entries(threshold: usize, entries: &[String]) -> Result<SignersFile, ParseError> {
    parse(&format!(
        r#"{{"version": 1, "timestamp": "{TIME}", "artifact_signers": [{{"threshold": {threshold}, "signers": [{}]}}]}}"#,
        entries.join(",")
    ))
}

fn named(key: &SecretKey, name: &str) -> String {
    let name = serde_json::to_string(name).expect("JSON");
    format!(r#"{{"kind": "key", "data": {{"pubkey": "{}"}}, "name": {name}}}"#, key.public_key())
}

fn keys(groups: &[countersign_core::documents::signers::Group]) -> std::collections::BTreeSet<PublicKey> {
    keys_of(groups).collect()
}

#[test]
fn the_smallest_file_is_accepted() {
    let file = parse(&signers(TIME).artifact(1, [&alice()]).text()).unwrap();
    assert_eq!(file.timestamp(), countersign_testing::at(TIME));
    assert_eq!(file.keys(), public([&alice()]));
}

#[test]
fn every_spelling_of_a_key_is_accepted_and_is_the_same_key() {
    let key = alice().public_key();
    for spelling in [key.to_string(), key.to_base64(), format!("{key}=")] {
        assert_eq!(with_entries(1, &[signer_text(&spelling)]).unwrap().keys(), public([&alice()]));
    }
}

#[test]
fn the_version_is_1() {
    assert_refused(changed("\"version\": 1", "\"version\": 2"), "version");
    assert_refused(changed("\"version\": 1", "\"version\": 0"), "version");
    assert_refused(changed("\"version\": 1, ", ""), "version");
}

#[test]
fn the_timestamp_is_an_rfc_3339_time() {
    assert_refused(changed(TIME, "yesterday"), "timestamp");
    assert_refused(changed(&format!("\"{TIME}\""), "1769947200"), "timestamp");
    assert_refused(changed(&format!("\"timestamp\": \"{TIME}\", "), ""), "timestamp");
}

#[test]
fn unknown_fields_are_refused_and_named() {
    assert_refused(changed("\"version\"", "\"comment\": \"x\", \"version\""), "comment");
    assert_refused(changed("\"threshold\"", "\"weight\": 1, \"threshold\""), "weight");
    assert_refused(changed("\"kind\"", "\"email\": \"x\", \"kind\""), "email");
    assert_refused(changed("\"pubkey\"", "\"id\": \"x\", \"pubkey\""), "id");
}

#[test]
fn artifact_signers_are_required() {
    assert_refused(parse(&signers(TIME).admin(1, [&alice()]).text()), "artifact_signers");
}

#[test]
fn a_role_that_is_null_or_empty_is_refused() {
    for role in ["artifact_signers", "admin_keys", "master_keys", "revocation_keys"] {
        for value in ["null", "[]", "{}"] {
            let text = match role {
                "artifact_signers" => {
                    format!(r#"{{"version": 1, "timestamp": "{TIME}", "{role}": {value}}}"#)
                }
                _ => base().text().replacen("\"version\"", &format!("\"{role}\": {value}, \"version\""), 1),
            };
            assert_refused(parse(&text), role);
        }
    }
}

#[test]
fn an_empty_group_is_refused() {
    assert_refused(with_entries(1, &[]), "artifact_signers[0].signers");
    assert_refused(with_entries(0, &[]), "artifact_signers[0]");
}

#[test]
fn a_threshold_is_between_1_and_the_size_of_its_group() {
    assert_refused(changed("\"threshold\": 2", "\"threshold\": 0"), "artifact_signers[0].threshold");
    assert_refused(changed("\"threshold\": 2", "\"threshold\": 3"), "artifact_signers[0].threshold");
    assert_refused(
        changed("\"threshold\": 2", "\"threshold\": 18446744073709551615"),
        "artifact_signers[0].threshold",
    );
    assert_refused(changed("\"threshold\": 2, ", ""), "artifact_signers[0].threshold");
    let second_role = base().admin(2, [&alice()]).text();
    assert_refused(parse(&second_role), "admin_keys[0].threshold");
}

#[test]
fn a_key_twice_in_one_group_is_refused_in_any_spelling() {
    let key = alice().public_key();
    for second in [key.to_string(), key.to_base64(), format!("{key}=")] {
        let entries = [signer_text(&key.to_string()), signer_text(&second)];
        assert_refused(with_entries(1, &entries), "artifact_signers[0].signers[1]");
    }
}

#[test]
fn a_key_may_be_in_two_groups_and_two_roles() {
    assert!(
        parse(&base().artifact(1, [&alice()]).admin(1, [&alice()]).revocation(1, [&alice()]).text()).is_ok()
    );
}

#[test]
fn a_master_key_has_no_other_role() {
    assert_refused(parse(&base().master(1, [&alice()]).text()), "master_keys");
    assert_refused(parse(&base().admin(1, [&carol()]).master(1, [&carol()]).text()), "master_keys");
    assert_refused(
        parse(&base().revocation(1, [&carol()]).master(1, [&dave(), &carol()]).text()),
        "master_keys",
    );
    assert!(parse(&base().master(1, [&dave()]).text()).is_ok());
}

#[test]
fn a_signer_is_a_key_of_ed25519() {
    assert_refused(
        changed("\"kind\": \"key\"", "\"kind\": \"keyless\""),
        "artifact_signers[0].signers[0].kind",
    );
    assert_refused(changed("\"kind\": \"key\", ", ""), "artifact_signers[0].signers[0].kind");
    let format_field = "artifact_signers[0].signers[0].data.format";
    assert!(changed("\"pubkey\"", "\"format\": \"ed25519\", \"pubkey\"").is_ok());
    assert_refused(changed("\"pubkey\"", "\"format\": \"minisign\", \"pubkey\""), format_field);
    assert_refused(changed("\"pubkey\"", "\"format\": null, \"pubkey\""), format_field);
}

#[test]
fn a_malformed_or_weak_key_is_refused_and_named() {
    let field = "artifact_signers[0].signers[0].data.pubkey";
    for spelling in
        ["", "svc-pub:", "svc-pub:AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "ssh-rsa AAAA"]
    {
        assert_refused(with_entries(1, &[signer_text(spelling)]), field);
    }
}

#[test]
fn a_name_has_at_most_64_characters() {
    assert!(with_entries(1, &[named(&alice(), &"é".repeat(64))]).is_ok());
    assert_refused(
        with_entries(1, &[named(&alice(), &"é".repeat(65))]),
        "artifact_signers[0].signers[0].name",
    );
}

#[test]
fn a_name_has_no_deceptive_characters() {
    for c in ['\n', '\u{7f}', '\u{202e}', '\u{200b}', '\u{2066}', '\u{2028}', '\u{2029}', '\u{ad}'] {
        let field = "artifact_signers[0].signers[0].name";
        assert_refused(with_entries(1, &[named(&alice(), &format!("al{c}ice"))]), field);
    }
}

#[test]
fn one_key_has_one_name_and_one_name_stands_for_one_key() {
    let field = "name";
    assert_refused(with_entries(1, &[named(&alice(), "alice"), named(&bob(), "alice")]), field);
    let two_names = base().text().replacen("}}", "}, \"name\": \"alice\"}", 1);
    let admin =
        format!(", \"admin_keys\": [{{\"threshold\": 1, \"signers\": [{}]}}]}}", named(&alice(), "al"));
    let end = two_names.rfind('}').unwrap();
    assert_refused(parse(&format!("{}{admin}", &two_names[..end])), field);
    let same_name = admin.replace("\"al\"", "\"alice\"");
    assert!(parse(&format!("{}{same_name}", &two_names[..end])).is_ok());
}

#[test]
fn there_are_at_most_1000_entries() {
    let entries: Vec<String> = (0..1_001_u32)
        .map(|n| {
            let mut seed = [0; 32];
            seed[..4].copy_from_slice(&n.to_le_bytes());
            signer_text(&SecretKey::from_seed(&seed).public_key().to_string())
        })
        .collect();
    assert!(with_entries(1, &entries[..1_000]).is_ok());
    assert_refused(with_entries(1, &entries), "1000");
}

#[test]
fn there_are_at_most_256_kib() {
    let text = base().text();
    let padded = |size: usize| format!("{text}{}", " ".repeat(size - text.len()));
    assert!(parse(&padded(256 * 1024)).is_ok());
    assert_refused(parse(&padded(256 * 1024 + 1)), "256 KiB");
}

#[test]
fn without_admin_keys_the_artifact_signers_are_admins() {
    let file = parse(&base().text()).unwrap();
    assert_eq!(file.admin_groups(), file.artifact_groups());
    assert_eq!(keys(file.admin_groups()), public([&alice(), &bob()]));
    let with_admin = parse(&base().admin(1, [&carol()]).text()).unwrap();
    assert_eq!(keys(with_admin.admin_groups()), public([&carol()]));
    assert_eq!(keys(with_admin.artifact_groups()), public([&alice(), &bob()]));
}

#[test]
fn without_master_keys_no_one_is_master() {
    assert!(parse(&base().text()).unwrap().master_groups().is_empty());
    let file = parse(&base().master(1, [&dave()]).text()).unwrap();
    assert_eq!(keys(file.master_groups()), public([&dave()]));
    assert_eq!(keys(file.admin_groups()), public([&alice(), &bob()]), "master keys replace no admin");
}

#[test]
fn revocation_keys_are_explicit_or_any_one_admin() {
    let file = parse(&base().admin(2, [&bob(), &dave()]).text()).unwrap();
    assert_eq!(file.explicit_groups(Role::Revocation), None);
    let groups = file.revocation_groups();
    assert_eq!((groups.len(), groups[0].threshold, keys(&groups)), (1, 1, public([&bob(), &dave()])));
    let file = parse(&base().revocation(1, [&carol()]).text()).unwrap();
    assert_eq!(keys(&file.revocation_groups()), public([&carol()]));
}

#[test]
fn a_file_lists_the_keys_of_every_role_and_no_other() {
    let file =
        parse(&base().admin(1, [&carol()]).master(1, [&dave()]).revocation(1, [&key(5)]).text()).unwrap();
    let listed = public([&alice(), &bob(), &carol(), &dave(), &key(5)]);
    assert_eq!(file.keys(), listed);
    assert!(listed.iter().all(|key| file.lists(key)));
    assert!(!file.lists(&key(6).public_key()));
}

proptest! {
    #![proptest_config(steady())]

    #[test]
    fn what_was_read_is_written_and_read_as_the_same(
        groups in prop::collection::vec((1_usize..4, prop::collection::btree_set(1_u8..9, 1..4)), 1..3),
        admin in prop::option::of(1_u8..9),
    ) {
        let mut text = String::new();
        for (threshold, members) in &groups {
            let entries: Vec<String> = members.iter().map(|n| signer_text(&key(*n).public_key().to_base64())).collect();
            text += &format!(r#"{{"threshold": {}, "signers": [{}]}},"#, threshold.min(&members.len()), entries.join(","));
        }
        let admin = admin.map(|n| format!(r#","admin_keys":[{{"threshold":1,"signers":[{}]}}]"#, signer_text(&key(n).public_key().to_string())));
        let text = format!(
            r#"{{"version": 1, "timestamp": "{TIME}", "artifact_signers": [{}]{}}}"#,
            text.trim_end_matches(','), admin.unwrap_or_default(),
        );
        let file = parse(&text).expect("a valid file");
        let written = file.write();
        prop_assert_eq!(SignersFile::parse(&written).map(|read| (read.write(), read)), Ok((written, file)));
    }
}
