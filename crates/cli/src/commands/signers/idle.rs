//! `countersign signers check PROJECT`: also when each key last signed, and what it would mean if idle keys were lost.

use std::collections::BTreeMap;

use countersign_core::documents::signers::SignersFile;
use countersign_core::values::{key::PublicKey, time::Timestamp};
use countersign_explain::incident::{IncidentQuestion, SigningTimes, examine_project};
use countersign_explain::lockout::{Lockout, foresee};
use countersign_explain::words::shown_signer;
use serde_json::{Map, Value, json};

use crate::client::{ServerClient, now, session::Session};
use crate::commands::signers::{describe_file, find_in_repository, find_on_server, means_file};
use crate::words::{error::CliError, output::Output, table::when_text};
use crate::{args::SignersCheckArgs, evidence::repository_copy::RepositoryView};

/// The most keys to ask a server for, because each is a question. A repository answers without a bound.
const MOST_ASKED: usize = 200;

/// Whether the user checks a signers file, rather than the one in force of a project.
pub(crate) fn names_file(args: &SignersCheckArgs) -> bool {
    means_file(&args.source) && args.repository.is_none()
}

pub(crate) async fn run(session: &Session, args: &SignersCheckArgs) -> Result<(), CliError> {
    let (chain, last) = match &args.repository {
        Some(dir) => {
            let view = RepositoryView::open(dir, session.output)?;
            let chain = find_in_repository(&view, &args.source)?;
            let last = read_last(&view, &chain.last().signers);
            (chain, Some(last))
        }
        None => {
            let (client, chain) = find_on_server(session, &args.source).await?;
            let last = ask_last(&client, &chain.last().signers).await?;
            (chain, last)
        }
    };
    let (link, output) = (chain.last(), session.output);
    let name = format!("The signers file in force of {}", chain.project);
    let (mut lines, mut value) = describe_file(&name, &link.signers, &link.digest, output);
    value["project_id"] = json!(chain.project.as_str());
    match last {
        Some(last) => {
            let lockout = foresee(&link.signers, &last, now()?);
            lines.extend(describe(&lockout, output));
            add_json(&mut value, &lockout);
        }
        None => lines.push(format!(
            "When its keys last signed is not asked of a server for more than {MOST_ASKED} keys. A clone tells: \
             --repository DIR"
        )),
    }
    output.answer(&output.list(&lines.join("\n")), &value)
}

async fn ask_last(
    client: &ServerClient,
    file: &SignersFile,
) -> Result<Option<BTreeMap<PublicKey, Timestamp>>, CliError> {
    let keys = file.signers();
    if keys.len() > MOST_ASKED {
        return Ok(None);
    }
    let mut last = BTreeMap::new();
    for key in keys {
        if let Some(at) = client.key(&key).await?.last_signed_at {
            last.insert(key, at);
        }
    }
    Ok(Some(last))
}

/// Finds when each key last signed, in all projects. A key that signs for another project is not lost (D140).
fn read_last(view: &RepositoryView, file: &SignersFile) -> BTreeMap<PublicKey, Timestamp> {
    let question = IncidentQuestion { keys: file.signers(), since: None };
    let mut last: BTreeMap<PublicKey, Timestamp> = BTreeMap::new();
    let mut note = |signed: &SigningTimes| {
        for (key, at) in signed {
            last.entry(*key).and_modify(|last| *last = (*last).max(*at)).or_insert(*at);
        }
    };
    for project in view.projects() {
        // A project that cannot be read says nothing about the others.
        let examined = examine_project(&view.head, &project, || view.releases(&project), &question);
        let Ok(Some(found)) = examined else { continue };
        found.releases.iter().for_each(|release| note(&release.signed));
        found.rotations.iter().for_each(|rotation| note(&rotation.signed));
        found.revocations.iter().for_each(|revocation| note(&revocation.signed));
    }
    last
}

fn describe(lockout: &Lockout, output: Output) -> Vec<String> {
    let mut lines = vec!["Last signed, anything that counts:".to_owned()];
    lines.extend(lockout.uses.iter().map(|used| {
        let when = used.last_signed.map_or("never, as far as is known here".to_owned(), when_text);
        let idle = if used.is_idle { ", not for a year" } else { "" };
        format!("  {}: {when}{idle}", shown_signer(&used.signer))
    }));
    lines.extend(lockout.outlooks.iter().map(|outlook| match outlook.is_alarming() {
        true => format!("{} {outlook}", output.bad("warning:")),
        false => format!("note: {outlook}"),
    }));
    lines
}

fn add_json(value: &mut Value, lockout: &Lockout) {
    let uses = lockout.uses.iter().map(|used| {
        (used.signer.key.to_string(), json!({ "last_signed_at": used.last_signed, "idle": used.is_idle }))
    });
    value["last_signed"] = Value::Object(uses.collect::<Map<_, _>>());
    let outlooks = lockout.outlooks.iter().map(|outlook| {
        json!({
            "act": outlook.act.to_string(),
            "idle": outlook.idle,
            "keys": outlook.keys,
            "possible_without": outlook.spare.is_some(),
            "spare": outlook.spare,
            "text": outlook.to_string(),
        })
    });
    value["lockout"] = outlooks.collect();
}
