//! What a pack does not hold.

use countersign_store::{ObjectId, objects::hash, objects::spot::Filter};
use gix::objs::Kind;

#[test]
fn what_is_in_it_is_always_found_and_little_else() {
    let id = |n: u32| hash(Kind::Blob, &n.to_le_bytes()).unwrap();
    let ids: Vec<ObjectId> = (0..10_000).map(id).collect();
    let filter = Filter::of(ids.len(), ids.iter().map(|id| id.as_ref()));
    assert!(ids.iter().all(|id| filter.may_contain(id)));
    let mistaken = (10_000..110_000).filter(|n| filter.may_contain(&id(*n))).count();
    assert!(mistaken < 1_000, "{mistaken} of 100,000");
}

#[test]
fn an_empty_one_contains_nothing() {
    let filter = Filter::of(0, std::iter::empty());
    assert!(!filter.may_contain(&hash(Kind::Blob, b"x").unwrap()));
}
