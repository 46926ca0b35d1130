//! `countersign keygen`

use std::os::unix::fs::DirBuilderExt as _;
use std::{fs, fs::DirBuilder, io, path::Path, path::PathBuf};

use countersign_core::values::shown::is_unseen;
use serde_json::json;

use crate::args::{GlobalArgs, KeygenArgs};
use crate::keys::{self, NewKey, SecretBytes, generate, passphrase};
use crate::settings::config_dir::write_new;
use crate::words::{error::CliError, error::add_suffix, error::shown_path, output::Output};

const MAX_COMMENT_CHARS: usize = 256;

pub(crate) fn run(global: &GlobalArgs, args: &KeygenArgs, output: Output) -> Result<(), CliError> {
    let made = MadeKey::make(global, args)?;
    made.write()?;
    let (private_shown, public_shown) = (shown_path(&made.private), shown_path(&made.public));
    // The client finds a key in the usual place by itself.
    let used = match &args.out {
        Some(_) => format!("sign with --key {private_shown}"),
        None => "sign: the client finds the key there".to_owned(),
    };
    let text = format!(
        "Private key  {private_shown}\n\
         Public key   {public_shown}\n             {}\n\
         Next: list {public_shown} in a signers file (`countersign init`, or `countersign signers new --help`), and {used}",
        output.strong(&made.pair.public.to_string()),
    );
    let value = json!({
        "private_key_file": made.private.to_string_lossy(),
        "public_key_file": made.public.to_string_lossy(),
        "public_key": made.pair.public.to_string(),
        "ssh": made.line,
    });
    output.result(&text, &value)
}

/// A new key, and the two files for it.
pub(super) struct MadeKey {
    pub(super) private: PathBuf,
    public: PathBuf,
    pub(super) pair: NewKey,
    line: String,
}

impl MadeKey {
    /// Makes a key for the place that the arguments name, or for the usual one, and writes nothing yet.
    pub(super) fn make(global: &GlobalArgs, args: &KeygenArgs) -> Result<Self, CliError> {
        let private = args.out.clone().or_else(keys::usual_path).ok_or_else(|| {
            CliError::usage("there is no home directory for ~/.ssh/id_ed25519", "pass --out FILE")
        })?;
        let public = add_suffix(&private, ".pub");
        check_comment(&args.comment)?;
        // Before any question: an answer should not be in vain.
        check_absent(&private)?;
        check_absent(&public)?;
        let passphrase = choose_passphrase(global, args, &private)?;
        let pair = generate(&args.comment, passphrase.as_ref())?;
        let line = pair.public.to_ssh_line(&args.comment);
        Ok(Self { private, public, pair, line })
    }

    /// Writes both files. Replaces none.
    pub(super) fn write(&self) -> Result<(), CliError> {
        if let Some(dir) =
            self.private.parent().filter(|_| Some(&self.private) == keys::usual_path().as_ref())
        {
            let created = DirBuilder::new().recursive(true).mode(0o700).create(dir);
            created.map_err(|error| CliError::file("created", dir, error))?;
        }
        write_pair(&self.private, &self.pair.private, &self.line)
    }
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
pub(super) fn check_absent(path: &Path) -> Result<(), CliError> {
    match path.symlink_metadata() {
        Ok(_) => {
            let error = io::Error::new(io::ErrorKind::AlreadyExists, "it exists already");
            Err(CliError::file("written", path, error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(CliError::file("written", path, error)),
    }
}

fn choose_passphrase(
    global: &GlobalArgs,
    args: &KeygenArgs,
    file: &Path,
) -> Result<Option<SecretBytes>, CliError> {
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
    let mut again = "";
    loop {
        let first = passphrase::ask(&format!("{again}Passphrase for {}: ", shown_path(file)))?;
        if first.is_empty() {
            let message = "no key was made: the passphrase is empty";
            return Err(CliError::usage(message, "pass --no-password for a key without one"));
        }
        let second = passphrase::ask("The same passphrase again: ")?;
        if first.as_bytes() == second.as_bytes() {
            return Ok(Some(first));
        }
        again = "The two passphrases differ. ";
    }
}

/// Writes a key, and its public `line` beside it: both files or none, unless the machine stops in between. Then what is
/// there is no key, or one without its `.pub`, which `ssh-keygen -y` makes again.
pub(super) fn write_pair(path: &Path, private: &SecretBytes, line: &str) -> Result<(), CliError> {
    write_new(path, private.as_bytes(), 0o600)?;
    write_new(&add_suffix(path, ".pub"), format!("{line}\n").as_bytes(), 0o644).inspect_err(|_| {
        // The error that led here is the one to report.
        let _ = fs::remove_file(path);
    })
}
