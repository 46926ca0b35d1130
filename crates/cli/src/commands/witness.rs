//! `countersign witness`, and what an operator does for one

use std::path::Path;

use countersign_core::log::policy::Policy;
use countersign_core::values::{bounds::POLICY_BYTES, verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_server::follow::witness::WitnessSettings;
use serde_json::json;

use crate::args::{GlobalArgs, WitnessArgs, WitnessInitArgs};
use crate::commands::{keygen::write_pair, serve};
use crate::words::{error::CliError, error::shown_path, output::Output};
use crate::{keys, keys::SigningKey, settings::config_dir::read_bounded};

const NAME_HINT: &str = "something like witness.example.org is usual: no spaces, and no +";

pub(crate) fn run(global: &GlobalArgs, args: WitnessArgs, output: Output) -> Result<(), CliError> {
    let path = key_path(global)?;
    let key = SigningKey::load_for_service(path, output)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => keys::read_comment(path)?.ok_or_else(|| {
            let message = format!("the key {} has no name in it", shown_path(path));
            CliError::usage(message, "pass --name NAME")
        })?,
    };
    let named = VerifierKey::new(&name, KeyKind::Witness, key.public_key()).map_err(|error| {
        CliError::usage(format!("a witness cannot be called `{name}`: {error}"), NAME_HINT)
    })?;
    let settings = WitnessSettings {
        signer: key.into_checkpoint_signer(named),
        log_key: args.log_key.clone(),
        logs: args.policy.as_deref().map(read_logs).transpose()?.unwrap_or_default(),
        is_polling: args.poll,
    };
    serve::run(args.into_settings(settings), output)
}

/// `countersign admin witness init`
pub(crate) fn init(global: &GlobalArgs, args: &WitnessInitArgs, output: Output) -> Result<(), CliError> {
    let path = key_path(global)?;
    let new = keys::generate(&args.name, None)?;
    let key = VerifierKey::new(&args.name, KeyKind::Witness, new.public)
        .map_err(|error| CliError::usage(error.to_string(), NAME_HINT))?;
    write_pair(path, &new, &new.public.to_ssh_line(&args.name))?;
    let shown = shown_path(path);
    let text = format!(
        "Made the key {shown}. Begin to witness with it:\n\n\
         countersign witness URL --key {shown} --data-dir DIR --listen ADDR:PORT\n\n\
         Give the operator of the log this line for the witnesses file, with the address at which you can be reached, or \
         without one if you use --poll:\n\nwitness {} {} https://ADDRESS\n",
        args.name.replace('/', "-"),
        output.strong(&key.to_string()),
    );
    output.result(&text, &json!({ "key_file": shown, "name": args.name, "witness": key.to_string() }))
}

fn key_path(global: &GlobalArgs) -> Result<&Path, CliError> {
    global.key.as_deref().ok_or_else(|| {
        let hint = "pass --key FILE; `countersign admin witness init --key FILE --name NAME` makes one";
        CliError::usage("a witness needs a key of its own", hint)
    })
}

/// The logs of a policy file. A witness needs nothing else of it, so a quorum can be missing.
fn read_logs(path: &Path) -> Result<Vec<VerifierKey>, CliError> {
    let bytes = read_bounded(path, POLICY_BYTES)?;
    let policy = Policy::parse(&bytes)
        .or_else(|error| Policy::parse(&[bytes.as_slice(), b"\nquorum none\n"].concat()).map_err(|_| error));
    let policy = policy.map_err(|error| {
        let message = format!("{} is not a policy: {error}", shown_path(path));
        CliError::usage(message, "write a line `log VKEY` for each log")
    })?;
    Ok(policy.log_keys())
}
