//! The signers file: its rules and its roles (D8). The vector `values/signers` has every field at the edges.

use countersign_core::documents::signers::{Role, SignersFile, keys_of};
use countersign_core::values::bounds::{FORMAT_NAME_BYTES, SIGNERS_FILE_FORMATS};
use countersign_core::values::other_format::OtherFormat;
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
fn every_role_has_groups_that_can_reach_their_threshold() {
    let alone = format!(r#"{{"version": 1, "timestamp": "{TIME}", "artifact_signers": []}}"#);
    assert_refused(parse(&alone), "artifact_signers");
    for role in ["admin_keys", "master_keys", "revocation_keys"] {
        let empty = base().text().replacen('{', &format!("{{\"{role}\": [], "), 1);
        assert_refused(parse(&empty), role);
    }
    assert_refused(with_entries(1, &[]), "artifact_signers[0].signers");
    assert_refused(parse(&base().admin(2, [&alice()]).text()), "admin_keys[0].threshold");
}

#[test]
fn a_key_is_once_in_a_group_and_a_master_key_has_no_other_role() {
    let key = alice().public_key();
    for second in [key.to_string(), key.to_base64(), format!("{key}=")] {
        let entries = [signer_text(&key.to_string()), signer_text(&second)];
        assert_refused(with_entries(1, &entries), "artifact_signers[0].signers[1]");
    }
    let several = base().artifact(1, [&alice()]).admin(1, [&alice()]).revocation(1, [&alice()]);
    assert!(parse(&several.text()).is_ok());
    for twice in [
        base().master(1, [&alice()]),
        base().admin(1, [&carol()]).master(1, [&carol()]),
        base().revocation(1, [&carol()]).master(1, [&dave(), &carol()]),
    ] {
        assert_refused(parse(&twice.text()), "master_keys");
    }
}

#[test]
fn one_key_has_one_name_and_one_name_stands_for_one_key() {
    assert_refused(with_entries(1, &[named(&alice(), "alice"), named(&bob(), "alice")]), "name");
    let too_long = with_entries(1, &[named(&alice(), &"é".repeat(65))]);
    assert_refused(too_long, "artifact_signers[0].signers[0].name");
    let two_names = base().text().replacen("}}", "}, \"name\": \"alice\"}", 1);
    let admin =
        format!(", \"admin_keys\": [{{\"threshold\": 1, \"signers\": [{}]}}]}}", named(&alice(), "al"));
    let end = two_names.rfind('}').unwrap();
    assert_refused(parse(&format!("{}{admin}", &two_names[..end])), "name");
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

#[test]
fn formats_of_a_newer_version_are_kept_and_ignored_if_their_names_are_plain() {
    let with = |formats: &str| {
        let file = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).text();
        SignersFile::parse(file.replacen('{', &format!("{{\"formats\": {formats}, "), 1).as_bytes())
    };
    let file = with(r#"["pkcs7", "ssh", "x-1"]"#).expect("a signers file");
    assert_eq!(
        (file.formats(), file.unknown_formats()),
        (&[OtherFormat::Ssh][..], &["pkcs7", "x-1"].map(String::from)[..])
    );
    assert_eq!(SignersFile::parse(&file.write()), Ok(file));
    let longest = "a".repeat(FORMAT_NAME_BYTES);
    assert!(with(&format!("[\"{longest}\"]")).is_ok());
    for wrong in
        ["[\"\"]", "[\"PGP\"]", "[\"a b\"]", "[1]", "[]", r#"["pkcs7", "pkcs7"]"#, r#"["ssh", "ssh"]"#]
    {
        assert!(with(wrong).is_err(), "{wrong}");
    }
    assert!(with(&format!("[\"{longest}a\"]")).is_err());
    let many = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("\"f{number}\"")).collect();
        with(&format!("[{}]", names.join(", ")))
    };
    assert!(many(SIGNERS_FILE_FORMATS).is_ok() && many(SIGNERS_FILE_FORMATS + 1).is_err());
}
