//! Long lists and other questions are answered whatever the writer does.

use std::{net::SocketAddr, sync::Arc, sync::Barrier};

use countersign_core::documents::{layout, signatures::SignatureSet};
use countersign_core::rules::{auth::sign_request, snapshot::Change};
use countersign_core::values::{key::SecretKey, path::RepoPath};
use countersign_store::{Head, machine::clock::Clock};
use countersign_testing::signers;
use uuid::Uuid;

use crate::support::{TIMEOUT, request, send, start};

const FILES: usize = 3_000;

/// A project whose one signer has many files to sign.
fn many_collecting(signer: &SecretKey) -> Change {
    let project = RepoPath::parse("https/dl.example.org/443/acme").unwrap();
    let signers = signers("2026-01-31T10:00:00Z").artifact(1, [signer]).text();
    let mut change = Change::new("Fill the repository");
    change.write(layout::active_signers(&project), signers.as_bytes());
    for i in 0..FILES {
        let index = layout::index_in(&RepoPath::parse(&format!("{project}/v{i}")).unwrap());
        change.write(layout::signers_copy_of(&index), signers.as_bytes());
        change.write(layout::pending_signatures_of(&index), SignatureSet::default().write());
        change.write(index, b"{}".as_slice());
    }
    change
}

async fn ask(address: SocketAddr, path: &str, signer: Option<&SecretKey>) -> String {
    let auth = signer.map_or_else(String::new, |key| {
        let (now, nonce) = (Clock::system().now(), Uuid::new_v4().to_string());
        let (signature, key_text) = (sign_request(key, now, &nonce, b"").to_header(), key.public_key());
        let time = now.to_header();
        format!("x-svc-timestamp: {time}\r\nx-svc-nonce: {nonce}\r\nx-svc-sig: {signature}\r\nx-svc-pk: {key_text}\r\n")
    });
    send(address, request(path, &auth)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn long_lists_and_reads_are_answered_while_the_writer_is_stuck() {
    let (_directory, running) = start().await;
    let (app, address, signer) = (running.app().clone(), running.address, SecretKey::from_seed(&[7; 32]));
    let change = many_collecting(&signer);
    app.store.transact(move |_: &Head, _| Ok::<_, ()>((change.clone(), ()))).await.unwrap().unwrap();

    let barrier = Arc::new(Barrier::new(2));
    let (held, writer_app) = (Arc::clone(&barrier), app.clone());
    let stuck = tokio::spawn(async move {
        let decide = move |_: &Head, _| {
            held.wait();
            held.wait();
            Err::<(Change, ()), _>("released")
        };
        writer_app.store.transact(decide).await
    });
    let reached = Arc::clone(&barrier);
    tokio::task::spawn_blocking(move || reached.wait()).await.unwrap();

    let questions = async {
        let lists = (0..8).map(|_| ask(address, "/v1/pending_signatures", Some(&signer)));
        let lists = futures_util::future::join_all(lists);
        let others = futures_util::future::join_all([
            ask(address, "/v1/ping", None),
            ask(address, "/v1/files/https/dl.example.org/443/acme/v0/svc.index.json", None),
            ask(address, "/v1/get_signers/https/dl.example.org/443/acme/v0", None),
        ]);
        tokio::join!(lists, others)
    };
    // Sooner than a single answer is given up, which would leave the writer stuck.
    let answers = tokio::time::timeout(TIMEOUT / 2, questions).await;
    assert!(!stuck.is_finished(), "the writer was stuck all the time");
    // Before anything is asserted of the answers: a stuck writer would keep a failing test from ending.
    tokio::task::spawn_blocking(move || barrier.wait()).await.unwrap();
    assert_eq!(stuck.await.unwrap().unwrap(), Err("released"));
    let (lists, others) = answers.expect("answered while the writer was stuck");
    for list in lists {
        assert!(list.starts_with("HTTP/1.1 200 "), "{list:.200}");
        assert_eq!(list.matches("/svc.index.json\"").count(), FILES);
    }
    assert!(others.iter().all(|answer| answer.starts_with("HTTP/1.1 200 ")), "{others:?}");
    drop(app);
    running.stop().await.unwrap();
}
