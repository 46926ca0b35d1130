//! A table that versions share, by hashes that are spread evenly: finding one touches a few places in memory, however
//! many there are, and a change copies some kilobytes.

use std::{iter::once, sync::Arc};

use gix::ObjectId;

use crate::objects::spot::Spot;

const BITS: u32 = 5;
const WIDTH: usize = 1 << BITS;
/// A leaf with more is split. So many lie close together, and the hash says about where among them one is.
const MAX_LEAF: usize = 64;
const MAX_DEPTH: u32 = u64::BITS / BITS;

/// A file, by the hash of its path. In this order of fields it takes no more room than they do.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) hash: u64,
    pub(crate) spot: Spot,
    /// Tells files apart whose hashes are the same, by chance.
    pub(crate) check: u32,
    pub(crate) id: ObjectId,
}

#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// Sorted by hash and check.
    Leaf(Arc<[Place]>),
    /// By the next bits of the hash. Stays when little is left below: files rarely go.
    Branch(Arc<[Node; WIDTH]>),
}

impl Node {
    pub(crate) fn new(mut places: Vec<Place>) -> Self {
        places.sort_unstable_by_key(Place::key);
        Self::build(&places, 0)
    }

    /// Those with this hash: none, or one, or hardly ever more.
    pub(crate) fn find(&self, hash: u64) -> impl Iterator<Item = &Place> {
        let (mut node, mut depth) = (self, 0);
        let leaf = loop {
            match node {
                Self::Leaf(leaf) => break leaf,
                Self::Branch(nodes) => node = &nodes[child(hash, depth)],
            }
            depth += 1;
        };
        leaf[position(leaf, hash, depth)..].iter().take_while(move |place| place.hash == hash)
    }

    /// In the place of one with the same hash and check, if there is one.
    pub(crate) fn insert(&mut self, place: Place) {
        self.insert_at(0, place);
    }

    pub(crate) fn remove(&mut self, hash: u64, check: u32) {
        self.remove_at(0, (hash, check));
    }

    /// All of them, sorted.
    #[cfg(test)]
    pub(crate) fn visit<'a>(&'a self, visit: &mut dyn FnMut(&'a Place)) {
        match self {
            Self::Leaf(leaf) => leaf.iter().for_each(visit),
            Self::Branch(nodes) => nodes.iter().for_each(|node| node.visit(visit)),
        }
    }

    fn build(sorted: &[Place], depth: u32) -> Self {
        if sorted.len() <= MAX_LEAF || depth == MAX_DEPTH {
            return Self::Leaf(sorted.into());
        }
        let mut rest = sorted;
        Self::Branch(Arc::new(std::array::from_fn(|at| {
            let own = rest.partition_point(|place| child(place.hash, depth) <= at);
            let (own, others) = rest.split_at(own);
            rest = others;
            Self::build(own, depth + 1)
        })))
    }

    fn insert_at(&mut self, depth: u32, place: Place) {
        let leaf = match self {
            Self::Branch(nodes) => {
                return Arc::make_mut(nodes)[child(place.hash, depth)].insert_at(depth + 1, place);
            }
            Self::Leaf(leaf) => leaf,
        };
        let (begin, end) = match locate(leaf, depth, place.key()) {
            Ok(at) => (at, at + 1),
            Err(at) => (at, at),
        };
        let (before, behind) = (leaf[..begin].iter().cloned(), leaf[end..].iter().cloned());
        let leaf: Arc<[Place]> = before.chain(once(place)).chain(behind).collect();
        *self = if leaf.len() > MAX_LEAF { Self::build(&leaf, depth) } else { Self::Leaf(leaf) };
    }

    fn remove_at(&mut self, depth: u32, key: (u64, u32)) {
        match self {
            Self::Branch(nodes) => Arc::make_mut(nodes)[child(key.0, depth)].remove_at(depth + 1, key),
            Self::Leaf(leaf) => {
                if let Ok(at) = locate(leaf, depth, key) {
                    *leaf = leaf[..at].iter().chain(&leaf[at + 1..]).cloned().collect();
                }
            }
        }
    }
}

impl Place {
    fn key(&self) -> (u64, u32) {
        (self.hash, self.check)
    }
}

fn child(hash: u64, depth: u32) -> usize {
    hash.checked_shl(BITS * depth).map_or(0, |rest| (rest >> (u64::BITS - BITS)) as usize)
}

fn locate(leaf: &[Place], depth: u32, key: (u64, u32)) -> Result<usize, usize> {
    let begin = position(leaf, key.0, depth);
    let found = leaf[begin..].binary_search_by_key(&key, Place::key);
    found.map(|at| begin + at).map_err(|at| begin + at)
}

