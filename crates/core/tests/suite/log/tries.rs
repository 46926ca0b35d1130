//! The status map's trie, compared with a plain map and with a root that is computed anew.

use std::collections::BTreeMap;

use countersign_core::log::tree::Hash;
use countersign_core::log::trie::{BitsDoNotRise, EMPTY, Trie, TrieKey, TriePath, TrieSibling, leaf_hash};
use countersign_core::values::digest::Sha256;
use countersign_testing::Random;

type Siblings = Vec<TrieSibling>;

/// Keys of which many begin alike, to the last bit.
fn crowded_key(n: u64) -> TrieKey {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&(n % 50).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[24..].copy_from_slice(&(n / 50 % 300).to_be_bytes());
    key
}

fn bit(key: &TrieKey, n: usize) -> bool {
    key[n / 8] >> (7 - n % 8) & 1 == 1
}

/// The root by its definition, bit by bit, of records in the order of their keys.
fn naive_root(records: &[(TrieKey, Vec<u8>)], bit_number: usize) -> [u8; 32] {
    let (first, last) = match records {
        [] => return [0; 32],
        [(key, record)] => {
            return *Sha256::of(&[&[2], key.as_slice(), Sha256::of(record).as_bytes()].concat()).as_bytes();
        }
        [first, .., last] => (first, last),
    };
    // If the first and the last do not differ here, no others do.
    if bit(&first.0, bit_number) == bit(&last.0, bit_number) {
        return naive_root(records, bit_number + 1);
    }
    let (left, right) = records.split_at(records.iter().take_while(|(key, _)| !bit(key, bit_number)).count());
    let byte = u8::try_from(bit_number).expect("a bit of a key");
    let (left, right) = (naive_root(left, bit_number + 1), naive_root(right, bit_number + 1));
    *Sha256::of(&[&[3, byte], left.as_slice(), &right].concat()).as_bytes()
}

fn record(value: u64) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

fn insert(trie: &Trie<u64>, key: TrieKey, value: u64) -> Trie<u64> {
    trie.insert(key, leaf_hash(&key, &record(value)), value)
}

fn assert_same(trie: &Trie<u64>, map: &BTreeMap<TrieKey, u64>, context: &str) {
    let records: Vec<_> = map.iter().map(|(key, value)| (*key, record(*value))).collect();
    assert_eq!(trie.root().as_bytes(), &naive_root(&records, 0), "{context}");
    let all = map.iter().map(|(key, value)| (*key, leaf_hash(key, &record(*value)), *value));
    assert_eq!(Trie::build(all).root(), trie.root(), "{context}");
    assert_eq!(trie.count(), map.len() as u64, "{context}");
}

#[test]
fn a_million_operations_give_what_a_plain_map_gives() {
    let mut random = Random::split_mix(18);
    let (mut trie, mut map, mut versions) = (Trie::default(), BTreeMap::new(), Vec::new());
    for n in 0..1_000_000_u64 {
        let key = match random.below(4) {
            0 => *Sha256::of(&random.below(5_000).to_be_bytes()).as_bytes(),
            _ => crowded_key(random.draw()),
        };
        // Reading is the most of it, as in a server.
        if random.below(32) == 0 {
            let value = random.draw();
            trie = insert(&trie, key, value);
            map.insert(key, value);
            assert!(trie.holds(&key, &leaf_hash(&key, &record(value))), "{n}");
        } else {
            assert_eq!(trie.get(&key), map.get(&key), "{n}");
        }
        if n % 64 == 0 {
            let proven = trie.prove(&key).map(|path| path.root(&key, &record(map[&key])));
            assert_eq!(proven, map.get(&key).map(|_| Ok(trie.root())), "{n}");
        }
        if n % 250_000 == 249_999 {
            assert_same(&trie, &map, &format!("after {n}"));
            versions.push((trie.clone(), map.clone()));
        }
    }
    assert!(map.len() > 8_000, "{}", map.len());
    for (n, (trie, map)) in versions.iter().enumerate() {
        assert_same(trie, map, &format!("version {n} is as it was"));
    }
}

