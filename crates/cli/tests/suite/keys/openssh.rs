//! Key files that others made: `ssh-keygen`, and what is not ours to use.

use std::fs;

use tempfile::TempDir;

use crate::support::keys::{
    PASSPHRASE, assert_accepted, failure, fixture, installed, ping, private_copy, public_key, ssh_keygen,
    text,
};
use crate::support::{Launch, TestServer};

#[test]
fn a_key_of_ssh_keygen_signs_with_and_without_a_passphrase() {
    let (server, dir) = (TestServer::start(), TempDir::new().unwrap());
    let passphrase = fixture("passphrase");
    let key = public_key(&fixture("plain.pub"));
    assert_accepted(&ping(&server, &private_copy(dir.path(), "plain")), &key);
    for cipher in ["aes256-ctr", "aes256-cbc", "aes256-gcm", "chacha20-poly1305"] {
        let file = private_copy(dir.path(), &format!("encrypted-{cipher}"));
        assert_accepted(&ping(&server, &file).args(["--password-file", text(&passphrase)]), &key);
    }
    // The environment may name the key.
    let file = private_copy(dir.path(), "plain");
    let url = format!("http://{}", server.address());
    let launch =
        Launch::default().args(["--json", "ping", "--server", &url]).env("COUNTERSIGN_KEY", text(&file));
    assert_accepted(&launch, &public_key(&fixture("plain.pub")));

    if !installed("ssh-keygen") {
        return;
    }
    for (name, options) in [
        ("plain", ["-N", "", "-C", ""].as_slice()),
        ("usual", &["-N", PASSPHRASE]),
        ("gcm", &["-N", PASSPHRASE, "-Z", "aes256-gcm@openssh.com", "-a", "2"]),
        ("commented", &["-N", PASSPHRASE, "-C", "a comment of words", "-a", "2"]),
    ] {
        let file = dir.path().join(format!("own-{name}"));
        ssh_keygen(&[&["-q", "-t", "ed25519", "-f", text(&file)], options].concat());
        let launch = ping(&server, &file).args(["--password-file", text(&passphrase)]);
        assert_accepted(&launch, &public_key(&file.with_extension("pub")));
    }
}

#[test]
fn keys_that_do_not_work_are_named_with_what_does() {
    let (server, dir) = (TestServer::start(), TempDir::new().unwrap());
    for (name, found, way_out) in [
        ("rsa", "ssh-rsa", "ssh-keygen -t ed25519"),
        ("ecdsa", "ecdsa-sha2-nistp256", "ssh-keygen -t ed25519"),
        ("ecdsa.pub", "ecdsa-sha2-nistp256", "ssh-keygen -t ed25519"),
        ("certificate.pub", "certificate", "plain key"),
        ("pkcs8", "PEM format (PRIVATE KEY)", "OpenSSH format"),
        ("rsa-pem", "PEM format (RSA PRIVATE KEY)", "OpenSSH format"),
        ("putty", "PuTTY", "Export OpenSSH key"),
        ("rfc4716.pub", "RFC 4716", "ssh-keygen -i"),
        ("encrypted-3des-cbc", "3des-cbc", "ssh-keygen -p"),
        ("halves-of-two-keys", "does not belong to its private half", "restore"),
        ("README.md", "no key at all", "keygen"),
    ] {
        let error = failure(&ping(&server, &private_copy(dir.path(), name)), 1);
        assert!(error.contains(found) && error.contains(way_out), "{name}: {error}");
    }
    // Those of a FIDO key name it, and sign through an agent.
    for name in ["sk", "sk.pub"] {
        let error = failure(&ping(&server, &private_copy(dir.path(), name)), 2);
        assert!(error.contains("SSH_AUTH_SOCK") && error.contains("ssh-add"), "{name}: {error}");
    }
    let error = failure(&ping(&server, &dir.path().join("missing")), 1);
    assert!(error.contains("missing") && error.contains("check the path"), "{error}");
    let (file, passphrase) = (private_copy(dir.path(), "encrypted-aes256-ctr"), dir.path().join("wrong"));
    fs::write(&passphrase, "wrong horse\n").unwrap();
    let error = failure(&ping(&server, &file).args(["--password-file", text(&passphrase)]), 1);
    assert!(error.contains("passphrase is wrong") && error.contains(text(&file)), "{error}");
    // Before the first registration there is no admin who could help.
    assert!(error.contains("--replace") && !error.contains("admin"), "{error}");
    assert!(!error.contains("wrong horse"), "{error}");
    let error = failure(&ping(&server, &private_copy(dir.path(), "encrypted-aes256-ctr")), 2);
    assert!(error.contains("--password-file") && error.contains("agent"), "{error}");
    let file = dir.path().join("hostile.pub");
    fs::write(&file, "ssh-\u{1b}[2J\u{202e}evil AAAA\n").unwrap();
    let error = failure(&ping(&server, &file), 1);
    assert!(error.contains("evil") && !error.contains('\u{1b}') && !error.contains('\u{202e}'), "{error}");
}

#[test]
fn a_private_key_that_others_may_read_is_used_with_a_warning() {
    let (server, dir) = (TestServer::start(), TempDir::new().unwrap());
    let (tight, loose) = (private_copy(dir.path(), "plain"), dir.path().join("loose"));
    fs::copy(&tight, &loose).unwrap();
    fs::set_permissions(&loose, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    let url = format!("http://{}", server.address());
    let said = |key| {
        let output = Launch::default().args(["ping", "--server", &url, "--key", text(key)]).output();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&loose).contains("0640") && said(&loose).contains("chmod 600"), "{}", said(&loose));
    assert!(!said(&tight).contains("chmod"), "{}", said(&tight));
}
