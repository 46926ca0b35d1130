#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;

use crate::keys::*;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/keys").join(name)
}

fn content(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).unwrap()
}

fn parse(name: &str) -> Result<KeyFile, Unusable> {
    KeyFile::parse(&content(name))
}

#[track_caller]
fn private(content: &[u8]) -> OpenSshKey {
    match KeyFile::parse(content).unwrap() {
        KeyFile::Private(key) => *key,
        KeyFile::Public(key) => panic!("a public key: {key}"),
    }
}

#[track_caller]
fn public(content: &[u8]) -> PublicKey {
    match KeyFile::parse(content).unwrap() {
        KeyFile::Public(key) => key,
        KeyFile::Private(_) => panic!("a private key"),
    }
}

fn fixture_key() -> PublicKey {
    public(&content("plain.pub"))
}

#[test]
fn a_key_of_ssh_keygen_is_read() {
    let key = private(&content("plain"));
    assert!(!key.is_encrypted());
    assert_eq!(key.read().unwrap().public_key(), fixture_key());
}

#[test]
fn every_usual_cipher_is_decrypted_with_the_right_passphrase_and_with_no_other() {
    for cipher in ["aes256-ctr", "aes128-cbc", "aes256-cbc", "aes128-gcm", "aes256-gcm", "chacha20-poly1305"]
    {
        let key = private(&content(&format!("encrypted-{cipher}")));
        assert!(key.is_encrypted());
        let opened = key.unlock(b"correct horse battery staple").unwrap();
        assert_eq!(opened.public_key(), fixture_key(), "{cipher}");
        for wrong in [b"correct horse battery".as_slice(), b"", b"\xff"] {
            assert_eq!(key.unlock(wrong).unwrap_err(), UnlockError::Passphrase, "{cipher}");
        }
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let named = |name: &str| name.to_owned();
    let fido = || Unusable::Fido(named("sk-ssh-ed25519@openssh.com"));
    for (file, expected) in [
        ("sk", fido()),
        ("sk.pub", fido()),
        ("rsa", Unusable::OtherType(named("ssh-rsa"))),
        ("rsa-encrypted", Unusable::OtherType(named("ssh-rsa"))),
        ("rsa.pub", Unusable::OtherType(named("ssh-rsa"))),
        ("ecdsa", Unusable::OtherType(named("ecdsa-sha2-nistp256"))),
        ("ecdsa.pub", Unusable::OtherType(named("ecdsa-sha2-nistp256"))),
        ("certificate.pub", Unusable::Certificate(named("ssh-ed25519-cert-v01@openssh.com"))),
        ("rsa-pem", Unusable::Pem(named("RSA PRIVATE KEY"))),
        ("pkcs8", Unusable::Pem(named("PRIVATE KEY"))),
        ("putty", Unusable::Putty),
        ("rfc4716.pub", Unusable::Rfc4716),
        ("encrypted-3des-cbc", Unusable::Cipher(named("3des-cbc, bcrypt"))),
        ("README.md", Unusable::Nothing),
    ] {
        let found = parse(file).unwrap_err();
        assert_eq!(found, expected, "{file}");
        assert!(!found.hint().is_empty());
    }
}

#[test]
fn a_private_half_that_belongs_to_another_public_half_is_refused() {
    assert_eq!(private(&content("halves-of-two-keys")).read().unwrap_err(), Unusable::Mismatch);
}

#[test]
fn damaged_private_keys_are_refused_without_a_panic() {
    let whole = content("plain");
    for length in 0..whole.len() - 1 {
        assert!(KeyFile::parse(&whole[..length]).is_err(), "cut to {length} bytes");
    }
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        if let Ok(KeyFile::Private(key)) = KeyFile::parse(&changed) {
            // What is left are the check number, twice, the comment, and the padding.
            assert!(key.read().is_err() || key.read().unwrap().public_key() == fixture_key(), "byte {place}");
        }
    }
}

#[test]
fn a_public_key_file_may_have_comments_and_any_white_space() {
    let (key, line) = (fixture_key(), String::from_utf8(content("plain.pub")).unwrap());
    let line = line.trim();
    for text in [
        format!("{line}\r\n"),
        format!("# from alice\n\n{line}\n"),
        line.replace(' ', "\t"),
        format!("  {line}  "),
        key.to_string(),
        format!("{key}\n"),
        key.to_base64(),
    ] {
        assert_eq!(public(text.as_bytes()), key, "{text:?}");
    }
    assert_eq!(public(&[line.as_bytes(), b" caf\xe9\n"].concat()), key, "comments need not be UTF-8");
}

