//! Public keys, signatures and base64 (D1–D3).

use countersign_core::values::{
    digest::{Sha256, Sha512},
    key::{PublicKey, SecretKey, Signature, decode_base64, encode_base64},
};

pub fn check(data: &[u8]) {
    check_bytes(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(bytes) = decode_base64(text) {
        // Canonical: the bytes have no other text, except the one without padding.
        let padded = encode_base64(&bytes);
        assert!(text == padded || text == padded.trim_end_matches('='), "{text:?}");
    }
    if let Ok(key) = PublicKey::parse(text) {
        check_key(&key);
        let is_ssh = text.starts_with("ssh-ed25519 ");
        assert!(is_ssh || text.trim_end_matches('=') == key.to_string().trim_start_matches(prefix(text)));
    }
    if let Ok(key) = PublicKey::parse_prefixed(text) {
        assert_eq!(PublicKey::parse(text), Ok(key));
    }
    if let Ok(signature) = Signature::parse(text) {
        assert_eq!(Signature::parse(&signature.to_base64()), Ok(signature));
        assert_eq!(Signature::parse(&signature.to_header()), Ok(signature));
        assert!(text == signature.to_base64() || text == signature.to_header());
    }
    check_digest::<32>(text, Sha256::parse);
    check_digest::<64>(text, Sha512::parse);
    if let Some(digest) = Sha512::parse_prefixed(text) {
        assert_eq!(digest.to_prefixed(), text);
    }
}

/// The prefix that the text lacks.
fn prefix(text: &str) -> &'static str {
    if text.starts_with("svc-pub:") { "" } else { "svc-pub:" }
}

fn check_digest<const N: usize>(
    text: &str,
    parse: fn(&str) -> Option<countersign_core::values::digest::HexDigest<N>>,
) {
    if let Some(digest) = parse(text) {
        assert_eq!(digest.to_string(), text, "digests have one spelling");
        assert_eq!(text.len(), 2 * N);
    }
}

fn check_key(key: &PublicKey) {
    assert_eq!(PublicKey::from_bytes(*key.as_bytes()).as_ref(), Ok(key));
    for spelling in [key.to_string(), key.to_base64(), key.to_ssh_line(""), key.to_ssh_line("a comment")] {
        assert_eq!(PublicKey::parse(&spelling).as_ref(), Ok(key), "{spelling}");
    }
    assert!(!is_of_small_order(key.as_bytes()));
}

fn check_bytes(data: &[u8]) {
    assert_eq!(decode_base64(&encode_base64(data)).as_deref(), Some(data));
    let Some((seed, rest)) = data.split_first_chunk::<32>() else { return };
    if let Ok(key) = PublicKey::from_bytes(*seed) {
        check_key(&key);
        if let Some((bytes, content)) = rest.split_first_chunk::<64>() {
            // A random signature never verifies, least of all for a key whose secret is unknown.
            assert!(key.verify(&Sha512::of(content), &Signature::from_bytes(*bytes)).is_err());
        }
    }
    let secret = SecretKey::from_seed(seed);
    check_key(&secret.public_key());
    let (digest, signature) = (Sha512::of(rest), secret.sign(&Sha512::of(rest)));
    assert!(secret.public_key().verify(&digest, &signature).is_ok());
    if let Some((at, bit)) = rest.first().map(|byte| (usize::from(byte >> 3) % 64, byte & 7)) {
        let mut bytes: [u8; 64] = decode_base64(&signature.to_base64())
            .expect("written by us")
            .try_into()
            .expect("a signature has 64 bytes");
        bytes[at] ^= 1 << bit;
        assert!(secret.public_key().verify(&digest, &Signature::from_bytes(bytes)).is_err());
    }
}

/// The encodings of the eight points of small order, by their y-coordinate, which the sign bit does not change.
fn is_of_small_order(bytes: &[u8; 32]) -> bool {
    const ORDER_8: [&str; 2] = [
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    ];
    let mut y = *bytes;
    y[31] &= 0x7f;
    let mut small = [[0; 32], [0; 32], [0xff; 32], [0xff; 32], [0xff; 32]];
    small[1][0] = 1;
    for (point, lowest) in small[2..].iter_mut().zip([0xec, 0xed, 0xee]) {
        (point[0], point[31]) = (lowest, 0x7f);
    }
    let order_8 = ORDER_8.map(|hex| *Sha256::parse(hex).expect("hexadecimal").as_bytes());
    small.contains(&y) || order_8.contains(&y)
}
