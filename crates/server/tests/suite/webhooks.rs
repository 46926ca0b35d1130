//! The parts of a webhook: its name, its secret, and its progress on disk.

use std::{fs, path::Path, time::Duration};

use countersign_server::events::webhooks::progress::{DeliveryPosition, Progress};
use countersign_server::events::webhooks::{MIN_SECRET_BYTES, Secret, settings::WebhookName};
use countersign_store::ObjectId;
use tokio::time::Instant;

#[test]
fn a_name_is_plain_enough_for_a_file_and_a_label() {
    for name in ["ci", "chat-2", "0_x", &"a".repeat(64)] {
        assert!(WebhookName::parse(name).is_ok(), "{name}");
    }
    for name in ["", "CI", "-a", "a.b", "a/b", "a b", "a\"", "é", &"a".repeat(65)] {
        assert!(WebhookName::parse(name).is_err(), "{name}");
    }
}

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

const LAZINESS: Duration = Duration::from_secs(5);

fn id(digit: u8) -> ObjectId {
    ObjectId::from_hex(&[digit; 40]).unwrap()
}

fn open(dir: &Path) -> Result<Progress, String> {
    Progress::open(dir, &WebhookName::parse("ci").unwrap(), id(b'1')).map_err(|error| error.to_string())
}

#[tokio::test]
async fn progress_is_read_as_it_was_written_and_begins_at_the_newest_commit() {
    let dir = tempfile::TempDir::new().unwrap();
    let dir = &dir.path().join("webhooks");
    assert_eq!(open(dir).unwrap().position(), DeliveryPosition::after(id(b'1')));
    for place in [DeliveryPosition { commit: id(b'2'), events: Some(1) }, DeliveryPosition::after(id(b'3'))] {
        let mut file = open(dir).unwrap();
        file.advance(place);
        assert_ne!(open(dir).unwrap().position(), place, "not yet");
        file.record().await.unwrap();
        assert_eq!(open(dir).unwrap().position(), place);
        assert_eq!(file.due(), None);
    }
    assert_eq!(fs::read_dir(dir).unwrap().count(), 1, "nothing unfinished is left");
}

#[test]
fn what_does_not_say_how_far_is_an_error_that_names_the_file() {
    let dir = tempfile::TempDir::new().unwrap();
    let commit = id(b'1').to_string();
    let texts = ["", "x\n", &commit, &(commit.clone() + " x\n"), &(commit.clone() + "\n\n")]
        .map(str::as_bytes)
        .map(<[u8]>::to_vec);
    for text in texts.into_iter().chain([vec![0xff; 41]]) {
        fs::write(dir.path().join("ci"), &text).unwrap();
        let said = open(dir.path()).unwrap_err();
        assert!(said.contains("/ci") && said.contains("remove it"), "{text:?}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_needs_no_delivery_is_written_after_a_while() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut file = open(dir.path()).unwrap();
    assert_eq!(file.due(), None);
    file.advance(DeliveryPosition::after(id(b'1')));
    assert_eq!(file.due(), None, "nothing new");
    let begun = Instant::now();
    file.advance(DeliveryPosition::after(id(b'2')));
    tokio::time::advance(Duration::from_secs(1)).await;
    file.advance(DeliveryPosition::after(id(b'3')));
    assert_eq!(file.due(), Some(begun + LAZINESS), "since the first of them");
}
