//! Circles of things that use each other.

use std::collections::{BTreeMap, BTreeSet};

/// What can be reached from `start`, which is itself reached only on a circle.
fn reached<'a, T: Ord>(start: &T, uses: &'a BTreeMap<T, BTreeSet<T>>) -> BTreeSet<&'a T> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&T> = uses[start].iter().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(&uses[next]);
        }
    }
    reached
}

/// The largest groups in which each thing reaches each other one.
pub(super) fn circles<T: Ord + Clone>(uses: &BTreeMap<T, BTreeSet<T>>) -> Vec<Vec<T>> {
    let reached: BTreeMap<&T, BTreeSet<&T>> =
        uses.keys().map(|thing| (thing, reached(thing, uses))).collect();
    let circle = |thing: &T| -> BTreeSet<T> {
        reached[thing]
            .iter()
            .filter(|other| reached[**other].contains(thing))
            .map(|other| (*other).clone())
            .collect()
    };
    let all: BTreeSet<_> = uses.keys().map(circle).filter(|circle| !circle.is_empty()).collect();
    all.into_iter().map(|circle| circle.into_iter().collect()).collect()
}
