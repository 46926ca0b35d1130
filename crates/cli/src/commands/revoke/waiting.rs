//! After a revocation: waits until witnesses have seen it, and says until when the old state can still be shown (D99).

use std::time::{Duration, Instant};

use countersign_api::state::StateResponse;
use countersign_core::log::{policy::Policy, record::LoggedState};
use countersign_core::proof::freshness::{
    Freshness, LogTrust, StapleError, StapleSubject, verify as verify_staple,
};
use countersign_core::proof::log_pin::latest_older_proof;
use countersign_core::proof::verify::{RevokedArtifact, VerifyError, verify};
use countersign_core::values::{path::RepoPath, shown::shown_text, time::Timestamp};
use countersign_explain::words::{shown_age, shown_witness_count};
use serde_json::{Value, json};

use crate::client::{ServerClient, now, session::Session};
use crate::evidence::{freshness::shown_time, proof::behind, release::require_evidence};
use crate::{args::RevokeArgs, words::error::CliError, words::error::ErrorKind};

const PAUSE: Duration = Duration::from_secs(1);

/// What the revoker should know, in words and for programs.
pub(super) struct Aftermath {
    pub(super) text: String,
    pub(super) log: Value,
}

/// What the log shows once enough witnesses have seen the revocation, and when the last proof of the state before it
/// can be from. Before that, what is missing.
type Witnessing = Result<(Freshness, Timestamp), String>;

pub(super) async fn wait(
    session: &Session,
    client: &ServerClient,
    path: &RepoPath,
    args: &RevokeArgs,
) -> Result<Aftermath, CliError> {
    let revoked = find_revoked(client, path).await?;
    let Some((policy, max_age)) = choose_policy(&revoked) else {
        let text = "The project's signers file names no log with witnesses, so nothing limits how long a server can show the \
                    release as if it were not revoked.";
        return Ok(Aftermath { text: text.to_owned(), log: Value::Null });
    };
    if args.no_wait {
        let text = "Not waited for witnesses: until they have seen it, a server can show the release as not revoked.";
        return Ok(Aftermath { text: text.to_owned(), log: json!({"waited": false}) });
    }
    let (begin, mut told) = (Instant::now(), String::new());
    loop {
        let news = match look(client, &revoked, &policy).await {
            Ok(Ok((freshness, latest))) => return aftermath(max_age, &freshness, latest),
            Ok(Err(news)) => news,
            Err(error) if error.kind() == ErrorKind::Unreachable => error.to_string(),
            Err(error) => return Err(error),
        };
        if begin.elapsed() >= args.timeout {
            return Err(CliError::new(
                ErrorKind::TimedOut,
                format!(
                    "{path} is revoked, but {} later too few witnesses have seen it: {news}",
                    shown_age(args.timeout)
                ),
                "a server can still show the old state. `countersign revoke` on it again waits again; ask the server's \
                 operator about its witnesses",
            )
            .with_detail("revoked", json!(true)));
        }
        if news != told {
            session.output.note(&format!("Waiting for witnesses: {news}."));
            told = news;
        }
        tokio::time::sleep(PAUSE.min(args.timeout.saturating_sub(begin.elapsed()))).await;
    }
}

/// What everyone is shown from now on.
async fn find_revoked(client: &ServerClient, path: &RepoPath) -> Result<RevokedArtifact, CliError> {
    let evidence = require_evidence(client.state_at(path).await?)?.evidence;
    match verify(&evidence) {
        Err(VerifyError::Revoked(revoked)) => Ok(*revoked),
        other => {
            let address = client.address();
            let accepted =
                format!("the server {address} accepted the revocation of {path}, and does not show it");
            Err(match other {
                Err(reason) => {
                    CliError::unverified(accepted, "the server lies or is broken: tell its operator")
                        .because(reason)
                }
                // Another node or mirror may have answered.
                Ok(_) => behind(format!("{accepted} yet")),
            })
        }
    }
}

/// What everyone else goes by, whatever policy the revoker has, and how old a proof can be.
fn choose_policy(revoked: &RevokedArtifact) -> Option<(Policy, Duration)> {
    let transparency = revoked.artifact.chain.last().signers.transparency()?;
    Some((transparency.policy(), transparency.max_age()?))
}

async fn look(
    client: &ServerClient,
    revoked: &RevokedArtifact,
    policy: &Policy,
) -> Result<Witnessing, CliError> {
    let artifact = &revoked.artifact;
    let StateResponse { staple, log, .. } = client.state_at(&artifact.path).await?.answer;
    let Some(staple) = staple else {
        let said = log.no_staple.as_deref().map_or_else(|| "the server keeps no log".to_owned(), shown_text);
        return Ok(Err(said));
    };
    let (trust, now) = (LogTrust::Policy(policy), now()?);
    let freshness = match verify_staple(&staple, &StapleSubject::of(artifact), trust, now) {
        Ok(freshness) => freshness,
        Err(StapleError::TooFewWitnesses(count)) => {
            let (cosigned, witnesses) = (count.cosigned, count.witnesses);
            return Ok(Err(format!("{cosigned} of {witnesses} have cosigned its checkpoint")));
        }
        Err(error) => {
            return Err(CliError::unverified(
                format!("{} is revoked, but what its log shows is not valid", artifact.path),
                "the server lies or is broken: tell its operator",
            )
            .because(error));
        }
    };
    let cosigned = freshness.quorum.cosigned;
    Ok(match (freshness.state, latest_older_proof(policy, &freshness.cosignatures, now)) {
        (LoggedState::Complete, _) => {
            Err("the checkpoint that they have cosigned is from before the revocation".to_owned())
        }
        (LoggedState::Revoked(_), None) => {
            Err(format!("{cosigned} have seen it, and the others are enough to cosign the state before it"))
        }
        (LoggedState::Revoked(_), Some(latest)) => Ok((freshness, latest)),
    })
}

fn aftermath(max_age: Duration, freshness: &Freshness, latest: Timestamp) -> Result<Aftermath, CliError> {
    let until = latest.later(max_age);
    let seen = freshness.as_of.map_or_else(String::new, |as_of| as_of.to_string());
    let count = freshness.quorum;
    let text = format!(
        "The log shows it, by {} of {}. No one with a maximum age of {} accepts this release after {}.",
        count.cosigned,
        shown_witness_count(count.witnesses),
        shown_age(max_age),
        shown_time(next_minute(until), now()?),
    );
    let log = json!({
        "waited": true,
        "as_of": seen,
        "cosigned": count.cosigned,
        "witnesses": count.witnesses,
        "max_age_seconds": max_age.as_secs(),
        "accepted_until": until,
    });
    Ok(Aftermath { text, log })
}

/// The minute that begins next, or this one if it has just begun: what is shown without its seconds must not be too
/// early.
fn next_minute(time: Timestamp) -> Timestamp {
    let seconds = time.unix_seconds();
    let rest = 60 - seconds.rem_euclid(60);
    if rest == 60 { time } else { time.later(Duration::from_secs(rest.unsigned_abs())) }
}
