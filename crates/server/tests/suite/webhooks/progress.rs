//! The progress of a webhook on disk.

use std::{fs, path::Path, time::Duration};

use countersign_server::events::webhooks::progress::{DeliveryPosition, Progress};
use countersign_server::events::webhooks::settings::WebhookName;
use countersign_store::ObjectId;
use tokio::time::Instant;

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
    assert_eq!(open(dir).unwrap().place(), DeliveryPosition::after(id(b'1')));
    for place in [DeliveryPosition { commit: id(b'2'), events: Some(1) }, DeliveryPosition::after(id(b'3'))] {
        let mut file = open(dir).unwrap();
        file.advance(place);
        assert_ne!(open(dir).unwrap().place(), place, "not yet");
        file.record().await.unwrap();
        assert_eq!(open(dir).unwrap().place(), place);
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
