//! Signers files (D8), and what people read about them.

use std::collections::{BTreeMap, BTreeSet};

use countersign_api::requests::{
    parse_requests, parse_statement_requests, parse_statements, write_statement_requests, write_statements,
};
use countersign_api::{answers::ChainResponse, assembly::Assembly};
use countersign_core::documents::history::{Agreement, EntryFacts, History, HistoryEntry};
use countersign_core::documents::index::{AssetName, PublishedFile, ReleaseIndex};
use countersign_core::documents::layout::{FORMAT, RepositoryMarker};
use countersign_core::documents::said::{EarlierObjections, ObjectionsFile, RebuildsFile};
use countersign_core::documents::signatures::{OtherFormatsFile, SignatureSet};
use countersign_core::documents::signed_request::{Registrant, SignedRequest, Withdrawal};
use countersign_core::documents::signers::{
    FilePattern, Group, Metadata, RebuildPolicy, Role, SignersFile, keys_of,
};
use countersign_core::documents::statement::{
    Objection, Rebuild, RebuiltFile, Revocation, Statement, StatementKind, Veto,
};
use countersign_core::documents::{layout, transparency::Transparency};
use countersign_core::proof::verify::{Evidence, VerifyError, verify};
use countersign_core::proof::{bundle::Bundle, to_state::StatementRequest, trust::TrustStore};
use countersign_core::rules::place::{check_place, path_of_url, release_tag};
use countersign_core::rules::{chain, chain::ChainFault, reproduction::Reproduction};
use countersign_core::values::key::{PublicKey, SecretKey};
use countersign_core::values::other_format::{OtherFormat, ReleaseSums};
use countersign_core::values::{
    digest::Sha512, other_format, path::RepoPath, shown::is_unseen, time::Timestamp,
    verifier_key::VerifierKey,
};
use countersign_explain::drill::{Drill, DrillQuestion, play};
use countersign_explain::strength::{Act, assess, effective_groups};
use countersign_explain::{
    difference::list_changes, incident::list_powers, log_strength::LogStrength, words::shown_groups,
};

use crate::checks::promises::{assert_path, assert_shown, check_document, to_value};
use crate::checks::values::list_keys;

