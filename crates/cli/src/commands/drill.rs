//! `countersign drill`: what still works if keys are lost, and what a thief can do with stolen ones (D145).

use std::collections::BTreeSet;

use countersign_core::{documents::signers::SignersFile, values::key::PublicKey, values::shown::quoted};
use countersign_explain::drill::{Drill, DrillAttempt, DrillQuestion, DrillStep, play};
use countersign_explain::{strength::Act, words::shown_signer, words::shown_signers};
use serde_json::{Value, json};

use crate::client::{now, session::Session};
use crate::keys::{find_named, list_signers};
use crate::words::{error::CliError, output::Output};
use crate::{args::DrillArgs, commands::signers::find_signers, keys};

pub(crate) async fn run(session: &Session, args: &DrillArgs) -> Result<(), CliError> {
    let file = find_signers(session, &args.source, args.repository.as_deref()).await?;
    let question = DrillQuestion {
        lost: find_keys(&file, &args.keys.lose)?,
        stolen: find_keys(&file, &args.keys.steal)?,
    };
    let drill = play(&file, &question, now()?).map_err(|error| {
        CliError::other("the drill cannot be played", "check the file with `countersign signers check`")
            .because(error)
    })?;
    let text = session.output.list(&describe(&file, &question, &drill, session.output).join("\n"));
    session.output.answer(&text, &to_json(&question, &drill))
}

fn find_keys(file: &SignersFile, texts: &[String]) -> Result<BTreeSet<PublicKey>, CliError> {
    texts.iter().map(|text| find_key(file, text)).collect()
}

/// Finds a key by the name that the file gives it, or by the key itself.
fn find_key(file: &SignersFile, text: &str) -> Result<PublicKey, CliError> {
    let key = find_named(file, text).or_else(|| keys::parse_key(text).ok().filter(|key| file.names(key)));
    key.ok_or_else(|| {
        let mut listed: Vec<String> =
            list_signers(file).into_iter().map(|(name, key)| format!("{name} ({key})")).collect();
        let named: BTreeSet<PublicKey> = list_signers(file).into_iter().map(|(_, key)| key).collect();
        listed.extend(file.keys().difference(&named).map(ToString::to_string));
        listed.sort();
        listed.dedup();
        CliError::usage(
            format!("the signers file lists no {}", quoted(text)),
            format!("it lists {}", listed.join(", ")),
        )
    })
}

fn describe(file: &SignersFile, question: &DrillQuestion, drill: &Drill, output: Output) -> Vec<String> {
    let name = |keys: &BTreeSet<PublicKey>| {
        let signers: Vec<_> = keys.iter().map(|key| file.named_signer(*key)).collect();
        if signers.is_empty() { "none".to_owned() } else { shown_signers(&signers) }
    };
    let mut lines = vec![
        format!("Lost:   {}", name(&question.lost)),
        format!("Stolen: {}", name(&question.stolen)),
        String::new(),
        output.strong("Those who still have their keys can:"),
    ];
    lines.extend(drill.team.iter().flat_map(|attempt| describe_attempt(attempt, Side::Team, output)));
    if !drill.thief.is_empty() {
        lines.extend([String::new(), output.strong("A thief with the stolen keys alone can:")]);
        lines.extend(drill.thief.iter().flat_map(|attempt| describe_attempt(attempt, Side::Thief, output)));
        let nuisances = drill.nuisances.iter().map(|nuisance| format!("  The thief can also {nuisance}."));
        lines.extend(nuisances);
    }
    lines.push(String::new());
    lines.extend(conclude(file, drill, output));
    lines
}

#[derive(Clone, Copy)]
enum Side {
    Team,
    Thief,
}

