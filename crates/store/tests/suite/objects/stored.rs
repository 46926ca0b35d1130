//! Content that lies in a pack as it is.

use countersign_store::objects::pack::{MAX_BYTES, append, content, encoded_len};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

fn encoded(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    append(data, &mut out);
    out
}

#[test]
fn what_is_appended_is_a_zlib_stream_and_is_read_back() {
    for length in (0..100).chain([1_023, 1_231, MAX_BYTES - 1, MAX_BYTES]) {
        // The largest bytes make the largest sums.
        for data in [vec![0xff; length], (0..length).map(|i| (i * 7) as u8).collect::<Vec<u8>>()] {
            let stream = encoded(&data);
            assert_eq!(stream.len(), encoded_len(length));
            assert_eq!(content(&stream), Some(&*data));
            let mut out = Vec::with_capacity(length + 1);
            let status =
                Decompress::new(true).decompress_vec(&stream, &mut out, FlushDecompress::Finish).unwrap();
            assert_eq!((status, &out), (Status::StreamEnd, &data));
        }
    }
}

#[test]
fn whatever_is_damaged_or_compressed_is_left_to_others() {
    let stream = encoded(b"some content of a file");
    for at in 0..stream.len() {
        let mut damaged = stream.clone();
        damaged[at] ^= 1;
        assert_eq!(content(&damaged), None, "byte {at}");
        assert_eq!(content(&stream[..at]), None, "{at} bytes");
    }
    let mut compressed = Vec::with_capacity(100);
    let mut deflate = Compress::new(Compression::fast(), true);
    deflate.compress_vec(&[b'x'; 1_000], &mut compressed, FlushCompress::Finish).unwrap();
    assert_eq!(content(&compressed), None);
}
