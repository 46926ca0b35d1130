//! The rules by which an ordinary witness cosigns (c2sp.org/tlog-witness).

use countersign_core::log::{
    checkpoint::Checkpoint,
    proofs::WitnessRequest,
    tree::{TreeHead, empty_root, parse_hash, verify_consistency},
};

use super::refusal::CosignRefusal;

/// Examines a checkpoint. `known` is the newest one on record; without one, the log was empty.
pub(super) fn examine(
    known: Option<&Checkpoint>,
    request: &WitnessRequest,
    new: &Checkpoint,
) -> Result<(), CosignRefusal> {
    let (old, size) = (request.old, new.size);
    if old > size {
        return Err(CosignRefusal::OldIsLarger { old, size });
    }
    let known = known.map_or(TreeHead { size: 0, root: empty_root() }, Checkpoint::head);
    if old != known.size {
        return Err(CosignRefusal::OtherSize(known.size));
    }
    if size == known.size && new.root != known.root {
        return Err(CosignRefusal::OtherRoot(size));
    }
    verify_consistency(&known, &new.head(), &request.proof).map_err(|_| CosignRefusal::BadProof)
}

/// A checkpoint of no commits with the root of some. It has the form of a checkpoint otherwise.
pub(super) fn has_wrong_empty_root(text: &str) -> bool {
    let mut lines = text.split('\n').skip(1);
    let (size, root) = (lines.next(), lines.next().and_then(parse_hash));
    size == Some("0") && root.is_some_and(|root| root != empty_root())
}