#[test]
fn small_tries_are_right_after_every_step_and_in_every_order() {
    let mut random = Random::split_mix(1);
    for round in 0..300 {
        let (mut trie, mut map) = (Trie::default(), BTreeMap::new());
        assert_eq!(trie.root().as_bytes(), &EMPTY);
        assert_eq!(trie.prove(&[0; 32]), None);
        for step in 0..random.below(12) {
            let key = crowded_key(random.below(2_000));
            trie = insert(&trie, key, step);
            map.insert(key, step);
            assert_same(&trie, &map, &format!("round {round}, step {step}"));
        }
        let backwards =
            map.iter().rev().fold(Trie::default(), |trie, (key, value)| insert(&trie, *key, *value));
        assert_eq!(backwards.root(), trie.root());
    }
}

#[test]
fn keys_that_differ_in_one_bit_only_are_told_apart() {
    for n in 0..256 {
        let mut other = [0; 32];
        other[n / 8] = 0x80 >> (n % 8);
        let trie = insert(&insert(&Trie::default(), [0; 32], 1), other, 2);
        assert_eq!((trie.get(&[0; 32]), trie.get(&other)), (Some(&1), Some(&2)));
        let path = trie.prove(&other).unwrap();
        assert_eq!(path.siblings, [sibling(u8::try_from(n).unwrap(), leaf_hash(&[0; 32], &record(1)))]);
        assert_eq!(path.root(&other, &record(2)), Ok(trie.root()));
    }
}

fn sibling(bit: u8, hash: Hash) -> TrieSibling {
    TrieSibling { bit, hash }
}

#[test]
fn bits_must_rise_and_every_part_of_a_path_matters() {
    let keys: Vec<TrieKey> = (0..2_000_u64).map(|n| *Sha256::of(&n.to_be_bytes()).as_bytes()).collect();
    let trie = keys.iter().zip(0..).fold(Trie::default(), |trie, (key, n)| insert(&trie, *key, n));
    let (key, path) = (keys[7], trie.prove(&keys[7]).unwrap());
    assert!(path.siblings.len() > 8, "{}", path.siblings.len());
    for n in 0..path.siblings.len() {
        let edited = |edit: &dyn Fn(&mut Siblings)| {
            let mut path = path.clone();
            edit(&mut path.siblings);
            path.root(&key, &record(7))
        };
        assert_ne!(edited(&|siblings| siblings[n].hash = leaf_hash(&key, b"")), Ok(trie.root()));
        assert_ne!(edited(&|siblings| siblings[n].bit ^= 1), Ok(trie.root()));
        assert_ne!(edited(&|siblings| _ = siblings.remove(n)), Ok(trie.root()));
        assert_eq!(edited(&|siblings| siblings.insert(n, siblings[n])), Err(BitsDoNotRise));
    }
    assert_ne!(path.root(&key, &record(8)), Ok(trie.root()));
    assert_ne!(path.root(&keys[8], &record(7)), Ok(trie.root()));
    // No path is longer than a key.
    let all = |bits: &mut dyn Iterator<Item = u8>| TriePath {
        siblings: bits.map(|bit| sibling(bit, trie.root())).collect(),
    };
    assert!(all(&mut (0..=255)).root(&key, b"").is_ok());
    assert_eq!(all(&mut (0..=255).chain([255])).root(&key, b""), Err(BitsDoNotRise));
}

/// A map has a million records: a failed comparison does not print them.
#[test]
fn a_trie_is_shown_by_its_root() {
    let tries = [Trie::default(), insert(&Trie::default(), crowded_key(1), 1)];
    let [empty, one] = tries.each_ref().map(|trie| format!("{trie:?}"));
    assert_eq!(empty, format!("Trie({})", Hash::from_bytes(EMPTY)));
    assert_eq!(one, format!("Trie({})", tries[1].root()));
}
