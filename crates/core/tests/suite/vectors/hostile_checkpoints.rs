//! Lies about checkpoints, witnesses and keys, one each.

use countersign_core::log::{checkpoint::Checkpoint, note::Note, note::NoteSignature, policy::Policy};
use countersign_core::values::key::{SecretKey, Signature, decode_base64};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::{documents::transparency::WitnessGroup, proof::bundle::Staple};
use countersign_testing::{INDEX, alice, mallory};

use super::staples::{StapleVector, log, seconds, staple_of, vector};
use crate::log::world::{log_key, seed, witness};

pub(super) fn all() -> Vec<StapleVector> {
    [of_witnesses(), of_checkpoints(), of_keys()].concat()
}

fn of_witnesses() -> Vec<StapleVector> {
    let log = log();
    let with_times = |times: &[(u8, u64)]| log.staple(INDEX, &log.cosigned(times));
    let with_line = |mut staple: Staple, line: NoteSignature| {
        staple.proof.note.add(line);
        staple
    };
    let one = || with_times(&[(1, seconds(-60))]);
    let cosign = |n: u8, time: u64| log.cosigned(&[]).cosign(&witness(n).0, &witness(n).1, time).line;
    let second_name = VerifierKey::new("witness2.example", KeyKind::Witness, witness(1).1.public_key());
    let second_name = second_name.expect("a key");
    let under_two_names = log.cosigned(&[]).cosign(&second_name, &witness(1).1, seconds(-60)).line;
    let forged = log.cosigned(&[]).cosign(&witness(2).0, &witness(1).1, seconds(-60)).line;
    let earlier = {
        let mut earlier = self::log();
        earlier.idle();
        earlier.cosigned(&[]).cosign(&witness(2).0, &witness(2).1, seconds(-60)).line
    };
    let redated = {
        let text = cosign(2, seconds(-7_200)).to_string();
        let bytes = text.trim_end().rsplit(' ').next().and_then(decode_base64);
        let signature = <[u8; 64]>::try_from(&bytes.expect("base64")[12..]).expect("64 bytes");
        let signature = Signature::from_bytes(signature);
        NoteSignature::of_witness(&witness(2).0, seconds(-60), signature)
    };
    vec![
        vector("no-witness", &with_times(&[])),
        vector("too-few-witnesses", &one()),
        vector(
            "repeated-witness",
            &with_line(with_line(one(), cosign(1, seconds(-50))), cosign(1, seconds(-40))),
        ),
        vector("witness-under-two-names", &with_line(one(), under_two_names)),
        vector("witness-of-no-policy", &with_line(one(), cosign(4, seconds(-60)))),
        vector("cosignature-of-another-witness", &with_line(one(), forged)),
        vector("cosignature-of-another-checkpoint", &with_line(one(), earlier)),
        vector("cosignature-with-a-later-time", &with_line(one(), redated)),
        vector("time-in-the-future", &with_times(&[(1, seconds(301)), (2, seconds(-60)), (3, seconds(-60))])),
    ]
}

/// A staple whose checkpoint has this text, and the signature of this key.
fn resigned(text: &str, key: &VerifierKey, secret: &SecretKey) -> Staple {
    let mut note = Note::new(text.to_owned());
    note.add(NoteSignature::sign(text, key, secret, 0));
    for n in [1, 2] {
        note.add(NoteSignature::sign(text, &witness(n).0, &witness(n).1, seconds(-60)));
    }
    let mut staple = staple_of(&log());
    staple.proof.note = note;
    staple
}

fn of_checkpoints() -> Vec<StapleVector> {
    let checkpoint = log().checkpoint();
    let text = checkpoint.text();
    let other_origin = Checkpoint { origin: "example.com/other".to_owned(), ..checkpoint.clone() }.text();
    let same_name = VerifierKey::new(log_key().name(), KeyKind::Log, mallory().public_key()).expect("a key");
    let smaller = Checkpoint { size: checkpoint.size - 1, ..checkpoint.clone() }.text();
    vec![
        vector("checkpoint-of-another-origin", &resigned(&other_origin, &log_key(), &seed(0))),
        vector("checkpoint-of-another-key", &resigned(&text, &same_name, &mallory())),
        vector("checkpoint-with-a-wrong-signature", &resigned(&text, &log_key(), &mallory())),
        vector(
            "checkpoint-with-an-extension",
            &resigned(&format!("{text}extension\n"), &log_key(), &seed(0)),
        ),
        vector("checkpoint-of-another-size", &resigned(&smaller, &log_key(), &seed(0))),
    ]
}

fn of_keys() -> Vec<StapleVector> {
    let alice_as = |kind, name: &str| VerifierKey::new(name, kind, alice().public_key()).expect("a key");
    let of_alice = alice_as(KeyKind::Log, log_key().name());
    let group = |threshold, first: VerifierKey| WitnessGroup::new(threshold, vec![first, witness(2).0]);
    let log_policy = Policy::of_groups(of_alice.clone(), &[group(2, witness(1).0)]).expect("a policy");
    let as_witness = group(1, alice_as(KeyKind::Witness, "witness1.example"));
    let witness_policy = Policy::of_groups(log_key(), &[as_witness]).expect("a policy");
    let by_alice = resigned(&log().checkpoint().text(), &of_alice, &alice());
    vec![
        StapleVector { policy: Some(log_policy.to_string()), ..vector("log-key-of-a-signer", &by_alice) },
        StapleVector {
            policy: Some(witness_policy.to_string()),
            ..vector("witness-key-of-a-signer", &staple_of(&log()))
        },
        StapleVector { policy: None, log_key: Some(of_alice), ..vector("pinned-key-of-a-signer", &by_alice) },
    ]
}
