//! Content that lies in a pack as it is: a zlib stream of one block that is not compressed. Writing it costs a copy, and
//! reading it nothing, since the pack is in memory wherever somebody reads it.

/// What one such block can hold is more, but here the sums of the checksum cannot overflow before they are reduced.
pub(super) const MAX_BYTES: usize = 4_096;
/// A header for small windows and no preset dictionary, then "the last block, as it is".
const BEGINNING: [u8; 3] = [0x78, 0x01, 0x01];
/// The beginning, and the length with its complement.
pub(super) const HEAD_BYTES: usize = BEGINNING.len() + 4;
const CHECKSUM_BYTES: usize = 4;

pub(super) fn append(data: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(data.len()).expect("at most MAX_BYTES");
    out.extend_from_slice(&BEGINNING);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(&adler32(data).to_be_bytes());
}

/// How many bytes `append` makes of so many.
pub(super) fn encoded_len(bytes: usize) -> usize {
    HEAD_BYTES + bytes + CHECKSUM_BYTES
}

/// The content of a stream that `append` made; `None` for any other, or where it is damaged.
pub(super) fn content(stream: &[u8]) -> Option<&[u8]> {
    let (head, rest) = stream.split_at_checked(HEAD_BYTES)?;
    let &[a, b] = head.strip_prefix(&BEGINNING)?.first_chunk::<2>()?;
    let length = u16::from_le_bytes([a, b]);
    let (data, checksum) = rest.split_at_checked(usize::from(length))?;
    let is_whole = head.ends_with(&(!length).to_le_bytes())
        && data.len() <= MAX_BYTES
        && checksum == adler32(data).to_be_bytes();
    is_whole.then_some(data)
}

/// The sum of the bytes, and the sum of all sums on the way. Counted in columns, each by itself, so that the processor
/// takes many at a time: one byte after the other would cost more than the rest of a read.
fn adler32(data: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    const COLUMNS: usize = 16;
    /// After so many, the sums of a column still fit into two bytes.
    const ROWS: usize = 16;
    let (mut sums, mut sums_of_sums) = ([0_u32; COLUMNS], [0_u32; COLUMNS]);
    for block in data.chunks(ROWS * COLUMNS) {
        let (rows, _) = block.as_chunks::<COLUMNS>();
        let (inner, inner_of_sums) = sum_columns(rows);
        for column in 0..COLUMNS {
            sums_of_sums[column] += sums[column] * rows.len() as u32 + u32::from(inner_of_sums[column]);
            sums[column] += u32::from(inner[column]);
        }
    }
    // A byte counts once for itself and once for each that follows it; in its column only every sixteenth was counted.
    let too_many: u32 = sums.iter().zip(0..).map(|(sum, column)| sum * column).sum();
    let (rows, rest) = data.as_chunks::<COLUMNS>();
    let mut a = 1 + sums.iter().sum::<u32>();
    let mut b = (rows.len() as u32 + sums_of_sums.iter().sum::<u32>()) * COLUMNS as u32 - too_many;
    for byte in rest {
        a += u32::from(*byte);
        b += a;
    }
    ((b % MODULUS) << 16) | (a % MODULUS)
}

fn sum_columns<const COLUMNS: usize>(rows: &[[u8; COLUMNS]]) -> ([u16; COLUMNS], [u16; COLUMNS]) {
    let (mut sums, mut sums_of_sums) = ([0; COLUMNS], [0; COLUMNS]);
    for row in rows {
        for ((sum, of_sums), byte) in sums.iter_mut().zip(&mut sums_of_sums).zip(row) {
            *sum += u16::from(*byte);
            *of_sums += *sum;
        }
    }
    (sums, sums_of_sums)
}

#[cfg(test)]
mod tests {
    use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

    use super::*;

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
}
