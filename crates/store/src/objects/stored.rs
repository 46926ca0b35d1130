//! Content that lies in a pack as it is: a zlib stream of one block that is not compressed. Writing it costs a copy, and so
//! does reading it, since the pack is in memory wherever someone reads it.

use zlib_rs::adler32::adler32;

/// The most bytes that one such block can hold.
pub const MAX_BLOCK: usize = u16::MAX as usize;
/// Files that are larger are worth compressing.
pub const MAX_BYTES: usize = 4_096;
/// A header for small windows and no preset dictionary, then "the last block, as it is".
const BEGINNING: [u8; 3] = [0x78, 0x01, 0x01];
/// The beginning, and the length with its complement.
const HEAD_BYTES: usize = BEGINNING.len() + 4;
const CHECKSUM_BYTES: usize = 4;

pub fn append(data: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(data.len()).expect("at most MAX_BLOCK");
    out.extend_from_slice(&BEGINNING);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(&checksum(data));
}

/// How many bytes `append` makes of `bytes`.
pub fn encoded_len(bytes: usize) -> usize {
    HEAD_BYTES + bytes + CHECKSUM_BYTES
}

/// The content of a stream that `append` made; `None` for any other, or where it is damaged.
pub fn content(stream: &[u8]) -> Option<&[u8]> {
    let (head, rest) = stream.split_at_checked(HEAD_BYTES)?;
    let &[a, b] = head.strip_prefix(&BEGINNING)?.first_chunk::<2>()?;
    let length = u16::from_le_bytes([a, b]);
    let (data, sum) = rest.split_at_checked(usize::from(length))?;
    let is_whole =
        head.ends_with(&(!length).to_le_bytes()) && data.len() <= MAX_BYTES && sum == checksum(data);
    is_whole.then_some(data)
}

fn checksum(data: &[u8]) -> [u8; CHECKSUM_BYTES] {
    adler32(1, data).to_be_bytes()
}