fn describe_attempt(attempt: &DrillAttempt, side: Side, output: Output) -> Vec<String> {
    let (yes, no) = match side {
        Side::Team => (output.good("yes"), output.bad("no")),
        Side::Thief => (output.bad("yes"), output.good("no")),
    };
    let answer = if attempt.succeeds { yes } else { no };
    let condition = match attempt {
        attempt if attempt.takes_stolen_keys => {
            ", but only if owners of stolen keys still have them and sign as well"
        }
        attempt if attempt.is_stopped_by_owners => {
            ", unless owners of stolen keys still have them and veto in time"
        }
        attempt if attempt.is_freed_by_block => {
            ", unless the server's operator blocks the stolen keys meanwhile"
        }
        _ => "",
    };
    let mut lines = vec![format!("  {}: {answer}{condition}", attempt.act)];
    lines.extend(attempt.steps.iter().map(|DrillStep { who, text }| match who {
        Some(signer) => format!("    - {} {text}", shown_signer(signer)),
        None => format!("    - {text}"),
    }));
    lines
}

fn conclude(file: &SignersFile, drill: &Drill, output: Output) -> Vec<String> {
    let mut lines = Vec::new();
    if drill.is_locked_out() {
        let text = "Locked out: no one can change the signers any more. Register the project anew under another path.";
        lines.push(output.bad(text));
    }
    if drill.is_held_up() {
        let text = "Held up: a thief can stop each of your rotations while it waits. Ask the server's operator to block the \
                    stolen keys (`countersign admin block KEY`). Then yours takes effect.";
        lines.push(output.bad(text));
    }
    if drill.is_taken_over() {
        let is_stopped = drill.thief.iter().any(|attempt| attempt.is_stopped_by_owners);
        let unless =
            if is_stopped { " unless owners of stolen keys still have them and veto in time" } else { "" };
        let text = match drill.is_lost() {
            true => format!(
                "Taken over: only the thief can change the signers{unless}. Register the project anew under another path."
            ),
            false => {
                format!("Taken over: the thief can put other signers into effect and lock you out{unless}.")
            }
        };
        lines.push(output.bad(&text));
    }
    if let Some(after) = &drill.thief_after_rotation {
        let left: Vec<String> =
            after.iter().filter(|attempt| attempt.succeeds).map(|attempt| attempt.act.to_string()).collect();
        lines.push(match left.as_slice() {
            [] => "Once you have put new keys in the place of these, the thief can do nothing.".to_owned(),
            left => output.bad(&format!(
                "After you have put new keys in their place, the thief can still {}.",
                left.join(", ")
            )),
        });
    }
    let fails = |act: Act| drill.team.iter().any(|attempt| attempt.act == act && !attempt.succeeds);
    if fails(Act::Reproduce) && file.rebuilds().is_some_and(|rebuilds| rebuilds.required) {
        let text = "Refused: clients refuse every new release, because too few builders can reproduce it.";
        lines.push(output.bad(text));
    }
    if !drill.is_lost() && drill.team.iter().any(|attempt| attempt.act != Act::Rotate && !attempt.succeeds) {
        lines.push("What no longer works does again after a rotation to new keys.".to_owned());
    }
    if lines.is_empty() {
        lines.push(output.good("Everything still works."));
    }
    lines.push("This was played on a copy in memory. Nothing was changed or sent.".to_owned());
    lines
}

fn to_json(question: &DrillQuestion, drill: &Drill) -> Value {
    let keys = |keys: &BTreeSet<PublicKey>| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    let attempts =
        |attempts: &[DrillAttempt]| -> Vec<Value> { attempts.iter().map(attempt_to_json).collect() };
    json!({
        "lost": keys(&question.lost),
        "stolen": keys(&question.stolen),
        "team": attempts(&drill.team),
        "thief": attempts(&drill.thief),
        "nuisances": drill.nuisances.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "thief_after_rotation": drill.thief_after_rotation.as_deref().map(attempts),
        "locked_out": drill.is_locked_out(),
        "held_up": drill.is_held_up(),
        "taken_over": drill.is_taken_over(),
    })
}

fn attempt_to_json(attempt: &DrillAttempt) -> Value {
    let steps = attempt.steps.iter().map(
        |step| json!({ "public_key": step.who.as_ref().map(|who| who.key.to_string()), "text": step.text }),
    );
    json!({
        "act": attempt.act.to_string(),
        "possible": attempt.succeeds,
        "takes_stolen_keys": attempt.takes_stolen_keys,
        "stopped_by_owners": attempt.is_stopped_by_owners,
        "freed_by_block": attempt.is_freed_by_block,
        "steps": steps.collect::<Vec<_>>(),
    })
}
