//! Staples of a small log, right ones and one for each lie (D86).
//!
//! A file has what a verifier knows (`now`, a `policy` or a `log_key` or neither, the `subject`), the `staple`, and
//! what comes out: `expect`, the `rule`, and the `result` where there is one.

use countersign_core::log::{
    checkpoint::CheckpointError, note::NoteError, policy::Policy, record::LoggedState, tree::write_hash,
};
use countersign_core::proof::freshness::{
    Freshness, LogTrust, LoggedSigners, StapleError, StapleSubject, verify,
};
use countersign_core::proof::{bundle::Staple, verify as release};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{digest::Sha512, key::PublicKey, time::Timestamp};
use countersign_testing::evidence::{OTHER_PROJECT, founded, index_path, index_text, release_index};
use countersign_testing::{INDEX, PROJECT, at, evidence, path};
use serde_json::{Value, json};

use crate::log::world::{LogWorld, log_key, policy, witness};

/// What a verifier has. The file of this name says what it is about and what must come out.
#[derive(Debug, Clone)]
pub(super) struct StapleVector {
    pub(super) name: &'static str,
    pub(super) policy: Option<String>,
    pub(super) log_key: Option<VerifierKey>,
    pub(super) subject: StapleSubject,
    /// The staple as it stands in the file.
    pub(super) staple: Value,
}

const NOW: &str = "2026-02-01T12:00:00Z";

/// So many seconds from then on.
pub(super) fn seconds(after_now: i64) -> u64 {
    u64::try_from(at(NOW).unix_seconds() + after_now).expect("after 1970")
}

/// Release v1, as its signatures prove it.
pub(super) fn subject() -> StapleSubject {
    StapleSubject::of(&release::verify(&evidence::good()).expect("a release"))
}

/// Two projects, a few releases, and v1 of the first as the last to be completed.
pub(super) fn log() -> LogWorld {
    let mut log = LogWorld::default();
    log.rotate(&founded(PROJECT));
    log.rotate(&founded(OTHER_PROJECT));
    for tag in ["v0.1", "v0.2", "v0.3", "v0.4"] {
        log.complete(&index_path(tag), &index_text(&release_index(tag)));
        log.idle();
    }
    log.complete(&INDEX.replace("/app/", "/other/"), "the index of another project");
    log.complete(INDEX, &evidence::good().index);
    log
}

/// Two of three witnesses, one and two minutes ago.
pub(super) fn staple_of(log: &LogWorld) -> Staple {
    log.staple(INDEX, &log.cosigned(&[(1, seconds(-60)), (2, seconds(-120))]))
}

pub(super) fn written(staple: &Staple) -> Value {
    serde_json::from_slice(&staple.write()).expect("JSON")
}

pub(super) fn vector(name: &'static str, staple: &Staple) -> StapleVector {
    StapleVector {
        name,
        policy: Some(policy().to_string()),
        log_key: None,
        subject: subject(),
        staple: written(staple),
    }
}

pub(super) fn good() -> Vec<StapleVector> {
    let newest = log();
    let mut idle = log();
    idle.idle();
    let mut older = log();
    for tag in ["v2", "v3"] {
        older.complete(&index_path(tag), tag);
    }
    let mut much_older = log();
    for n in 0..11 {
        much_older.complete(&index_path(&format!("v2.{n}")), "an index");
    }
    let mut rotated = log();
    rotated.rotate(&evidence::rotated(PROJECT));
    let mut revoked = log();
    revoked.revoke(INDEX, "the revocation document");
    revoked.complete(&index_path("v2"), "v2");
    let with_times = |times: &[(u8, u64)]| newest.staple(INDEX, &newest.cosigned(times));
    let mut with_strangers = staple_of(&newest);
    let stranger =
        VerifierKey::new("stranger.example", KeyKind::Witness, countersign_testing::key(77).public_key());
    let line = newest.cosigned(&[]).cosign(&stranger.expect("a key"), &countersign_testing::key(1), 5).line;
    with_strangers.proof.note.add(line);
    let earlier = StapleSubject {
        signers: vec![founded(PROJECT).digest(0), Sha512::of(b"the next signers file")],
        ..subject()
    };
    let [a, b, c] = [1, 2, 3].map(|n| witness(n).0);
    let nested = format!(
        "log {}\nwitness a {a}\nwitness b {b}\ngroup both all a b\nwitness c {c}\ngroup either any both c\nquorum either\n",
        log_key()
    );
    vec![
        vector("good-newest-release", &staple_of(&newest)),
        vector("good-after-other-commits", &staple_of(&idle)),
        vector("good-with-newer-releases", &staple_of(&older)),
        vector("good-with-many-newer-releases", &staple_of(&much_older)),
        vector(
            "good-with-all-witnesses",
            &with_times(&[(1, seconds(-10)), (2, seconds(-3_000)), (3, seconds(-20))]),
        ),
        vector("good-five-minutes-ahead", &with_times(&[(1, seconds(300)), (3, seconds(300))])),
        vector("good-with-signatures-of-strangers", &with_strangers),
        vector("good-after-a-rotation-that-is-not-shown", &staple_of(&rotated)),
        StapleVector { subject: earlier, ..vector("good-before-a-rotation", &staple_of(&newest)) },
        StapleVector { policy: Some(nested), ..vector("good-with-groups-in-groups", &staple_of(&newest)) },
        StapleVector {
            policy: Some(format!("log {}\nquorum none\n", log_key())),
            ..vector("good-without-a-quorum", &staple_of(&newest))
        },
        StapleVector {
            policy: None,
            log_key: Some(log_key()),
            ..vector("good-with-the-key-of-the-log", &staple_of(&newest))
        },
        StapleVector { policy: None, ..vector("good-by-the-word-of-the-server", &staple_of(&newest)) },
        vector("revoked", &staple_of(&revoked)),
    ]
}

