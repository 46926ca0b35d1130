//! What a signer is asked to sign, and what comes of it.

use std::{cell::RefCell, collections::BTreeMap, convert::Infallible};

use countersign_core::documents::said::{EarlierObjections, ObjectionsFile, RebuildsFile};
use countersign_core::documents::{history::History, signatures::SignatureSet};
use countersign_core::proof::to_sign::{SigningRequest, ToSign};
use countersign_core::rules::decide::{sign::SignaturesBody, statement::Stated, statement::StatementRefusal};
use countersign_core::rules::{snapshot::Scratch, stored::files_to_sign};
use countersign_core::values::{digest::Sha512, key::SecretKey, key::encode_base64};

use crate::evidence::{Past, founded};
use crate::{
    INDEX, PENDING, PENDING_METADATA, PROJECT, Signers, World, alice, bob, carol, dave, key, path, signers,
};

fn request(file: &str, files: &[(&str, &str)], history: &History) -> SigningRequest {
    SigningRequest {
        path: path(file),
        files: files.iter().map(|(file, text)| (path(file), (*text).to_owned())).collect(),
        history: history.clone(),
        collected: SignatureSet::default(),
        objections: ObjectionsFile::default(),
        rebuilds: RebuildsFile::default(),
        earlier: EarlierObjections::default(),
    }
}

/// The index of release v1, with this text.
pub fn index_request(text: &str) -> SigningRequest {
    request(INDEX, &[(INDEX, text)], &founded(PROJECT).history)
}

/// The last signers file of a past, proposed to what was before it.
pub fn proposal_of(past: &Past) -> SigningRequest {
    let (last, before) = past.history.entries.split_last().expect("an entry");
    let files = [(PENDING, last.signers_config.as_str()), (PENDING_METADATA, last.metadata.as_str())];
    request(PENDING, &files, &History { entries: before.to_vec() })
}

/// What the signer is shown of a request, as files.
pub fn files_of(request: &SigningRequest) -> Scratch {
    request.to_files(&path(PROJECT), &BTreeMap::new()).expect("files of a request")
}

/// Signs, and gives what was signed besides.
pub fn sign(to_sign: &ToSign, person: &SecretKey) -> (SignaturesBody, Vec<Sha512>) {
    let seen = RefCell::new(Vec::new());
    let submission = to_sign.sign(person.public_key(), |digest| {
        seen.borrow_mut().push(*digest);
        Ok::<_, Infallible>(person.sign(digest))
    });
    let Ok(submission) = submission;
    (submission, seen.into_inner())
}

/// What our server asks for, checked, signed and handed in.
pub fn sign_at(world: &mut World, file: &str, person: &SecretKey) -> bool {
    let files = files_to_sign(&world.repo, &path(file)).expect("readable").expect("files to sign");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let texts: Vec<(&str, String)> = files.iter().map(|(file, bytes)| (file.as_str(), text(bytes))).collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(file, text)| (*file, text.as_str())).collect();
    let request = request(file, &texts, &world.repo.history(PROJECT));
    let (submission, _) = sign(&request.check().expect("what our server asks for"), person);
    world.submit(&submission).expect("accepted").is_complete
}

// A complete index that two people have signed, and how others withdraw it.

pub type RevokeResult = Result<Stated, StatementRefusal>;
pub const REVOKED: RevokeResult = Ok(Stated { in_force: true });
pub const RECORDED: RevokeResult = Ok(Stated { in_force: false });

/// A team in which Alice and Bob sign releases and are admins, both needed; Dave is master.
pub fn team() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]).master(1, [&dave()])
}

/// A complete index of a project that leaves revocation to its admins.
pub fn complete() -> World {
    let mut world = World::with(&team(), &[&alice(), &bob(), &dave()]);
    world.release_signed_by(&[&alice(), &bob()]);
    world
}

/// A complete index of a project in which two of Carol, key 5 and key 6 revoke.
pub fn two_of_three() -> World {
    let file = team().revocation(2, [&carol(), &key(5), &key(6)]);
    let mut world = World::with(&file, &[&alice(), &bob(), &carol(), &dave(), &key(5), &key(6)]);
    world.release_signed_by(&[&alice(), &bob()]);
    world
}

/// The text of a signatures file of so many entries: the only one of this set, and copies under other keys.
pub fn full_set(one: &SignatureSet, count: usize) -> String {
    let text = String::from_utf8(one.write()).expect("our documents are text");
    let key = one.entries.keys().next().expect("an entry").to_string();
    let entry = text.lines().skip(2).take(4).collect::<Vec<_>>().join("\n");
    let copies = (1..count).map(|n| {
        let n = u16::try_from(n).expect("few entries");
        let other = encode_base64(&[&n.to_be_bytes()[..], &[0; 30]].concat());
        entry.replace(&key, &format!("svc-pub:{}", other.trim_end_matches('=')))
    });
    let entries: Vec<String> = [entry.clone()].into_iter().chain(copies).collect();
    format!("{{\"entries\": {{{}}}}}", entries.join(","))
}

pub fn post(world: &mut World, document: &str, by: &SecretKey) -> RevokeResult {
    let request = world.revoke_request(document, by);
    world.revoke(&request)
}

/// A refusal, which leaves everything as it was.
#[track_caller]
pub fn refusal(world: &mut World, document: &str, by: &SecretKey) -> StatementRefusal {
    let before = world.repo.clone();
    let refusal = post(world, document, by).expect_err("a refusal");
    assert_eq!(world.repo, before);
    refusal
}

pub fn names(world: &World) -> Vec<&str> {
    let below = world.repo.names_below(&format!("{PROJECT}/releases/tag/v1"));
    below.into_iter().map(|name| name.strip_prefix("svc.index.json").expect("a file of the index")).collect()
}

pub fn set(world: &World, suffix: &str) -> SignatureSet {
    SignatureSet::parse(&world.repo.bytes(&format!("{INDEX}{suffix}"))).expect("a signatures file")
}
