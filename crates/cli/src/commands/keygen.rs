//! `countersign keygen`

use std::{fs, io, path::Path};

use countersign_core::values::shown::is_unseen;
use serde_json::json;

use crate::args::{GlobalArgs, KeygenArgs};
use crate::keys::{NewKey, SecretBytes, generate, passphrase};
use crate::settings::config_dir::write_new;
use crate::words::{error::CliError, error::add_suffix, error::shown_path, output::Output};

const MAX_COMMENT_CHARS: usize = 256;

pub(crate) fn run(global: &GlobalArgs, args: &KeygenArgs, output: Output) -> Result<(), CliError> {
    let (private, public) = (&args.out, &add_suffix(&args.out, ".pub"));
    check_comment(&args.comment)?;
    // Before any question: an answer should not be in vain.
    check_absent(private)?;
    check_absent(public)?;
    let passphrase = choose_passphrase(global, args)?;
    let key = generate(&args.comment, passphrase.as_ref())?;
    let line = key.public.to_ssh_line(&args.comment);
    write_pair(private, &key, &line)?;

    let (private_shown, public_shown) = (shown_path(private), shown_path(public));
    let text = format!(
        "Private key  {private_shown}\n\
         Public key   {public_shown}\n             {}\n\
         Next: list {public_shown} in a signers file (`countersign signers new --help`), and sign with --key \
         {private_shown}",
        output.strong(&key.public.to_string()),
    );
    let value = json!({
        "private_key_file": private.to_string_lossy(),
        "public_key_file": public.to_string_lossy(),
        "public_key": key.public.to_string(),
        "ssh": line,
    });
    output.result(&text, &value)
}

/// The comment is the rest of a line that others read.
fn check_comment(comment: &str) -> Result<(), CliError> {
    if comment.chars().count() <= MAX_COMMENT_CHARS && !comment.chars().any(is_unseen) {
        return Ok(());
    }
    Err(CliError::usage(
        format!("--comment must be one line of at most {MAX_COMMENT_CHARS} characters, all of them visible"),
        "something like alice@example.org is usual",
    ))
}

/// A link that leads nowhere is there as well.
fn check_absent(path: &Path) -> Result<(), CliError> {
    match path.symlink_metadata() {
        Ok(_) => {
            let error = io::Error::new(io::ErrorKind::AlreadyExists, "it exists already");
            Err(CliError::file("written", path, error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(CliError::file("written", path, error)),
    }
}

fn choose_passphrase(global: &GlobalArgs, args: &KeygenArgs) -> Result<Option<SecretBytes>, CliError> {
    if args.no_password {
        return Ok(None);
    }
    if let Some(file) = &global.password_file {
        return passphrase::read_file(file).map(Some);
    }
    if !passphrase::can_be_asked() {
        return Err(CliError::usage(
            "there is no terminal to ask for a passphrase",
            "pass --password-file FILE, or --no-password for a key without one",
        ));
    }
    let first = passphrase::ask(&format!("Passphrase for {}: ", shown_path(&args.out)))?;
    if first.is_empty() {
        let message = "no key was made: the passphrase is empty";
        return Err(CliError::usage(message, "pass --no-password for a key without one"));
    }
    let second = passphrase::ask("The same passphrase again: ")?;
    if first.as_bytes() != second.as_bytes() {
        return Err(CliError::usage("no key was made: the two passphrases differ", "run it again"));
    }
    Ok(Some(first))
}

/// Writes a key, and its public `line` beside it: both files or none, unless the machine stops in between. Then what is there
/// is no key, or one without its `.pub`, which `ssh-keygen -y` makes again.
pub(super) fn write_pair(path: &Path, key: &NewKey, line: &str) -> Result<(), CliError> {
    write_new(path, key.private.as_bytes(), 0o600)?;
    write_new(&add_suffix(path, ".pub"), format!("{line}\n").as_bytes(), 0o644).inspect_err(|_| {
        // The error that led here is the one to report.
        let _ = fs::remove_file(path);
    })
}
