//! Keys, signatures and their spellings (D1–D3). The vectors `values/keys` and `values/signatures` have those at the
//! edges.

use countersign_core::values::digest::Sha512;
use countersign_core::values::key::{
    BadSignature, KeyError, KeyFormat, PublicKey, SecretKey, Signature, encode_base64,
};
use countersign_testing::fido::{SignsDigests as _, fido};
use countersign_testing::{alice, steady};
use proptest::prelude::*;
use serde_json::Value;

fn hex(text: &str) -> [u8; 32] {
    let byte = |i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hexadecimal");
    std::array::from_fn(byte)
}

fn unpadded(bytes: &[u8]) -> String {
    encode_base64(bytes).trim_end_matches('=').to_owned()
}

fn openssh(key: &PublicKey, comment: &str) -> String {
    let blob = [b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20".as_slice(), key.as_bytes()].concat();
    format!("ssh-ed25519 {}{comment}", encode_base64(&blob))
}

#[track_caller]
fn assert_no_key(text: &str) {
    assert!(PublicKey::parse(text).is_err(), "{text:?} is accepted");
}

proptest! {
    #![proptest_config(steady())]

    #[test]
    fn every_spelling_of_a_key_is_the_same_key(seed in any::<[u8; 32]>()) {
        let key = SecretKey::from_seed(&seed).public_key();
        let padded = encode_base64(key.as_bytes());
        let bare = unpadded(key.as_bytes());
        for text in [
            padded.clone(), bare.clone(), format!("svc-pub:{bare}"), format!("svc-pub:{padded}"),
            openssh(&key, ""), openssh(&key, " alice@example.org"), openssh(&key, " a comment of words"),
        ] {
            prop_assert_eq!(PublicKey::parse(&text), Ok(key), "{}", text);
        }
        prop_assert_eq!(key.to_string(), format!("svc-pub:{bare}"));
        prop_assert_eq!(key.to_base64(), padded);
    }

    #[test]
    fn a_signature_is_read_with_and_without_padding(seed in any::<[u8; 32]>(), content in any::<Vec<u8>>()) {
        let signature = SecretKey::from_seed(&seed).sign(&Sha512::of(&content));
        prop_assert!(signature.to_base64().ends_with("==") && !signature.to_header().contains('='));
        prop_assert_eq!(Signature::parse(&signature.to_base64()), Ok(signature));
        prop_assert_eq!(Signature::parse(&signature.to_header()), Ok(signature));
    }

    #[test]
    fn any_text_is_a_key_or_refused_without_a_panic(text in prop_oneof![any::<String>(), "(svc-pub:)?[A-Za-z0-9+/=]{43,44}"]) {
        if let Ok(key) = PublicKey::parse(&text) {
            prop_assert_eq!(PublicKey::parse(&key.to_string()), Ok(key));
        }
    }
}

#[test]
fn a_signature_is_ed25519_over_the_raw_sha512_digest_of_the_bytes() {
    let secret =
        SecretKey::from_seed(&hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"));
    let public = hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    assert_eq!(secret.public_key().as_bytes(), &public, "RFC 8032, test 1");

    let signature = secret.sign(&Sha512::of(b"content"));
    let digest: [u8; 64] =
        sha2::Digest::finalize(sha2::Digest::chain_update(sha2::Sha512::default(), b"content")).into();
    let independent = ed25519_dalek::Signer::sign(
        &ed25519_dalek::SigningKey::from_bytes(&hex(
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        )),
        &digest,
    );
    assert_eq!(signature.to_base64(), encode_base64(&independent.to_bytes()));
}

#[test]
fn the_url_safe_alphabet_is_refused() {
    let standard = (1..=255).map(|n| countersign_testing::key(n).public_key().to_base64());
    let with_both = standard.filter(|text| text.contains(['+', '/'])).take(5).collect::<Vec<_>>();
    assert_eq!(with_both.len(), 5);
    for text in with_both {
        assert_no_key(&text.replace('+', "-").replace('/', "_"));
    }
}

#[test]
fn an_openssh_line_of_another_kind_is_refused() {
    let key = alice().public_key();
    let blob = |head: &[u8], tail: &[u8]| {
        format!("ssh-ed25519 {}", encode_base64(&[head, key.as_bytes(), tail].concat()))
    };
    for text in [
        blob(b"\x00\x00\x00\x0bssh-ed25518\x00\x00\x00\x20", b""),
        blob(b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x21", b"\x00"),
        blob(b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20", b"\x00"),
    ] {
        assert_no_key(&text);
    }
}

#[test]
fn a_key_is_written_as_openssh_writes_it() {
    let key = alice().public_key();
    assert_eq!(key.to_ssh_line(""), openssh(&key, ""));
    assert_eq!(key.to_ssh_line("alice@example.org"), openssh(&key, " alice@example.org"));
    assert_eq!(PublicKey::parse(&key.to_ssh_line("a comment of words")), Ok(key));
    assert_eq!(
        format!("ssh-ed25519 {}", encode_base64(&key.to_ssh_blob(KeyFormat::Ed25519))),
        key.to_ssh_line("")
    );
}

#[test]
fn a_header_key_needs_its_prefix() {
    let key = alice().public_key();
    assert_eq!(PublicKey::parse_prefixed(&key.to_string()), Ok(key));
    assert_eq!(PublicKey::parse_prefixed(&key.to_base64()), Err(KeyError::MissingPrefix));
    assert_eq!(PublicKey::parse_prefixed(&openssh(&key, "")), Err(KeyError::MissingPrefix));
}

/// The vector has every encoding that is not reduced. In these, x is 0 and yet negative.
#[test]
fn second_encodings_of_a_point_are_refused() {
    let mut minus_one = [0xff; 32];
    minus_one[0] = 0xec;
    for y in [hex("0100000000000000000000000000000000000000000000000000000000000080"), minus_one] {
        assert!(PublicKey::from_bytes(y).is_err());
    }
}

#[test]
fn a_signature_whose_r_is_of_small_order_is_refused() {
    // R is the identity, and S = k·a: the equation of RFC 8032 holds, and a lax verifier is satisfied.
    let identity = hex("0100000000000000000000000000000000000000000000000000000000000000");
    let s = hex("35b2b378b3c5dcbd7d09ae6f3aacc3d494bfdf3d8157df43aec9d23557c22604");
    let (bytes, digest) = ([identity, s].concat(), Sha512::of(b"content"));
    let lax = ed25519_dalek::SigningKey::from_bytes(&[1; 32]).verifying_key();
    let lax_signature = ed25519_dalek::Signature::from_slice(&bytes).unwrap();
    assert!(ed25519_dalek::Verifier::verify(&lax, digest.as_bytes(), &lax_signature).is_ok());
    let signature = Signature::parse(&encode_base64(&bytes)).unwrap();
    assert_eq!(alice().public_key().verify(&digest, &signature), Err(BadSignature));
}

#[test]
fn a_secret_key_shows_nothing_of_itself() {
    let shown = format!("{:?}", SecretKey::from_seed(&[7; 32]));
    assert_eq!(shown, format!("SecretKey(of {})", countersign_testing::key(7).public_key()));
}

/// A signature that another implementation made, which `ssh-keygen -Y verify -n countersign` accepts.
#[test]
fn a_fido_key_signs_what_openssh_frames() {
    let vector: Value = serde_json::from_str(include_str!("../../vectors/formats/fido.json")).unwrap();
    let bytes = |name: &str| -> Vec<u8> {
        let text = vector[name].as_str().expect("hexadecimal");
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
    };
    let (key, format) = PublicKey::parse_with_format(vector["openssh"].as_str().unwrap()).unwrap();
    assert_eq!((key.as_bytes().to_vec(), format), (bytes("public"), Some(KeyFormat::Fido)));
    let line = format!("{} {}", KeyFormat::Fido.ssh_type(), encode_base64(&key.to_ssh_blob(KeyFormat::Fido)));
    assert_eq!(line, vector["openssh"]);
    let digest = Sha512::of(vector["content"].as_str().unwrap().as_bytes());
    assert_eq!(KeyFormat::Fido.message(&digest), bytes("message_M"));
    let signature = Signature::parse(&encode_base64(&bytes("signature_69_bytes"))).unwrap();
    assert_eq!(signature.framed(&digest), Some(bytes("signed_69_bytes")));
    assert_eq!(key.verify(&digest, &signature), Ok(()));
    assert_eq!(Signature::parse(&signature.to_header()), Ok(signature));
    assert!(key.verify(&Sha512::of(b"other"), &signature).is_err());
    // The armor of OpenSSH has the same key and the same signature.
    let armor: String =
        vector["sshsig"].as_str().unwrap().lines().filter(|line| !line.starts_with('-')).collect();
    let armor = countersign_core::values::key::decode_base64(&armor).unwrap();
    assert!(armor.ends_with(&signature.to_bytes()[64..]));
    assert!(armor.windows(64).any(|part| part == signature.ed25519_bytes()));
    assert_eq!(fido(9).sign(&digest), signature, "the emulated key of our tests");
}
