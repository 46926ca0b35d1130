//! Several packs become one.

use std::{fs, io, path::PathBuf, sync::Arc, sync::atomic::AtomicBool};

use bytes::Bytes;
use countersign_store::objects::pack::{IndexEntry, MAX_CHAIN, Pack, PackObject, encode, encode_index};
use countersign_store::objects::{hash, pack};
use countersign_store::{ObjectId, writer::fold::concatenate};
use gix::{objs::Kind, odb::pack::cache, zlib::Inflate};
use tempfile::TempDir;

/// Versions of a file: some lines, of which each version has one more.
fn versions(count: usize) -> Vec<Vec<u8>> {
    let line = |n: usize| format!("  \"signature\": \"{:088x}\",\n", n.wrapping_mul(0x9e37_79b9));
    (0..count).map(|version| (0..60 + version).map(line).collect::<String>().into_bytes()).collect()
}

/// A pack with these files, each a difference to the one before if `chained`.
fn write_pack(dir: &TempDir, files: &[Vec<u8>], chained: bool) -> PathBuf {
    let object = |(n, data): (usize, &'_ Vec<u8>)| {
        let base = if chained { n.checked_sub(1) } else { None };
        (hash(Kind::Blob, data).unwrap(), base)
    };
    let ids: Vec<_> = files.iter().enumerate().map(object).collect();
    let objects = ids.iter().zip(files).map(|((id, base), data)| PackObject {
        kind: Kind::Blob,
        id: *id,
        data: Bytes::copy_from_slice(data),
        base: *base,
    });
    let encoded = encode(&objects.collect::<Vec<_>>());
    let stem = dir.path().join(format!("pack-{}", encoded.id));
    fs::write(stem.with_extension("pack"), &encoded.pack).unwrap();
    fs::write(stem.with_extension("idx"), &encoded.index).unwrap();
    stem
}

fn fold(stems: &[PathBuf]) -> io::Result<(Vec<u8>, ObjectId, Vec<IndexEntry>)> {
    let sources: Vec<_> = stems.iter().map(|stem| Arc::new(Pack::open(stem.clone()).unwrap())).collect();
    let mut out = Vec::new();
    let (id, index) = concatenate(&sources, &mut out, &AtomicBool::new(false))?;
    Ok((out, id, index))
}

/// The objects of a folded pack, and how many differences lead to each.
fn read_back(dir: &TempDir, (bytes, id, index): (Vec<u8>, ObjectId, Vec<IndexEntry>)) -> Vec<(Vec<u8>, u32)> {
    let stem = dir.path().join(format!("pack-{id}"));
    fs::write(stem.with_extension("pack"), &bytes).unwrap();
    fs::write(stem.with_extension("idx"), encode_index(index.clone(), id)).unwrap();
    let pack = Pack::open(stem).unwrap();
    let read = |entry: &IndexEntry| {
        let (mut content, mut inflate) = (Vec::new(), Inflate::default());
        let data = &pack.bundle.pack;
        let parsed = data.entry(entry.offset).unwrap();
        let decoded = data
            .decode_entry(parsed, &mut content, &mut inflate, &|_, _| Ok(None), &mut cache::Never)
            .unwrap();
        assert_eq!(hash(decoded.kind, &content), Some(entry.id));
        (content, decoded.num_deltas)
    };
    index.iter().map(read).collect()
}

#[test]
fn versions_in_many_packs_become_differences_and_are_read_back() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let files = versions(16);
    let stems: Vec<_> =
        files.iter().map(|file| write_pack(&from, std::slice::from_ref(file), false)).collect();
    let folded = fold(&stems).unwrap();
    let whole = folded.0.len();
    let read = read_back(&to, folded);
    assert_eq!(read.iter().map(|(content, _)| content.clone()).collect::<Vec<_>>(), files);
    let differences = read.iter().filter(|(_, depth)| *depth > 0).count();
    assert!(differences >= 12, "{differences} of 16, in {whole} bytes");
}

#[test]
fn small_files_stay_whole_so_that_they_are_read_as_they_lie() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let cut = |length: usize| versions(8).into_iter().map(move |file| file[file.len() - length..].to_vec());
    for (length, are_whole) in [(pack::MAX_BYTES, true), (pack::MAX_BYTES + 1, false)] {
        let files: Vec<_> = cut(length).collect();
        let stems: Vec<_> =
            files.iter().map(|file| write_pack(&from, std::slice::from_ref(file), false)).collect();
        let read = read_back(&to, fold(&stems).unwrap());
        assert_eq!(read.iter().all(|(_, depth)| *depth == 0), are_whole, "{length} bytes");
    }
}

#[test]
fn chains_stay_short_through_many_folds() {
    let dir = TempDir::new().unwrap();
    let files = versions(400);
    let mut folded: Option<PathBuf> = None;
    for batch in files.chunks(20) {
        // What was folded last comes last, and bears what it bore.
        let stems: Vec<_> = [write_pack(&dir, batch, true)].into_iter().chain(folded).collect();
        let (bytes, id, index) = fold(&stems).unwrap();
        folded = Some(dir.path().join(format!("pack-{id}")));
        let depths = read_back(&dir, (bytes, id, index));
        let deepest = depths.iter().map(|(_, depth)| *depth).max().unwrap();
        assert!(deepest as usize <= MAX_CHAIN, "{deepest} differences");
    }
}

#[test]
fn damage_is_found_and_not_copied() {
    let dir = TempDir::new().unwrap();
    let files = versions(3);
    let stems = [write_pack(&dir, &files[..1], false), write_pack(&dir, &files[1..], true)];
    fold(&stems).unwrap();
    for stem in &stems {
        let path = stem.with_extension("pack");
        let sound = fs::read(&path).unwrap();
        // Between the pack's own header and its checksum, which nothing is copied from.
        for at in (12..sound.len() - 20).step_by(7) {
            let mut damaged = sound.clone();
            damaged[at] ^= 4;
            fs::write(&path, damaged).unwrap();
            assert_eq!(fold(&stems).map(|_| ()).unwrap_err().kind(), io::ErrorKind::InvalidData, "byte {at}");
        }
        fs::write(&path, sound).unwrap();
    }
    fold(&stems).unwrap();
}
