//! Signers files (D8), and what people read about them.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::{
    documents::{
        signers::{Group, Role, SignersFile, keys_of},
        transparency::Transparency,
    },
    values::{key::PublicKey, shown::is_unseen, verifier_key::VerifierKey},
};
use countersign_explain::signers::shown_groups;
use countersign_explain::{
    difference::list_changes,
    log_strength::LogStrength,
    strength::{assess, effective_groups},
};

use super::{policy::list_keys, promises::check_document};

/// A second document can follow after a NUL. Then it replaces the first.
pub fn check(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let first = parts.next().and_then(check_one);
    let second = parts.next().and_then(check_one);
    if let Some(proposed) = second.as_ref().or(first.as_ref()) {
        let changes = list_changes(first.as_ref(), proposed);
        let is_same = first.as_ref() == Some(proposed);
        assert!(!is_same || changes.is_empty(), "{changes:?}");
        assert!(changes.iter().all(|change| !format!("{change:?}").is_empty() || change.is_alarming()));
    }
}

fn check_one(data: &[u8]) -> Option<SignersFile> {
    let file = check_document(data, SignersFile::parse, SignersFile::write)?;
    assert!(data.len() <= 256 * 1024);
    let roles: Vec<(Role, &[Group])> =
        Role::ALL.into_iter().filter_map(|role| Some((role, file.explicit_groups(role)?))).collect();
    assert!(roles.iter().any(|(role, _)| *role == Role::Artifact));
    let mut entries = 0;
    let (mut names, mut holders) = (BTreeMap::new(), BTreeMap::new());
    for group in roles.iter().flat_map(|(_, groups)| *groups) {
        let keys: BTreeSet<PublicKey> = group.signers.iter().map(|signer| signer.key).collect();
        assert_eq!(keys.len(), group.signers.len(), "a key stands once in a group");
        assert!((1..=keys.len()).contains(&group.threshold));
        entries += keys.len();
        for signer in &group.signers {
            assert!(file.lists(&signer.key) && file.keys().contains(&signer.key));
            let Some(name) = &signer.name else { continue };
            assert!(name.chars().count() <= 64 && !name.chars().any(is_unseen), "{name:?}");
            assert_eq!(names.entry(signer.key).or_insert(name), &name, "one name per key");
            assert_eq!(*holders.entry(name).or_insert(signer.key), signer.key, "one key per name");
        }
    }
    assert!(entries <= 1_000 && roles.iter().all(|(_, groups)| !groups.is_empty()));
    let masters: BTreeSet<PublicKey> = keys_of(file.master_groups()).collect();
    let others = roles.iter().filter(|(role, _)| *role != Role::Master);
    assert!(others.flat_map(|(_, groups)| keys_of(groups)).all(|key| !masters.contains(&key)));
    let registrars = file.registrars();
    assert!(registrars.len() <= 16 && registrars.iter().all(|registrar| !file.lists(&registrar.key)));
    for registrar in registrars {
        assert_eq!(registrars.iter().filter(|other| other.key == registrar.key).count(), 1, "it stands once");
        assert!(registrar.name.as_ref().is_none_or(|name| !holders.contains_key(name)), "a name of its own");
    }
    if let Some(transparency) = file.transparency() {
        check_log(&file, transparency);
    }
    check_told(&file);
    Some(file)
}

/// Each key has one place in the file (D91).
fn check_log(file: &SignersFile, transparency: &Transparency) {
    let keys: Vec<PublicKey> = transparency.verifier_keys().map(VerifierKey::key).collect();
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "a key stands once");
    assert!(keys.len() <= 33 && keys.iter().all(|key| !file.lists(key) && !file.has_registrar(key)));
    assert_eq!(transparency.max_age().is_some(), keys.len() > 1);
    assert!(transparency.max_age().is_none_or(|age| (60..=315_360_000).contains(&age.as_secs())));
    let policy = transparency.policy();
    assert_eq!(list_keys(&policy), keys.iter().copied().collect());
    assert!(policy.is_met(&policy.quorum_keys()));
    assert_eq!(policy.is_met(&BTreeSet::new()), keys.len() == 1);
    let strength = LogStrength::of(transparency);
    assert!(!strength.to_string().chars().any(|c| c != '\n' && is_unseen(c)));
}

/// Checks that enough keys are enough, and that all keys together always are.
fn check_told(file: &SignersFile) {
    let strength = assess(file);
    assert!(!format!("{strength:?}").is_empty());
    for role in Role::ALL {
        let groups = effective_groups(file, role);
        assert!(!shown_groups(&groups).chars().any(is_unseen));
    }
    for act in strength.acts() {
        assert!(act.is_met(&file.keys()) && !act.is_met(&BTreeSet::new()));
        assert!(act.needed.at_least <= act.needed.at_most && act.needed.at_most <= file.keys().len());
    }
}