/// Where the first one is that has this hash or a larger one. Looked for where it should be if hashes were spread
/// perfectly; it is a few steps from there.
fn position(leaf: &[Place], hash: u64, depth: u32) -> usize {
    let rest = hash.checked_shl(BITS * depth).unwrap_or_default();
    let mut at = ((u128::from(rest) * leaf.len() as u128) >> u64::BITS) as usize;
    while leaf.get(at).is_some_and(|place| place.hash < hash) {
        at += 1;
    }
    while at > 0 && leaf[at - 1].hash >= hash {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gix::objs::Kind;

    use super::*;
    use crate::objects::sums::hash as hash_object;

    /// Spread evenly, the same in every run.
    fn scatter(n: u64) -> u64 {
        let mixed = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    fn place(hash: u64, check: u32, content: u64) -> Place {
        let id = hash_object(Kind::Blob, &content.to_le_bytes()).unwrap();
        Place { hash, spot: Spot::default(), check, id }
    }

    fn all(node: &Node) -> Vec<(u64, u32, ObjectId)> {
        let mut all = Vec::new();
        node.visit(&mut |place| all.push((place.hash, place.check, place.id)));
        all
    }

    fn expected(model: &BTreeMap<(u64, u32), ObjectId>) -> Vec<(u64, u32, ObjectId)> {
        model.iter().map(|(&(hash, check), &id)| (hash, check, id)).collect()
    }

    #[test]
    fn it_agrees_with_a_map_while_places_come_and_go_and_old_versions_stay() {
        // Few enough to be met again, and many enough for three levels.
        let universe = |n: u64| scatter(scatter(n) % 40_000);
        let mut model = BTreeMap::new();
        let mut node = Node::new(Vec::new());
        let mut versions = Vec::new();
        for n in 0..120_000_u64 {
            let (hash, check) = (universe(n), (n % 3) as u32);
            if scatter(n + 1).is_multiple_of(3) {
                node.remove(hash, check);
                model.remove(&(hash, check));
            } else {
                let place = place(hash, check, n);
                model.insert((hash, check), place.id);
                node.insert(place);
            }
            if n % 30_000 == 7 {
                versions.push((node.clone(), model.clone()));
            }
        }
        versions.push((node, model));
        for (node, model) in versions {
            assert_eq!(all(&node), expected(&model));
            for n in 0..40_000 {
                let hash = scatter(n);
                let found: Vec<_> =
                    node.find(hash).map(|place| (place.hash, place.check, place.id)).collect();
                let of_hash = model.range((hash, 0)..=(hash, u32::MAX));
                assert_eq!(found, of_hash.map(|(&(h, c), &id)| (h, c, id)).collect::<Vec<_>>());
            }
            let places = model.iter().map(|(&(hash, check), &id)| Place { id, ..place(hash, check, 0) });
            assert_eq!(all(&Node::new(places.rev().collect())), all(&node));
        }
    }

    #[test]
    fn hashes_that_are_alike_or_equal_are_told_apart() {
        let mut node = Node::new(Vec::new());
        let hashes = (0..200_u64).chain((0..200).map(|n| u64::MAX - n));
        let places: Vec<Place> = hashes.map(|hash| place(hash, 0, hash)).collect();
        places.iter().for_each(|place| node.insert(place.clone()));
        (0..200).for_each(|check| node.insert(place(7, check, 7)));
        assert!(places.iter().all(|place| node.find(place.hash).any(|found| found.id == place.id)));
        assert_eq!((node.find(7).count(), node.find(200).count()), (200, 0));
        (0..200).for_each(|check| node.remove(7, check));
        assert_eq!((node.find(7).count(), all(&node).len()), (0, 399));
    }

    #[test]
    fn a_change_copies_little_and_a_place_is_small() {
        let old = Node::new((0..100_000).map(|n| place(scatter(n), 0, n)).collect());
        let mut new = old.clone();
        new.insert(place(scatter(100_001), 0, 0));
        let (Node::Branch(old), Node::Branch(new)) = (&old, &new) else { panic!("they are many") };
        let is_shared = |(a, b): &(&Node, &Node)| match (a, b) {
            (Node::Branch(a), Node::Branch(b)) => Arc::ptr_eq(a, b),
            (Node::Leaf(a), Node::Leaf(b)) => Arc::ptr_eq(a, b),
            (Node::Leaf(_), Node::Branch(_)) | (Node::Branch(_), Node::Leaf(_)) => false,
        };
        assert_eq!(old.iter().zip(new.iter()).filter(is_shared).count(), WIDTH - 1);
        assert_eq!((size_of::<Place>(), size_of::<Node>()), (40, 16));
    }
}
