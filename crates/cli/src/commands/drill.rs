//! `countersign drill`: what still works if keys are lost, and what a thief can do with stolen ones (D145).

use std::collections::BTreeSet;

use countersign_core::{documents::signers::SignersFile, values::key::PublicKey};
use countersign_core::{values::shown::quoted, values::shown::shown_text};
use countersign_explain::drill::{Drill, DrillAttempt, DrillQuestion, DrillStep, play};
use countersign_explain::{strength::Act, words::shown_signer, words::shown_signers};
use serde_json::{Value, json};

use crate::client::{now, session::Session};
use crate::words::{error::CliError, output::Output};
use crate::{args::DrillArgs, commands::signers::find_signers, keys::not_listed, keys::resolve_keys};

pub(crate) async fn run(session: &Session, args: &DrillArgs) -> Result<(), CliError> {
    let mut files = Vec::new();
    for source in &args.sources {
        files.push(find_signers(session, source, args.repository.as_deref()).await?);
    }
    let [lost, stolen] = [&args.keys.lose, &args.keys.steal].map(|texts| find_listed(texts, &files));
    let (lost, stolen) = (lost?, stolen?);
    for (source, file) in args.sources.iter().zip(&files) {
        let its = |keys: &BTreeSet<PublicKey>| keys.iter().copied().filter(|key| file.names(key)).collect();
        let question = DrillQuestion { lost: its(&lost), stolen: its(&stolen) };
        let drill = play(file, &question, now()?).map_err(|error| {
            let message = format!("the drill of {} cannot be played", quoted(source));
            CliError::other(message, "check the file with `countersign signers check`").because(error)
        })?;
        let mut lines = describe(file, &question, &drill, session.output);
        if files.len() > 1 {
            lines.insert(0, session.output.strong(&shown_text(source)));
            lines.push(String::new());
        }
        let text = session.output.list(&lines.join("\n"));
        session.output.item(&text, &to_json(source, &question, &drill))?;
    }
    Ok(())
}

/// The keys that are meant, each of which one of these files lists.
fn find_listed(texts: &[String], files: &[SignersFile]) -> Result<BTreeSet<PublicKey>, CliError> {
    let keys = resolve_keys(texts, files)?;
    match keys.iter().find(|key| !files.iter().any(|file| file.names(key))) {
        Some(key) => Err(not_listed(&key.to_string(), files)),
        None => Ok(keys),
    }
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

fn to_json(source: &str, question: &DrillQuestion, drill: &Drill) -> Value {
    let keys = |keys: &BTreeSet<PublicKey>| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    let attempts =
        |attempts: &[DrillAttempt]| -> Vec<Value> { attempts.iter().map(attempt_to_json).collect() };
    json!({
        "source": source,
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
