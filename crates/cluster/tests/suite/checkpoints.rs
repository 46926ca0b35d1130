//! The checkpoint that nodes share.

use countersign_cluster::checkpoints::SharedCheckpoints;
use countersign_core::log::{checkpoint::Checkpoint, tree::empty_root};
use countersign_core::values::{key::SecretKey, verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_log::{CheckpointKeeper as _, KeepError};
use tempfile::TempDir;

use crate::support::World;

fn note(size: u64) -> String {
    let secret = SecretKey::from_seed(&[1; 32]);
    let key = VerifierKey::new("log.example", KeyKind::Log, secret.public_key()).unwrap();
    let checkpoint = Checkpoint { origin: "log.example".to_owned(), size, root: empty_root() };
    checkpoint.sign(&key, &secret).note().to_string()
}

#[test]
fn of_two_nodes_that_sign_one_is_first() {
    let Some(world) = World::start() else { return };
    let dirs = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let [mut one, mut two] =
        dirs.each_ref().map(|dir| SharedCheckpoints::new(world.database(), dir.path()).unwrap());
    assert_eq!(one.load().unwrap().newest, None);
    one.keep_newest(0, &note(3)).unwrap();
    assert!(matches!(two.keep_newest(0, &note(4)), Err(KeepError::Overtaken)));
    assert_eq!(two.load().unwrap().newest, Some(note(3).into_bytes()));
    two.keep_newest(3, &note(5)).unwrap();
    assert!(matches!(one.keep_newest(3, &note(6)), Err(KeepError::Overtaken)));
    // More cosignatures for the same one.
    one.keep_newest(5, &note(5)).unwrap();
    assert_eq!(one.load().unwrap().newest, Some(note(5).into_bytes()));
    // What a node caches is its own affair.
    one.note_cached(&note(2)).unwrap();
    assert_eq!(one.load().unwrap().cached, Some(note(2).into_bytes()));
    assert_eq!(two.load().unwrap().cached, None);
}