pub(super) fn text(vector: &StapleVector, file: &Value) -> String {
    let StapleVector { subject, .. } = vector;
    let mut file = json!({
        "description": file["description"],
        "expect": file["expect"],
        "rule": file["rule"],
        "reason": file["reason"],
        "now": NOW,
        "policy": vector.policy,
        "log_key": vector.log_key.as_ref().map(VerifierKey::to_string),
        "subject": {
            "index_path": subject.index_path,
            "index_digest": subject.index_digest,
            "project": subject.project,
            "signers": subject.signers,
            "signer_keys": subject.signer_keys,
        },
        "staple": vector.staple,
    });
    let (_, result) = judge(&file);
    file["result"] = result;
    serde_json::to_string_pretty(&file).expect("JSON") + "\n"
}

fn listed<T>(list: &Value, parse: impl Fn(&str) -> T) -> Vec<T> {
    list.as_array().expect("a list").iter().map(|entry| parse(entry.as_str().expect("text"))).collect()
}

/// Runs a file as a stranger would, who has nothing else: the rule, and the result.
pub(super) fn judge(file: &Value) -> (String, Value) {
    let word = |value: &Value| value.as_str().expect("text").to_owned();
    let digest = |text: &str| Sha512::parse_prefixed(text).expect("a digest");
    let subject = &file["subject"];
    let subject = StapleSubject {
        index_path: path(&word(&subject["index_path"])),
        index_digest: digest(&word(&subject["index_digest"])),
        project: path(&word(&subject["project"])),
        signers: listed(&subject["signers"], digest),
        signer_keys: listed(&subject["signer_keys"], |key| PublicKey::parse(key).expect("a key"))
            .into_iter()
            .collect(),
    };
    let policy = file["policy"].as_str().map(|text| Policy::parse(text.as_bytes()).expect("a policy"));
    let key = file["log_key"].as_str().map(|text| VerifierKey::parse(text).expect("a key"));
    let trust = match (&policy, &key) {
        (Some(policy), _) => LogTrust::Policy(policy),
        (None, Some(key)) => LogTrust::Key(key),
        (None, None) => LogTrust::Unknown,
    };
    let staple = match Staple::parse(&serde_json::to_vec(&file["staple"]).expect("JSON")) {
        Ok(staple) => staple,
        Err(error) => return (format!("not a staple: {}", error.field), Value::Null),
    };
    match verify(&staple, &subject, trust, Timestamp::parse(&word(&file["now"])).expect("a time")) {
        Ok(freshness) => (
            match freshness.state {
                LoggedState::Complete => "verified".to_owned(),
                LoggedState::Revoked(_) => "revoked".to_owned(),
            },
            shown(&freshness),
        ),
        Err(error) => (describe(&error), Value::Null),
    }
}

fn shown(freshness: &Freshness) -> Value {
    json!({
        "origin": freshness.checkpoint.origin,
        "size": freshness.checkpoint.size,
        "root": write_hash(&freshness.checkpoint.root),
        "log_key": freshness.log_key.as_ref().map(VerifierKey::to_string),
        "as_of": freshness.as_of,
        "cosignatures": freshness.cosignatures.iter().map(|cosignature| json!({
            "witness": cosignature.witness.name(),
            "time": cosignature.time,
        })).collect::<Vec<_>>(),
        "needed": freshness.quorum.needed,
        "cosigned": freshness.quorum.cosigned,
        "witnesses": freshness.quorum.witnesses,
        "revocation": match freshness.state {
            LoggedState::Complete => None,
            LoggedState::Revoked(digest) => Some(digest),
        },
        "number": freshness.number,
        "newer": freshness.newer,
        "newer_indexes": freshness.newer_indexes,
        "signers": match freshness.signers {
            LoggedSigners::Newest => "newest",
            LoggedSigners::Replaced { .. } => "replaced",
            LoggedSigners::LogIsBehind { .. } => "earlier",
        },
    })
}

fn describe(error: &StapleError) -> String {
    match error {
        StapleError::Checkpoint(error) => format!("checkpoint: {}", describe_checkpoint(error)),
        StapleError::SignersKey(_) => "a signer's key".to_owned(),
        StapleError::FromTheFuture { .. } => "from the future".to_owned(),
        StapleError::TooFewWitnesses(_) => "too few witnesses".to_owned(),
        StapleError::NotTheLastLeaf => "not the last leaf".to_owned(),
        StapleError::NotInTheLog => "not in the log".to_owned(),
        StapleError::Bits(_) => "bits do not rise".to_owned(),
        StapleError::NotInTheMap(record) => format!("not in the map: {record}"),
        StapleError::OtherRelease => "other release".to_owned(),
        StapleError::OtherIndex => "other index".to_owned(),
        StapleError::OtherProject => "other project".to_owned(),
        StapleError::Contradiction => "contradiction".to_owned(),
        StapleError::OtherSigners => "other signers".to_owned(),
    }
}

fn describe_checkpoint(error: &CheckpointError) -> &'static str {
    match error {
        CheckpointError::Form(_) => "form",
        CheckpointError::Note(NoteError::BadSignature(_)) => "bad signature",
        CheckpointError::Note(_) => "note",
        CheckpointError::UnknownOrigin(_) => "unknown origin",
        CheckpointError::NotSigned(_) => "not signed",
    }
}