/// A second document can follow after a NUL. Then it replaces the first.
pub fn check_signers(data: &[u8]) {
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
    check_builders(&file);
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

/// A builder does nothing else (D259).
fn check_builders(file: &SignersFile) {
    let Some(policy) = file.rebuilds() else { return };
    let builders: BTreeSet<PublicKey> = keys_of(&policy.builders).collect();
    assert!((1..=16).contains(&builders.len()) && policy.files.len() <= 16);
    let has_other_role = |key: &PublicKey| file.has_signer(key) || file.has_registrar(key);
    assert!(builders.iter().all(|key| file.lists(key) && !has_other_role(key)));
    for pattern in policy.files.iter().map(FilePattern::as_str) {
        assert!((1..=255).contains(&pattern.len()) && !pattern.chars().any(is_unseen), "{pattern:?}");
        for text in ["", "*", "a/b"] {
            assert!(policy.covers(&pattern.replace('*', text)), "{pattern:?}");
        }
    }
}

/// Each key has one place in the file (D91).
fn check_log(file: &SignersFile, transparency: &Transparency) {
    let keys: Vec<&[u8]> = transparency.verifier_keys().map(VerifierKey::bytes).collect();
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "a key stands once");
    let mut ed25519 = transparency.verifier_keys().filter_map(VerifierKey::ed25519);
    assert!(keys.len() <= 33 && ed25519.all(|key| !file.lists(&key) && !file.has_registrar(&key)));
    assert_eq!(transparency.max_age().is_some(), keys.len() > 1);
    assert!(transparency.max_age().is_none_or(|age| (60..=315_360_000).contains(&age.as_secs())));
    let policy = transparency.policy();
    assert_eq!(list_keys(&policy), keys.iter().map(|key| key.to_vec()).collect());
    assert!(policy.is_met(&policy.witness_keys().into_iter().collect()));
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

// Bundles, and which of their evidence holds.

pub fn check_bundle(data: &[u8]) {
    let Some(Bundle { evidence, .. }) = check_document(data, Bundle::parse, Bundle::write) else { return };
    assert_path(&evidence.path);
    check_history_chain(&evidence.history);
    match verify(&evidence) {
        Ok(artifact) => {
            assert_eq!(artifact.path, evidence.path);
            assert_eq!(artifact.index_digest, Sha512::of(evidence.index.as_bytes()));
            assert_eq!(artifact.governing().digest, evidence.governed_by);
            assert!(artifact.groups().iter().all(|group| group.signed >= group.threshold));
            check_necessary(&evidence);
        }
        Err(VerifyError::Revoked(revoked)) => {
            assert!(!revoked.revocation.revoked_by.is_empty());
            let unrevoked = Evidence { revocation: None, ..evidence };
            assert!(verify(&unrevoked).is_ok(), "only what holds can be revoked");
            check_necessary(&unrevoked);
        }
        Err(error) => assert_shown(&error),
    }
}

/// The proof fails if any one part is missing.
fn check_necessary(evidence: &Evidence) {
    let refused = |change: &dyn Fn(&mut Evidence)| {
        let mut changed = evidence.clone();
        change(&mut changed);
        assert!(verify(&changed).is_err());
    };
    refused(&|evidence| evidence.index.push(' '));
    refused(&|evidence| evidence.signatures = Default::default());
    refused(&|evidence| evidence.history = Default::default());
    refused(&|evidence| evidence.governed_by = Sha512::of(b""));
    refused(&|evidence| evidence.path = evidence.path.parent().expect("an index lies in a directory"));
}

// What `countersign drill` says of a signers file (D145). A file that a server shows is not believed: every valid one
// can be played. Lines before the file choose the keys: `lost` and `stolen`, each with digits.

/// A larger file shows little more, and takes its time.
const MAX_KEYS: usize = 8;

pub fn check_drill(data: &[u8]) {
    let mut lines = data.splitn(3, |byte| *byte == b'\n');
    let (Some(lost), Some(stolen), Some(document)) = (lines.next(), lines.next(), lines.next()) else {
        return;
    };
    let Ok(file) = SignersFile::parse(document) else { return };
    let keys: Vec<PublicKey> = file.keys().into_iter().collect();
    if keys.len() > MAX_KEYS || file.registrars().len() > 2 {
        return;
    }
    let choose = |line: &[u8]| -> BTreeSet<PublicKey> {
        let digits = line.iter().filter(|byte| byte.is_ascii_digit());
        digits.filter_map(|digit| keys.get(usize::from(digit - b'0')).copied()).collect()
    };
    let question = DrillQuestion { lost: choose(lost), stolen: choose(stolen) };
    let drill = play(
        &file,
        &question,
        Timestamp::from_unix_seconds(1_770_000_000).expect("in the range of timestamps"),
    )
    .expect("every valid file can be played");
    check_outcome(&file, &question, &drill);
    let said = drill.team.iter().chain(&drill.thief).chain(drill.thief_after_rotation.iter().flatten());
    assert!(said.flat_map(|attempt| &attempt.steps).all(|step| !step.text.chars().any(is_unseen)));
}

/// A time in the year 9000. No file can replace one of the calendar's last second, and a rotation may have to wait.
const NO_TIME_LEFT: i64 = 221_845_392_000;

/// Compares two opinions: the decisions of core, played out, and the thresholds of the file, counted.
fn check_outcome(file: &SignersFile, question: &DrillQuestion, drill: &Drill) {
    let strength = assess(file);
    let left: BTreeSet<PublicKey> =
        file.keys().into_iter().filter(|key| !question.lost.contains(key)).collect();
    for attempt in &drill.team {
        let counted = strength
            .acts()
            .into_iter()
            .find(|counted| counted.act == attempt.act)
            .expect("every act is counted");
        let has_time = attempt.act != Act::Rotate || file.timestamp().unix_seconds() < NO_TIME_LEFT;
        if question.stolen.is_empty() && has_time {
            assert!(!attempt.takes_stolen_keys);
            assert_eq!(attempt.succeeds, counted.is_met(&left), "{:?}", attempt.act);
        }
        assert!(!attempt.succeeds || counted.is_met(&left), "too few keys for {:?}", attempt.act);
    }
    assert_eq!(drill.thief.is_empty(), question.stolen.is_empty());
    let powers = list_powers(file, &question.stolen);
    for attempt in &drill.thief {
        assert!(!attempt.succeeds || powers.contains(&attempt.act), "{:?}", attempt.act);
        assert!(attempt.act == Act::Rotate || attempt.succeeds == powers.contains(&attempt.act));
    }
}

// The history of signers files (D12), and whether a chain of them holds.

pub fn check_history(data: &[u8]) {
    check_document(data, HistoryEntry::parse, HistoryEntry::write);
    if let Some(history) = check_document(data, History::parse, History::write) {
        check_assembly(&history);
        check_history_chain(&history);
    }
}

/// Checks that assembling the stored entries gives the original document.
fn check_assembly(history: &History) {
    let count = history.entries.len();
    let stored: Vec<Vec<u8>> = history.entries.iter().map(HistoryEntry::write).collect();
    let facts: Vec<EntryFacts> =
        stored.iter().map(|entry| EntryFacts::parse(entry).expect("a stored entry parses")).collect();
    let (document, chain) = (Assembly::document(count), Assembly::chain(count));
    let (mut file, mut answered) = (Vec::new(), Vec::new());
    for (number, entry) in (1..).zip(&stored) {
        document.append(number, entry, &mut file);
        chain.append(number, entry, &mut answered);
    }
    if count > 0 {
        assert_eq!((file.len(), &file), (document.len(facts.clone()), &history.write()));
        assert_eq!(answered.len(), chain.len(facts));
        assert_eq!(ChainResponse::parse(&answered).map(|chain| chain.history).as_ref(), Ok(history));
    }
}

/// A chain that holds no longer holds in another order, with another root or with gaps.
pub fn check_history_chain(history: &History) {
    let Some(first) = history.entries.first() else {
        let project = RepoPath::parse("https/github.com/443/acme/app").expect("a path");
        assert_eq!(chain::verify(history, &project).expect_err("it is empty").fault, ChainFault::Empty);
        return;
    };
    let Ok(metadata) = Metadata::parse(first.metadata.as_bytes()) else { return };
    let project = metadata.project_id;
    let verified = match chain::verify(history, &project) {
        Ok(verified) => verified,
        Err(error) => {
            assert_shown(&error);
            return;
        }
    };
    assert_eq!(verified.links.len(), history.entries.len());
    assert!(verified.links.windows(2).all(|pair| {
        let is_later = pair[0].signers.timestamp() < pair[1].signers.timestamp();
        is_later && pair[1].metadata.previous == Some(pair[0].digest)
    }));
    assert_eq!(verified.links[0].metadata.previous, None);
    let elsewhere = RepoPath::parse(&format!("{project}/elsewhere")).expect("a path below a project");
    assert!(chain::verify(history, &elsewhere).is_err());
    for (at, link) in verified.links.iter().enumerate() {
        assert_eq!(verified.position(&link.digest), Some(at));
        let (mut before, mut without, mut unsigned) = (history.clone(), history.clone(), history.clone());
        before.entries.truncate(at + 1);
        assert!(chain::verify(&before, &project).is_ok(), "what was there before held as well");
        without.entries.remove(at);
        let is_last = at + 1 == verified.links.len();
        assert_eq!(chain::verify(&without, &project).is_ok(), is_last && at > 0, "a gap at {at}");
        unsigned.entries[at].metadata_signatures = Default::default();
        assert!(chain::verify(&unsigned, &project).is_err(), "no one agreed at {at}");
    }
}

// The index of a release (D11), and whether it belongs to its place (D34).

pub fn check_index(data: &[u8]) {
    let Some(index) = check_document(data, ReleaseIndex::parse, ReleaseIndex::write) else { return };
    assert_path(&index.project_id);
    assert!(index.published_files.windows(2).all(|pair| pair[0].file_name < pair[1].file_name));
    for file in &index.published_files {
        assert_asset_name(file.file_name.as_str());
        assert!(file.digests.sha256.is_some() || file.digests.sha512.is_some());
    }
    check_places(&index);
}

/// Asserts that a name is safe to show, and to write to below a directory (D24).
pub fn assert_asset_name(name: &str) {
    assert_eq!(AssetName::parse(name).as_ref().map(AssetName::as_str), Ok(name));
    assert!(!name.starts_with('/') && !name.contains('\\'), "{name:?}");
    assert!(!name.chars().any(is_unseen), "{name:?}");
    for segment in name.split('/') {
        assert!(!matches!(segment, "" | "." | "..") && segment.len() <= 200, "{name:?}");
    }
}

/// An index is valid only at the places that it names itself.
fn check_places(index: &ReleaseIndex) {
    let project = &index.project_id;
    let dirs: Vec<RepoPath> = match &index.release_url {
        Some(url) => release_tag(url, project)
            .and_then(|tag| RepoPath::parse(&format!("{project}/releases/tag/{tag}")).ok())
            .into_iter()
            .collect(),
        None => index
            .published_files
            .iter()
            .filter_map(|file| {
                let path = path_of_url(&file.source)?;
                let dir = path.as_str().strip_suffix(file.file_name.as_str())?.strip_suffix('/')?;
                RepoPath::parse(dir).ok()
            })
            .collect(),
    };
    let accepted = dirs.iter().filter(|dir| match check_place(index, &layout::index_in(dir)) {
        Ok(()) => {
            assert!(*dir == project || dir.is_inside(project), "{dir} is outside of {project}");
            true
        }
        Err(error) => {
            assert_shown(&error);
            false
        }
    });
    let accepted: std::collections::BTreeSet<&RepoPath> = accepted.collect();
    assert!(accepted.len() <= 1, "{accepted:?}");
    let speaks_of_files = index.release_url.is_some() || !index.published_files.is_empty();
    if speaks_of_files && let Ok(elsewhere) = RepoPath::parse(&format!("{project}/elsewhere")) {
        let is_elsewhere = check_place(index, &layout::index_in(&elsewhere)).is_ok();
        assert!(!is_elsewhere || accepted.iter().all(|dir| **dir == elsewhere));
    }
}

// The metadata of a signers file (D10).

pub fn check_metadata(data: &[u8]) {
    if let Some(metadata) = check_document(data, Metadata::parse, Metadata::write) {
        assert_path(&metadata.project_id);
    }
}

// Objections (D123, D125), the file that keeps them, and the registrant of a release (D121).

pub fn check_objection(data: &[u8]) {
    if let Some(objection) = check_document(data, Objection::parse, Objection::write) {
        assert!(objection.text.is_none_or(|text| (1..=1_000).contains(&text.chars().count())));
        assert!(data.len() <= 8 * 1024);
        // No signature on one is a signature on the other (D34).
        assert!(Revocation::parse(data).is_err() && Rebuild::parse(data).is_err());
    }
    if let Some(rebuild) = check_document(data, Rebuild::parse, Rebuild::write) {
        assert_path(&rebuild.rebuild_of);
        assert!(matches!(rebuild.source_commit.len(), 40 | 64) && data.len() <= 60 * 1024);
        assert!(rebuild.files.windows(2).all(|pair| pair[0].file_name < pair[1].file_name));
        assert!(
            !rebuild.files.is_empty() && Objection::parse(data).is_err() && Revocation::parse(data).is_err()
        );
    }
    if let Some(file) = check_document(data, RebuildsFile::parse, RebuildsFile::write) {
        assert!((1..=16).contains(&file.entries.len()));
        let of = file.entries.values().next().map(|entry| &entry.document);
        let kept = of.map(|of| file.keep_verifying(&of.rebuild_of, &of.subject_digest));
        assert!(kept.is_none_or(|kept| kept.entries.len() <= file.entries.len()));
    }
    if let Some(file) = check_document(data, ObjectionsFile::parse, ObjectionsFile::write) {
        assert!((1..=100).contains(&file.entries.len()));
        let subject = file.entries.values().next().map(|entry| entry.document.subject_digest);
        let kept = file.keep_verifying(&subject.unwrap_or(Sha512::of(b"")));
        assert!(kept.standing().len() <= file.standing().len());
        assert!(file.standing().windows(2).all(|pair| pair[0].timestamp <= pair[1].timestamp));
    }
    if let Some(file) = check_document(data, EarlierObjections::parse, EarlierObjections::write) {
        assert!((1..=100).contains(&file.entries.len()));
        assert!(file.keep_verifying().entries.len() <= file.entries.len());
        assert!(file.said().count() <= file.entries.len());
    }
    check_document(data, Registrant::parse, Registrant::write);
}

// What builders state (D260), the file that keeps it, and how it is judged (D261).

pub fn check_rebuild(data: &[u8]) {
    if let Some(rebuild) = check_document(data, Rebuild::parse, Rebuild::write) {
        assert!(data.len() <= 60 * 1024);
        assert!(matches!(rebuild.source_commit.len(), 40 | 64));
        assert!(!rebuild.files.is_empty());
        assert!(rebuild.files.windows(2).all(|pair| pair[0].file_name < pair[1].file_name));
        // No signature on one is a signature on the other (D34).
        assert!(Objection::parse(data).is_err() && Revocation::parse(data).is_err());
    }
    if let Some(file) = check_document(data, RebuildsFile::parse, RebuildsFile::write) {
        assert!((1..=16).contains(&file.entries.len()));
        check_judged(&file);
    }
}

/// Judges what is stated of a release that is as its first builder says.
fn check_judged(file: &RebuildsFile) {
    let Some((first, said)) = file.entries.first_key_value() else { return };
    let Rebuild { rebuild_of, subject_digest, files, timestamp, .. } = &said.document;
    let kept = file.keep_verifying(rebuild_of, subject_digest);
    assert_eq!(kept.keep_verifying(rebuild_of, subject_digest), kept);
    let published = files.iter().map(|RebuiltFile { file_name, digests }| PublishedFile {
        file_name: file_name.clone(),
        size: None,
        source: String::new(),
        digests: *digests,
    });
    let index = ReleaseIndex {
        project_id: rebuild_of.clone(),
        release_url: None,
        mirrored_on: *timestamp,
        published_on: None,
        published_files: published.collect(),
    };
    let builders: BTreeSet<PublicKey> = file.entries.keys().copied().collect();
    for threshold in 1..=builders.len() {
        let builders = vec![Group::of_keys(threshold, &builders)];
        let policy = RebuildPolicy { builders, files: Vec::new(), required: true };
        let judged = Reproduction::judge(&index, &policy, file);
        assert!(judged.files.values().all(|agreed| agreed.contains(first)));
        assert!(judged.missing().is_empty() && !judged.different.contains_key(first));
        assert!(judged.sources().contains(said.document.source_commit.as_str()));
        let least = judged.files.values().map(BTreeSet::len).min().unwrap_or_default();
        assert_eq!((judged.tally.collected, judged.tally.needed), (least.min(threshold), threshold));
        assert_eq!(judged.is_reproduced(), least >= threshold);
    }
}

// Signatures for other programs (D101, D102): the stored file, or one text.

/// The text that the signatures in the seeds sign.
pub const SUMS: &str = include_str!("../../../core/tests/vectors/formats/SHA256SUMS");
const INDEX: &str = "https/github.com/443/acme/app/releases/tag/v1/svc.index.json";
const MIRRORED_ON: &str = "2026-02-01T12:00:00Z";

pub fn check_other_formats(data: &[u8]) {
    let index = RepoPath::parse(INDEX).expect("a path");
    let mirrored_on = Timestamp::parse(MIRRORED_ON).expect("a time");
    let sums = ReleaseSums { index: &index, mirrored_on, text: SUMS };
    if let Some(file) = check_document(data, OtherFormatsFile::parse, OtherFormatsFile::write) {
        let kept = file.keep_verifying(&sums);
        assert_eq!(kept.keep_verifying(&sums), kept);
        assert!(OtherFormat::ALL.into_iter().all(|format| kept.count(format) <= file.count(format)));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let key = SecretKey::from_seed(&[1; 32]).public_key();
    let comment = other_format::trusted_comment(&index);
    // What is read is written again as the same text.
    if let Some(signature) = other_format::parse_ssh(text, &key) {
        assert_eq!(other_format::write_ssh(&key, &signature), text);
    }
    if let Some(pair) = other_format::parse_minisign(text, &key, &comment) {
        assert_eq!(other_format::write_minisign(&key, &comment, &pair), text);
    }
    if let Some(pair) = other_format::parse_openpgp(text, &key, &sums) {
        assert_eq!(other_format::write_openpgp(&key, &sums, &pair), text);
    }
    let read = OtherFormat::ALL.into_iter().filter(|format| format.verify(text, &key, &sums).is_ok());
    assert!(read.count() <= 1, "no text is of two formats");
}

// Signed requests as the server keeps them (D14), withdrawals among them (D122), and the marker of a repository (D38).

pub fn check_registration(data: &[u8]) {
    if let Some(request) = check_document(data, SignedRequest::parse, SignedRequest::write) {
        let time = Timestamp::parse(&request.timestamp).expect("a kept time is a time");
        assert_eq!(time.to_header(), request.timestamp);
        if let Ok(withdrawal) = Withdrawal::parse(data) {
            assert_eq!(withdrawal.request, request, "nothing of what was signed is lost");
            assert_path(&withdrawal.body.file_path);
            assert!((1..=1_000).contains(&withdrawal.body.reason.chars().count()));
        }
        if request.verify().is_ok() {
            let changed = SignedRequest { payload: format!("{} ", request.payload), ..request };
            assert!(changed.verify().is_err());
        }
    }
    if let Some(marker) = check_document(data, RepositoryMarker::parse, RepositoryMarker::write) {
        assert_eq!(marker.format, FORMAT);
    }
}

// The revocation document (D20).

pub fn check_revocation(data: &[u8]) {
    if let Some(revocation) = check_document(data, Revocation::parse, Revocation::write) {
        assert!((1..=1_000).contains(&revocation.reason.chars().count()));
        assert!(data.len() <= 16 * 1024);
    }
}

// The signatures file (D9).

/// The content that the signatures in the seeds sign.
pub const CONTENT: &[u8] = b"content";

pub fn check_signatures(data: &[u8]) {
    let Some(set) = check_document(data, SignatureSet::parse, SignatureSet::write) else { return };
    let written = to_value(&set.write());
    let entries = written["entries"].as_object().expect("entries are an object");
    assert_eq!(entries.len(), set.signers().len(), "one entry a key");
    let verifying = set.verifying_signers(CONTENT);
    assert!(verifying.is_subset(&set.signers()));
    assert_eq!(set.verify(CONTENT).is_ok(), verifying == set.signers());
    for (key, collected) in set.entries.iter() {
        assert!(set.entries.contains_key(key));
        let mut again = set.clone();
        again.add(*key, *collected);
        assert_eq!(again, set, "the first signature of a key stays");
    }
}

// What a client has accepted of each project.

pub fn check_trust(data: &[u8]) {
    let Some(store) = check_document(data, TrustStore::parse, TrustStore::write) else { return };
    for (project, pin) in &store.projects {
        assert_path(project);
        assert!(!pin.history.is_empty());
        for (index, seen) in &pin.revocations {
            assert_path(index);
            assert!(pin.revocation_of(index, &seen.index_digest).is_some());
        }
        if let Ok(inside) = RepoPath::parse(&format!("{project}/inside"))
            && !store.projects.contains_key(&inside)
        {
            let error = store.check_overlap(&inside).expect_err("projects do not lie in one another (D35)");
            assert_shown(&error);
        }
    }
}

// The veto, the agreement that a rotation waits by (D131, D135), and the files of `veto --export` and `veto --detached`
// (D176).

const KIND: StatementKind = StatementKind::Veto;

pub fn check_veto(data: &[u8]) {
    if let Some(veto) = check_document(data, Veto::parse, Veto::write) {
        assert!((1..=1_000).contains(&veto.veto.chars().count()));
        assert!(data.len() <= 16 * 1024);
        assert_path(&veto.project_id);
    }
    check_document(data, Agreement::parse, Agreement::write);
    if let Ok(bodies) = parse_statements(KIND, data) {
        assert_eq!(parse_statements(KIND, &write_statements(KIND, &bodies)).as_ref(), Ok(&bodies));
        bodies.iter().for_each(|body| assert_path(&body.file_path));
    }
    let parse = |data: &[u8]| parse_statement_requests(KIND, data);
    let write = |requests: &Vec<_>| write_statement_requests(KIND, requests);
    let Some(requests) = check_document(data, parse, write) else { return };
    let of_revocations = parse_statement_requests(StatementKind::Revocation, data);
    assert!(parse_requests(data).is_err() && of_revocations.is_err());
    requests.iter().for_each(check_request);
}

fn check_request(request: &StatementRequest) {
    assert_path(request.path());
    let Ok(to_sign) = request.subject.check() else { return };
    let to_veto = match request.check_text(to_sign) {
        Ok(to_veto) => to_veto,
        Err(error) => return assert_shown(&error),
    };
    let Statement::Veto(document) = &to_veto.document else { panic!("it is no veto") };
    assert_eq!(document.signers_file_digest, *to_veto.subject.digest());
    assert!(!to_veto.accepted_signers().is_empty(), "only masters veto");
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_veto.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    assert_eq!(body.text, request.text, "what is shown is what is signed");
    assert!(key.public_key().verify(&Sha512::of(body.text.as_bytes()), &body.signature).is_ok());
}
