//! What a signer is asked to sign, and what comes of it.

use std::{cell::RefCell, collections::BTreeMap, convert::Infallible};

use countersign_core::documents::objections::{EarlierObjections, ObjectionsFile};
use countersign_core::documents::{history::History, signatures::SignatureSet};
use countersign_core::proof::to_sign::{SigningRequest, ToSign};
use countersign_core::rules::{decide::sign::SignaturesBody, query::files_to_sign, scratch::Scratch};
use countersign_core::values::{digest::Sha512, key::SecretKey};

use super::{INDEX, PENDING, PENDING_METADATA, PROJECT, World, evidence::Past, evidence::founded, path};

fn request(file: &str, files: &[(&str, &str)], history: &History) -> SigningRequest {
    SigningRequest {
        path: path(file),
        files: files.iter().map(|(file, text)| (path(file), (*text).to_owned())).collect(),
        history: history.clone(),
        collected: SignatureSet::default(),
        objections: ObjectionsFile::default(),
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
    let request = SigningRequest {
        path: path(file),
        files: files.iter().map(|(file, bytes)| (file.clone(), text(bytes))).collect(),
        history: world.repo.history(PROJECT),
        collected: SignatureSet::default(),
        objections: ObjectionsFile::default(),
        earlier: EarlierObjections::default(),
    };
    let (submission, _) = sign(&request.check().expect("what our server asks for"), person);
    world.submit(&submission).expect("accepted").is_complete
}
