//! The secret that the server shares with a receiver.

use countersign_server::events::webhooks::{MIN_SECRET_BYTES, Secret};

/// RFC 4231, test cases 1 and 6.
#[test]
fn a_signature_is_hmac_sha_256() {
    let secret = Secret::new(&[0x0b; 20]).unwrap();
    assert_eq!(
        secret.sign(b"Hi There"),
        "sha256=b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
    );
    let secret = Secret::new(&[0xaa; 131]).unwrap();
    assert_eq!(
        secret.sign(b"Test Using Larger Than Block-Size Key - Hash Key First"),
        "sha256=60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    );
}

#[test]
fn a_secret_is_long_enough_and_is_not_shown() {
    assert!(Secret::new(&[b'a'; MIN_SECRET_BYTES - 1]).is_err());
    let secret = Secret::new(b"0123456789abcdef").unwrap();
    assert_eq!(format!("{secret:?}"), "Secret(…)");
}