#[test]
fn a_file_of_several_keys_or_none_is_refused() {
    let line = content("plain.pub");
    assert_eq!(KeyFile::parse(&line.repeat(2)).unwrap_err(), Unusable::Several);
    for text in ["", "\n", "# only a comment\n", "ssh-ed25519", "hello", "svc-pub", "{}"] {
        assert_eq!(KeyFile::parse(text.as_bytes()).unwrap_err(), Unusable::Nothing, "{text:?}");
    }
    for text in ["ssh-ed25519 AAAA", "svc-pub:AAAA", "svc-pub:"] {
        assert!(matches!(KeyFile::parse(text.as_bytes()), Err(Unusable::Damaged(_))), "{text:?}");
    }
}

#[test]
fn a_new_key_is_read_back_with_its_passphrase_only() {
    let plain = generate("alice@example.org", None).unwrap();
    assert_eq!(private(plain.private.as_bytes()).read().unwrap().public_key(), plain.public);

    let passphrase = SecretBytes::new("pässword".into());
    let locked = generate("", Some(&passphrase)).unwrap();
    assert_ne!(locked.public, plain.public);
    let key = private(locked.private.as_bytes());
    assert!(key.is_encrypted());
    assert_eq!(key.unlock("pässword".as_bytes()).unwrap().public_key(), locked.public);
    assert_eq!(key.unlock(b"password").unwrap_err(), UnlockError::Passphrase);
}

#[test]
fn secrets_are_not_printed() {
    let key = generate("", None).unwrap();
    let text = String::from_utf8(key.private.as_bytes().to_vec()).unwrap();
    let body = text.lines().nth(3).unwrap().to_owned();
    for shown in [format!("{key:?}"), format!("{:?}", private(text.as_bytes())), format!("{:?}", key.private)]
    {
        assert!(!shown.contains(&body) && !shown.contains("PRIVATE KEY"), "{shown}");
    }
}

#[track_caller]
fn assert_signer(text: &str, name: Option<&str>) {
    let signer = parse_signer(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    assert_eq!(signer, Signer { key: fixture_key(), name: name.map(str::to_owned) }, "{text:?}");
}

#[test]
fn a_signer_is_a_file_or_a_key_with_or_without_a_name() {
    let (key, path) = (fixture_key(), fixture("plain.pub"));
    let path = path.to_str().unwrap();
    let padded = format!("svc-pub:{}", key.to_base64());
    assert!(padded.ends_with('='), "or this shows nothing");
    let line = key.to_ssh_line("alice=admin of = things");
    for text in [path, &key.to_string(), &padded, &key.to_base64(), &line, &key.to_ssh_line("")] {
        assert_signer(text, None);
        assert_signer(&format!("alice={text}"), Some("alice"));
        assert_signer(&format!("Älice B. (work)={text}"), Some("Älice B. (work)"));
    }
}

#[test]
fn a_path_with_an_equals_sign_is_no_name() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a=b.pub");
    std::fs::copy(fixture("plain.pub"), &file).unwrap();
    assert_signer(file.to_str().unwrap(), None);
    assert_signer(&format!("carol={}", file.to_str().unwrap()), Some("carol"));
}

#[test]
fn a_signer_that_is_none_is_a_clear_error() {
    let path = |name| fixture(name).to_str().unwrap().to_owned();
    let key = fixture_key();
    for (text, expected) in [
        (format!("={key}"), "NAME=KEY"),
        ("alice=".to_owned(), "NAME=KEY"),
        (String::new(), "NAME=KEY"),
        ("alice=/no/such/file.pub".to_owned(), "neither a key nor a file"),
        ("alice=svc-pub:AAAA".to_owned(), "not base64 of 32 bytes"),
        (format!("alice={}", path("plain")), "is a private key"),
        (format!("alice={}", path("encrypted-aes256-ctr")), "is a private key"),
        (path("sk.pub"), "FIDO"),
        (format!("bob={}", String::from_utf8(content("sk.pub")).unwrap().trim()), "FIDO"),
        (path("rsa.pub"), "ssh-rsa"),
        (path("certificate.pub"), "certificate"),
        ("ssh-rsa AAAAB3NzaC1yc2E= bob".to_owned(), "ssh-rsa"),
    ] {
        let error = parse_signer(&text).unwrap_err();
        assert!(error.to_string().contains(expected), "{text:?}: {error}");
        assert!(!error.hint().is_empty());
    }
}

#[test]
fn a_file_that_is_too_long_for_a_key_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("long");
    std::fs::write(&file, vec![b'#'; MAX_KEY_FILE_BYTES + 1]).unwrap();
    let error = SecretBytes::read(&file, MAX_KEY_FILE_BYTES).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
}
