//! What witnesses sign of a checkpoint (c2sp.org/tlog-cosignature).

use crate::log::checkpoint::Checkpoint;
use crate::values::bounds::KEY_NAME_BYTES;

/// The first bytes of what an ML-DSA-44 key signs.
const LABEL: &[u8; 12] = b"subtree/v1\n\0";
const _: () = assert!(KEY_NAME_BYTES <= u8::MAX as usize, "the length of a name is one byte");

/// What an Ed25519 key signs: a time, and the text of the checkpoint.
pub fn cosigned_text(text: &str, time: u64) -> String {
    format!("cosignature/v1\ntime {time}\n{text}")
}

/// What an ML-DSA-44 key signs: its name, a time, and origin, size and root of the checkpoint; of its extension lines nothing
/// (D263). `None` if the text is no checkpoint, or the name too long.
pub fn cosigned_bytes(text: &str, name: &str, time: u64) -> Option<Vec<u8>> {
    let Checkpoint { origin, size, root } = Checkpoint::parse_extended(text).ok()?;
    let [name_length, origin_length] = [name.len(), origin.len()].map(|length| u8::try_from(length).ok());
    Some(
        [
            LABEL.as_slice(),
            &[name_length?],
            name.as_bytes(),
            &time.to_be_bytes(),
            &[origin_length?],
            origin.as_bytes(),
            // All leaves from the first one on.
            &0_u64.to_be_bytes(),
            &size.to_be_bytes(),
            root.as_bytes(),
        ]
        .concat(),
    )
}
