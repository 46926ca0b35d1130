//! `countersign signers`

use std::{fs, path::Path};

use countersign_core::documents::signers::{Signer, SignersFile};
use countersign_explain::{
    signers::shown_signer,
    strength::{self, ActStrength},
};
use serde_json::{Map, Value, json};

use crate::{
    args::{SignersCommand, SignersNewArgs},
    client::now,
    error::CliError,
    files::write_new,
    keys,
    output::Output,
    paths::shown_path,
};

pub(crate) fn run(command: &SignersCommand, output: Output) -> Result<(), CliError> {
    match command {
        SignersCommand::New(args) => make(args, output),
        SignersCommand::Check { file } => check(file, output),
    }
}

fn make(args: &SignersNewArgs, output: Output) -> Result<(), CliError> {
    let mut file = Map::new();
    file.insert("version".to_owned(), json!(1));
    file.insert("timestamp".to_owned(), json!(now()?.to_whole_milliseconds().to_string()));
    let roles = [
        ("artifact_signers", &args.artifact, Some(args.artifact_threshold)),
        ("admin_keys", &args.admin, args.admin_threshold),
        ("master_keys", &args.master, args.master_threshold),
        ("revocation_keys", &args.revocation, args.revocation_threshold),
    ];
    for (name, given, threshold) in roles {
        if let (Some(threshold), false) = (threshold, given.is_empty()) {
            file.insert(name.to_owned(), json!([{"threshold": threshold, "signers": entries(given)?}]));
        }
    }
    // The one reader of signers files says what is wrong, and the one writer how they look.
    let parsed = SignersFile::parse(Value::Object(file).to_string().as_bytes()).map_err(|error| {
        CliError::usage(
            "these keys and thresholds make no signers file",
            "correct the keys or thresholds of that role",
        )
        .because(error)
    })?;
    let text = parsed.write();
    match &args.output {
        None => output.answer(
            &String::from_utf8_lossy(&text),
            &json!({"signers_file": String::from_utf8_lossy(&text)}),
        ),
        Some(path) => {
            // A signers file says who is trusted: one that is there is never replaced by accident.
            write_new(path, &text, 0o666)?;
            let shown = shown_path(path);
            let hint = format!("Wrote {shown}. `countersign signers check {shown}` says what it withstands.");
            output.result(&hint, &json!({"file": path.display().to_string()}))
        }
    }
}

fn entries(given: &[String]) -> Result<Vec<Value>, CliError> {
    let mut entries = Vec::new();
    for text in given {
        let Signer { key, name } = keys::parse_signer(text)?;
        let mut entry = json!({"kind": "key", "data": {"pubkey": key.to_string()}});
        if let Some(name) = name {
            entry["name"] = json!(name);
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn check(path: &Path, output: Output) -> Result<(), CliError> {
    let bytes = fs::read(path).map_err(|error| CliError::file("read", path, error))?;
    let file = SignersFile::parse(&bytes).map_err(|error| {
        CliError::other(
            format!("{} is not a valid signers file", shown_path(path)),
            "correct what it names; `countersign signers new` writes a valid one",
        )
        .because(error)
    })?;
    let strength = strength::assess(&file);
    let mut lines = vec![format!("{} is valid, of {}", shown_path(path), file.timestamp())];
    lines.push(format!("digest: {}", countersign_core::values::digest::Sha512::of(&bytes).to_prefixed()));
    for act in strength.acts() {
        lines.extend(describe(act));
    }
    lines.extend(strength.warnings.iter().map(|warning| format!("{} {warning}", output.bad("warning:"))));
    let value = json!({
        "valid": true,
        "timestamp": file.timestamp().to_string(),
        "digest": countersign_core::values::digest::Sha512::of(&bytes).to_prefixed(),
        "keys": file.keys().len(),
        "acts": strength.acts().map(to_json),
        "warnings": strength.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    output.answer(&lines.join("\n"), &value)
}

fn describe(act: &ActStrength) -> Vec<String> {
    let mut lines = vec![format!("To {}:", act.act)];
    lines.extend(act.ways.iter().map(|way| format!("  {way}")));
    let alone = match act.alone.as_slice() {
        [] => "no one".to_owned(),
        alone => alone.iter().map(shown_signer).collect::<Vec<_>>().join(", "),
    };
    lines.push(format!("  alone: {alone}"));
    lines.push(format!("  keys that may be stolen before a thief can: {}", act.harmless_thefts));
    lines.push(format!(
        "  keys that may be lost, whichever, before it cannot be done: {}",
        act.survivable_losses
    ));
    lines
}

fn to_json(act: &ActStrength) -> Value {
    json!({
        "act": act.act.to_string(),
        "ways": act.ways.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "alone": act.alone.iter().map(|signer| signer.key.to_string()).collect::<Vec<_>>(),
        "harmless_thefts": act.harmless_thefts,
        "survivable_losses": act.survivable_losses,
    })
}
