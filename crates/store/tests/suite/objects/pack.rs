//! Packs that the store writes, read back through gix.

use bytes::Bytes;
use countersign_store::ObjectId;
use countersign_store::objects::pack::{
    EncodedPack, IndexEntry, MAX_STORED, PackObject, encode, encode_index,
};
use countersign_store::objects::{delta::encode_delta, hash};
use countersign_testing::Random;
use gix::{hash::Kind as HashKind, objs::Kind, odb::pack::cache, odb::pack::data, odb::pack::index};

fn object(kind: Kind, data: &[u8], base: Option<usize>) -> PackObject {
    let id = hash(kind, data).unwrap();
    PackObject { kind, id, data: Bytes::copy_from_slice(data), base }
}

/// Reads every object back through gix, by its id.
fn check(objects: &[PackObject]) -> EncodedPack {
    let encoded = encode(objects);
    let index = index::File::from_data(encoded.index.clone(), "i.idx".into(), HashKind::Sha1).unwrap();
    let pack = data::File::from_data(encoded.pack.clone(), "i.pack".into(), HashKind::Sha1).unwrap();
    assert_eq!(index.num_objects() as usize, objects.len());
    let mut inflate = gix::zlib::Inflate::default();
    for object in objects {
        let at = index.lookup(object.id).expect("the index names every object");
        let entry = pack.entry(index.pack_offset_at_index(at)).unwrap();
        let mut out = Vec::new();
        let found = pack.decode_entry(entry, &mut out, &mut inflate, &|_, _| Ok(None), &mut cache::Never);
        assert_eq!(found.unwrap().kind, object.kind);
        assert_eq!(out, object.data);
    }
    encoded
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut random = Random::congruential(1);
    // The uppermost bits.
    (0..bytes).map(|_| (random.draw() >> 23) as u8).collect()
}

#[test]
fn objects_of_every_size_are_read_back() {
    let data: Vec<Vec<u8>> =
        [0, 1, 15, 16, 127, MAX_STORED, MAX_STORED + 1, 4_096, 4_097, 65_535, 65_536, 70_000]
            .map(noise)
            .into();
    let kinds = [Kind::Blob, Kind::Tree];
    let objects = kinds.iter().flat_map(|kind| data.iter().map(|data| object(*kind, data, None)));
    check(&objects.collect::<Vec<_>>());
}

#[test]
fn versions_of_a_large_object_become_a_chain_of_differences() {
    let first = noise(0x1_0000 * 3);
    let versions: Vec<Vec<u8>> = (0..120)
        .map(|n| {
            let mut version = first.clone();
            version.splice(1_000 * n..1_000 * n + 20, noise(n));
            version
        })
        .collect();
    let objects: Vec<_> =
        versions.iter().enumerate().map(|(n, data)| object(Kind::Blob, data, n.checked_sub(1))).collect();
    let encoded = check(&objects);
    // 120 versions in chains of 51 need three full copies.
    assert!(encoded.pack.len() < first.len() * 4, "{} bytes", encoded.pack.len());
}

/// A document with these lines.
fn document(lines: impl Iterator<Item = usize>) -> Vec<u8> {
    let line = |n: usize| format!("  \"line {n:05}\": \"{:064x}\",\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    lines.map(line).collect::<String>().into_bytes()
}

#[test]
fn lines_that_come_and_go_anywhere_make_a_short_difference() {
    let base = document((0..2_000).filter(|n| n % 50 != 0));
    let more = document(0..2_000);
    let fewer = document((0..2_000).filter(|n| n % 50 != 0 && n % 77 != 0));
    for target in [more, fewer] {
        let difference = encode_delta(&base, &target).len();
        check(&[object(Kind::Blob, &base, None), object(Kind::Blob, &target, Some(0))]);
        assert!(difference < target.len() / 30, "{difference} of {} bytes", target.len());
    }
}

#[test]
fn whatever_lines_two_versions_have_in_common_the_later_one_is_read_back() {
    let mut random = Random::congruential(7);
    let mut next = |below: usize| random.place(below);
    for _ in 0..200 {
        // Lines that repeat, change their places, and are cut off.
        let mut draw = || {
            let (count, cut) = (next(40), next(30));
            let mut bytes = document((0..count).map(|_| next(12)).collect::<Vec<_>>().into_iter());
            bytes.truncate(bytes.len().saturating_sub(cut));
            bytes
        };
        let (base, target) = (draw(), draw());
        if base != target {
            check(&[object(Kind::Blob, &base, None), object(Kind::Blob, &target, Some(0))]);
        }
    }
}

#[test]
fn a_difference_handles_overlap_growth_and_nothing_in_common() {
    let cases: [(&[u8], &[u8]); 6] = [
        (b"aaaaaaaaaaaaaaaaaaaaaaaa", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        (b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"aaaaaaaaaaaaaaaaaaaaaaa"),
        (b"", b"something"),
        (b"something", b""),
        (b"abcdefghijklmnopqrstuvwxyz0123456789", b"abcdefghijklmnopqrstuvwxyz0123456789!"),
        (b"abc", b"xyz"),
    ];
    for (base, target) in cases {
        check(&[object(Kind::Blob, base, None), object(Kind::Blob, target, Some(0))]);
    }
}

#[test]
fn offsets_beyond_31_bits_are_found_in_the_index() {
    let ids: Vec<ObjectId> = (0..4).map(|n| object(Kind::Blob, &[n], None).id).collect();
    let offsets = [12, (1 << 31) - 1, 1 << 31, 1 << 40];
    let entries = ids.iter().zip(offsets).map(|(&id, offset)| IndexEntry { id, crc32: 0, offset }).collect();
    let bytes = encode_index(entries, ids[0]);
    let index = index::File::from_data(bytes, "i.idx".into(), HashKind::Sha1).unwrap();
    for (id, offset) in ids.iter().zip(offsets) {
        assert_eq!(index.pack_offset_at_index(index.lookup(id).unwrap()), offset);
    }
}
