//! Keys: read from files, held by an ssh-agent, or named on the command line.

mod agent;
mod key_file;
pub(crate) mod passphrase;
pub(crate) mod witness_key;

use std::{collections::BTreeSet, os::unix::fs::PermissionsExt as _, path::Path, path::PathBuf};

use countersign_core::documents::signers::{Role, Signer, SignersFile};
use countersign_core::values::key::{KeyFormat, PublicKey, SecretKey, Signature};
use countersign_core::values::shown::{quoted, shown_text};
use countersign_core::values::{
    digest::Sha512, other_format::FormatMessage, verifier_key::VerifierKey, wire,
};
use countersign_log::CheckpointSigner;

use crate::keys::agent::AgentKey;
pub(crate) use crate::keys::key_file::PublicHalf;
use crate::keys::key_file::{KeyFile, OpenSshKey, UnlockError, Unusable};
pub(crate) use crate::keys::{key_file::NewKey, key_file::generate, passphrase::SecretBytes};
use crate::words::{error::CliError, error::shown_path, output::Output};

const MAX_KEY_FILE_BYTES: usize = 64 * 1024;
const ATTEMPTS: usize = 3;
const KEY_FORMS: &str = "a KEY is a .pub file, a svc-pub: string or an ssh-ed25519 line in quotes";

/// What this program signs with.
#[derive(Debug)]
pub(crate) enum SigningKey {
    File(SecretKey),
    Agent(AgentKey),
}

impl SigningKey {
    /// The key of a file, unlocked with --password-file or by asking. As with ssh, the agent signs where it holds the
    /// key of an encrypted file, or where only the public half is here.
    pub(crate) fn load(path: &Path, password_file: Option<&Path>, output: Output) -> Result<Self, CliError> {
        let path = &find_half(path);
        match read_key_file(path)? {
            KeyFile::Private(key) => {
                warn_of_loose_mode(path, output);
                if key.is_encrypted()
                    && password_file.is_none()
                    && let Some(held) =
                        key.public_key().ok().and_then(|key| AgentKey::find(path, key, output).ok())
                {
                    return Ok(Self::Agent(held));
                }
                unlock(path, &key, password_file).map(Self::File)
            }
            KeyFile::Public(half) => AgentKey::find(path, half.key, output).map(Self::Agent),
        }
    }

    /// Loads a key for a server, which has no terminal: a file without a passphrase, or a key that the agent holds and
    /// that no one has to touch.
    pub(crate) fn load_for_service(path: &Path, output: Output) -> Result<Self, CliError> {
        let key = match read_key_file(path)? {
            KeyFile::Private(key) if key.is_encrypted() => {
                let public = key.public_key().map_err(|error| unusable(path, &error))?;
                AgentKey::find(path, public, output).map(Self::Agent)
            }
            KeyFile::Private(key) => {
                warn_of_loose_mode(path, output);
                key.read().map(Self::File).map_err(|error| unusable(path, &error))
            }
            KeyFile::Public(half) => AgentKey::find(path, half.key, output).map(Self::Agent),
        }?;
        match key.format() {
            KeyFormat::Ed25519 => Ok(key),
            KeyFormat::Fido => Err(CliError::usage(
                format!(
                    "{} is a FIDO key, which someone would have to touch for each checkpoint",
                    shown_path(path)
                ),
                "give the log or witness a key of its own: `countersign keygen` makes one",
            )),
        }
    }

    /// Signs or cosigns checkpoints under the name in `key`, which is its own public half.
    pub(crate) fn into_checkpoint_signer(self, key: VerifierKey) -> CheckpointSigner {
        match self {
            Self::File(secret) => CheckpointSigner::with_key(key, secret),
            Self::Agent(held) => CheckpointSigner::elsewhere(key, move |text| {
                // Who reads the signature verifies it together with the checkpoint.
                held.sign(text.as_bytes(), |_| true).map_err(|error| error.describe())
            }),
        }
    }

    pub(crate) fn public_key(&self) -> PublicKey {
        match self {
            Self::File(key) => key.public_key(),
            Self::Agent(held) => held.key,
        }
    }

    /// Signs the 64 raw bytes of the digest (D3).
    pub(crate) fn sign(&self, digest: &Sha512) -> Result<Signature, CliError> {
        match self {
            Self::File(key) => Ok(key.sign(digest)),
            Self::Agent(held) => held.sign_digest(digest),
        }
    }

    /// What its signatures are like, and which formats for other programs it can sign.
    pub(crate) fn format(&self) -> KeyFormat {
        match self {
            Self::File(_) => KeyFormat::Ed25519,
            Self::Agent(held) => held.format,
        }
    }

    /// Signs a request that anyone may send: a FIDO key is not touched again for it, since a key that is thrown away
    /// does as well (D17).
    pub(crate) fn sign_as_anyone(&self) -> Result<Option<Self>, CliError> {
        match self.format() {
            KeyFormat::Ed25519 => Ok(None),
            KeyFormat::Fido => Ok(Some(Self::File(SecretKey::from_seed(&*key_file::random()?)))),
        }
    }

    /// Signs for another program (D101).
    pub(crate) fn sign_message(&self, message: &FormatMessage) -> Result<Signature, CliError> {
        match self {
            Self::File(key) => Ok(message.sign_with(key)),
            Self::Agent(held) => {
                held.sign(message.as_bytes(), |signature| message.is_signed_by(&held.key, signature))
            }
        }
    }
}

/// What the file says about the key: who it belongs to, as a rule. `None` if it says nothing.
pub(crate) fn read_comment(path: &Path) -> Result<Option<String>, CliError> {
    let content = SecretBytes::read(path, MAX_KEY_FILE_BYTES)?;
    let comment = match KeyFile::parse(content.as_bytes()).map_err(|error| unusable(path, &error))? {
        KeyFile::Private(key) => key.comment().to_owned(),
        KeyFile::Public(_) => {
            let text = String::from_utf8_lossy(content.as_bytes());
            text.split_ascii_whitespace().skip(2).collect::<Vec<_>>().join(" ")
        }
    };
    Ok(Some(comment).filter(|comment| !comment.is_empty()))
}

/// The file itself, or its public half where only that is here.
fn find_half(path: &Path) -> PathBuf {
    let public_half = PathBuf::from(format!("{}.pub", path.display()));
    if !path.exists() && public_half.exists() { public_half } else { path.to_owned() }
}

fn read_key_file(path: &Path) -> Result<KeyFile, CliError> {
    let content = SecretBytes::read(path, MAX_KEY_FILE_BYTES)?;
    KeyFile::parse(content.as_bytes()).map_err(|error| unusable(path, &error))
}

/// The public half of a key, as its file shows it without a passphrase.
pub(crate) fn read_public_half(path: &Path) -> Result<PublicHalf, CliError> {
    let path = &find_half(path);
    match read_key_file(path)? {
        KeyFile::Private(key) => {
            let key = key.public_key().map_err(|error| unusable(path, &error))?;
            Ok(PublicHalf { key, format: Some(KeyFormat::Ed25519) })
        }
        KeyFile::Public(half) => Ok(half),
    }
}

/// The key where none is given or set: one that the agent holds, or the usual file, that is in `listed`. Where nothing
/// says who is listed, there must be only one.
pub(crate) fn find_default(
    listed: &[PublicKey],
    password_file: Option<&Path>,
    output: Output,
) -> Result<SigningKey, CliError> {
    let key = find_default_public(listed, output)?.key;
    let path = usual_file();
    if let Ok(held) = AgentKey::find(path.as_deref().unwrap_or(Path::new("FILE")), key, output) {
        return Ok(SigningKey::Agent(held));
    }
    let path = path.ok_or_else(no_key)?;
    output.note(&format!("Signing with {}.", shown_path(&path)));
    SigningKey::load(&path, password_file, output)
}

/// The public halves of the keys that the agent holds, and of the usual file.
pub(crate) fn list_default(output: Output) -> Vec<PublicHalf> {
    let mut found = AgentKey::list_held(output);
    let file = usual_file().and_then(|path| read_public_half(&path).ok());
    found.extend(file.filter(|file| found.iter().all(|held| held.key != file.key)));
    found
}

/// The public half of the default key.
pub(crate) fn find_default_public(listed: &[PublicKey], output: Output) -> Result<PublicHalf, CliError> {
    let found = list_default(output);
    if found.is_empty() {
        return Err(no_key());
    }
    if let Some(half) = found.iter().find(|half| listed.contains(&half.key)) {
        return Ok(*half);
    }
    let shown = found.iter().map(|half| half.key.to_string()).collect::<Vec<_>>().join(", ");
    match found.as_slice() {
        [half] if listed.is_empty() => Ok(*half),
        _ if listed.is_empty() => Err(CliError::usage(
            format!("no key is given, and there are several: {shown}"),
            "say which with --key FILE, or set one with `countersign config set key FILE`",
        )),
        _ => Err(CliError::usage(
            format!("none of your keys is asked for here: {shown}"),
            "pass the right one with --key FILE; `countersign status` shows who is asked",
        )),
    }
}

/// The file that ssh uses as well. `None` without a home directory.
pub(crate) fn usual_path() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(PathBuf::from(home).join(".ssh/id_ed25519"))
}

/// The usual file, or its public half, if one of them is there.
fn usual_file() -> Option<PathBuf> {
    let path = usual_path()?;
    [path.clone(), path.with_extension("pub")].into_iter().find(|path| path.is_file())
}

fn no_key() -> CliError {
    CliError::usage(
        "no key is given, the agent holds none, and there is no ~/.ssh/id_ed25519",
        "`countersign keygen` makes that one. Or pass --key FILE, set COUNTERSIGN_KEY, or `countersign config set key FILE`",
    )
}

/// A key on the command line: a `.pub` file, a `svc-pub:` string or an `ssh-ed25519` line, with an optional `name=` in
/// front. What the name may be is checked with the signers file.
pub(crate) fn parse_signer(text: &str) -> Result<Signer, CliError> {
    let (name, key) = split_name(text);
    if name == Some("") || key.is_empty() {
        let message = format!("`{}` must be KEY or NAME=KEY", shown_text(text));
        return Err(CliError::usage(message, KEY_FORMS));
    }
    let half = parse_half(key)?;
    let format = half.format.unwrap_or(KeyFormat::Ed25519);
    Ok(Signer { key: half.key, name: name.map(str::to_owned), format })
}

/// Splits a name from a key. Base64 ends in `=`, and the comment of a line or the directories of a file may have one:
/// only text before the first `=` that can be none of these is a name.
fn split_name(text: &str) -> (Option<&str>, &str) {
    let is_key = is_written_out(text) || PublicKey::parse(text).is_ok();
    match text.split_once('=') {
        Some((name, key)) if !is_key && !name.contains('/') => (Some(name), key),
        Some(_) | None => (None, text),
    }
}

/// Whether the text is, or means to be, a key rather than the name of a file.
fn is_written_out(text: &str) -> bool {
    let first_word = text.split_ascii_whitespace().next().unwrap_or_default();
    text.starts_with(wire::PUBLIC_KEY_PREFIX) || (first_word != text && key_file::is_ssh_type(first_word))
}

pub(crate) fn parse_key(text: &str) -> Result<PublicKey, CliError> {
    parse_half(text).map(|half| half.key)
}

fn parse_half(text: &str) -> Result<PublicHalf, CliError> {
    if is_written_out(text) {
        return key_file::parse_public_line(text).map_err(|error| {
            let message = format!("`{}` cannot be a signer: it is {error}", shown_text(text));
            CliError::usage(message, error.hint())
        });
    }
    if let Ok(key) = PublicKey::parse(text) {
        return Ok(PublicHalf { key, format: None });
    }
    let path = Path::new(text);
    match read_key_file(path) {
        Ok(KeyFile::Public(half)) => Ok(half),
        Ok(KeyFile::Private(_)) => {
            let message = format!("{} is a private key", shown_path(path));
            Err(CliError::usage(
                message,
                "give its public half, the .pub file, and keep the private one to yourself",
            ))
        }
        Err(error) if !path.exists() => {
            let message = format!("`{}` is neither a key nor a file", shown_text(text));
            Err(CliError::usage(message, KEY_FORMS).because(error))
        }
        Err(error) => Err(error),
    }
}

fn unlock(path: &Path, key: &OpenSshKey, password_file: Option<&Path>) -> Result<SecretKey, CliError> {
    if !key.is_encrypted() {
        return key.read().map_err(|error| unusable(path, &error));
    }
    let shown = shown_path(path);
    if let Some(file) = password_file {
        let passphrase = passphrase::read_file(file)?;
        return key.unlock(passphrase.as_bytes()).map_err(|error| match error {
            UnlockError::Passphrase => CliError::other(
                format!("the key {shown} cannot be decrypted with the first line of {}", shown_path(file)),
                format!(
                    "check the passphrase: `ssh-keygen -y -f {shown}` tries one by hand. {}",
                    say_lost(path, key)
                ),
            )
            .because(UnlockError::Passphrase),
            UnlockError::Key(error) => unusable(path, &error),
        });
    }
    if !passphrase::can_be_asked() {
        return Err(CliError::usage(
            format!("the key {shown} is encrypted, and there is no terminal to ask for its passphrase"),
            "pass --password-file FILE, or load the key into an ssh-agent and pass its .pub file as --key",
        ));
    }
    for attempt in 1..=ATTEMPTS {
        let again = if attempt == 1 { "" } else { "Wrong. " };
        let passphrase = passphrase::ask(&format!("{again}Passphrase of {shown}: "))?;
        match key.unlock(passphrase.as_bytes()) {
            Ok(key) => return Ok(key),
            Err(UnlockError::Passphrase) => {}
            Err(UnlockError::Key(error)) => return Err(unusable(path, &error)),
        }
    }
    Err(CliError::other(
        format!("the key {shown} cannot be decrypted: the passphrase is wrong (or the file is damaged)"),
        format!("run it again with the right one. {}", say_lost(path, key)),
    ))
}

/// What to do if no one knows the passphrase any more: the key is lost, and another one takes its place. It may be of a
/// project that is not registered yet, which has no admins.
fn say_lost(path: &Path, key: &OpenSshKey) -> String {
    let old = key.public_key().map_or_else(|_| "NAME".to_owned(), |key| key.to_string());
    let new = format!("{}-new", shown_path(path));
    format!(
        "If it is lost, so is the key: make another one (`countersign keygen --out {new}`), and write a signers file with it: \
         `countersign signers edit PROJECT --replace {old}={new}.pub`. The project's maintainers publish that file"
    )
}

fn unusable(path: &Path, error: &Unusable) -> CliError {
    CliError::other(format!("{} cannot be used as a key: it is {error}", shown_path(path)), error.hint())
}

/// Warns of a loose mode, and does no more: on some file systems modes cannot be set.
fn warn_of_loose_mode(path: &Path, output: Output) {
    let Ok(metadata) = path.metadata() else { return };
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.is_file() && mode & 0o077 != 0 {
        let path = shown_path(path);
        output.note(&format!(
            "warning: others may access the private key {path} (mode {mode:04o}): chmod 600 {path}"
        ));
    }
}

// Keys by the names that signers files give them.

/// Keys as they are written out, or names from these signers files.
pub(crate) fn resolve_keys(texts: &[String], files: &[SignersFile]) -> Result<BTreeSet<PublicKey>, CliError> {
    texts.iter().map(|text| resolve_key(text, files)).collect()
}

fn resolve_key(text: &str, files: &[SignersFile]) -> Result<PublicKey, CliError> {
    let named: BTreeSet<PublicKey> = files.iter().filter_map(|file| find_named(file, text)).collect();
    if named.len() > 1 {
        let keys: Vec<String> = named.iter().map(ToString::to_string).collect();
        return Err(CliError::usage(
            format!("{} has been the name of {} keys", quoted(text), keys.len()),
            format!("give the one that you mean in full, or all of them: {}", keys.join(" ")),
        ));
    }
    match (named.first(), files) {
        (Some(key), _) => Ok(*key),
        (None, []) => parse_key(text).map_err(|error| {
            error.with_hint("give the key in full, its .pub file, or with a project its name")
        }),
        (None, files) => parse_key(text).map_err(|_| not_listed(&quoted(text), files)),
    }
}

/// A key or name that no signers file lists, with those that they list.
pub(crate) fn not_listed(what: &str, files: &[SignersFile]) -> CliError {
    let listed = files.iter().flat_map(every_signer).map(|signer| match &signer.name {
        Some(name) => format!("{} ({})", quoted(name), signer.key),
        None => signer.key.to_string(),
    });
    let listed: BTreeSet<String> = listed.collect();
    CliError::usage(
        format!("no signers file there lists {what}"),
        format!("give one of these by name or key: {}", Vec::from_iter(listed).join(", ")),
    )
}

/// The key that a signers file gives this name.
fn find_named(file: &SignersFile, name: &str) -> Option<PublicKey> {
    every_signer(file).find(|signer| signer.name.as_deref() == Some(name)).map(|signer| signer.key)
}

fn every_signer(file: &SignersFile) -> impl Iterator<Item = &Signer> {
    let groups = Role::ALL.into_iter().filter_map(|role| file.explicit_groups(role)).flatten();
    groups.flat_map(|group| &group.signers).chain(file.registrars())
}

#[cfg(test)]
mod tests {
    use crate::keys::*;

    fn fixture(name: &str) -> String {
        format!("{}/tests/fixtures/keys/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    fn content(name: &str) -> Vec<u8> {
        std::fs::read(fixture(name)).expect("the fixture is there")
    }

    #[track_caller]
    fn private(content: &[u8]) -> OpenSshKey {
        match KeyFile::parse(content) {
            Ok(KeyFile::Private(key)) => *key,
            other => panic!("not a private key: {other:?}"),
        }
    }

    fn fixture_key() -> PublicKey {
        read_public_half(Path::new(&fixture("plain.pub"))).expect("it is a key").key
    }

    #[test]
    fn every_usual_cipher_is_decrypted_with_the_right_passphrase_and_with_no_other() {
        for cipher in
            ["aes256-ctr", "aes128-cbc", "aes256-cbc", "aes128-gcm", "aes256-gcm", "chacha20-poly1305"]
        {
            let key = private(&content(&format!("encrypted-{cipher}")));
            let opened = key.unlock(b"correct horse battery staple").expect(cipher);
            assert_eq!(opened.public_key(), fixture_key(), "{cipher}");
            for wrong in [b"correct horse battery".as_slice(), b"", b"\xff"] {
                assert_eq!(key.unlock(wrong).err(), Some(UnlockError::Passphrase), "{cipher}");
            }
        }
    }

    #[test]
    fn damaged_private_keys_are_refused_without_a_panic() {
        let whole = content("plain");
        for length in 0..whole.len() - 1 {
            assert!(KeyFile::parse(&whole[..length]).is_err(), "cut to {length} bytes");
        }
        for offset in 0..whole.len() {
            let mut changed = whole.clone();
            changed[offset] ^= 1;
            if let Ok(KeyFile::Private(key)) = KeyFile::parse(&changed) {
                // What is left are the check number, twice, the comment, and the padding.
                assert!(key.read().is_ok_and(|key| key.public_key() == fixture_key()) || key.read().is_err());
            }
        }
    }

    #[test]
    fn a_public_key_file_has_one_key_and_may_have_comments_and_any_white_space() {
        let (key, line) = (fixture_key(), content("plain.pub").trim_ascii().to_vec());
        let tabs = line.iter().map(|byte| if *byte == b' ' { b'\t' } else { *byte }).collect();
        for text in [
            [&line, b"\r\n".as_slice()].concat(),
            [b"# from alice\n\n", line.as_slice()].concat(),
            [b"  ", line.as_slice(), b"  "].concat(),
            [&line, b" caf\xe9\n".as_slice()].concat(),
            tabs,
            format!("{key}\n").into_bytes(),
            key.to_base64().into_bytes(),
        ] {
            let found = KeyFile::parse(&text);
            assert!(
                matches!(found, Ok(KeyFile::Public(found)) if found.key == key),
                "{}",
                text.escape_ascii()
            );
        }
        let twice = [&line, b"\n".as_slice(), &line].concat();
        assert_eq!(KeyFile::parse(&twice).err(), Some(Unusable::Several));
        for text in ["", "\n", "# only a comment\n", "ssh-ed25519", "hello", "svc-pub", "{}"] {
            assert_eq!(KeyFile::parse(text.as_bytes()).err(), Some(Unusable::Nothing), "{text:?}");
        }
        for text in ["ssh-ed25519 AAAA", "svc-pub:AAAA", "svc-pub:"] {
            assert!(matches!(KeyFile::parse(text.as_bytes()), Err(Unusable::Damaged(_))), "{text:?}");
        }
    }

    #[test]
    fn secrets_are_not_printed_and_what_is_too_long_for_one_is_not_read() {
        let key = generate("", None).expect("there are random bytes");
        let text = String::from_utf8_lossy(key.private.as_bytes()).into_owned();
        let body = text.lines().nth(3).expect("it has more lines");
        for shown in [format!("{key:?}"), format!("{:?}", private(text.as_bytes()))] {
            assert!(!shown.contains(body) && !shown.contains("PRIVATE KEY"), "{shown}");
        }
        let refused = SecretBytes::read(Path::new(&fixture("plain")), text.len() / 2);
        assert!(refused.is_err_and(|error| error.to_string().contains("too long")));
    }

    #[test]
    fn an_equals_sign_makes_a_name_only_where_it_can_be_nothing_else() {
        let (key, dir) = (fixture_key(), tempfile::tempdir().expect("a directory"));
        let file = dir.path().join("a=b.pub").display().to_string();
        std::fs::copy(fixture("plain.pub"), &file).expect("it can be copied");
        let padded = format!("svc-pub:{}", key.to_base64());
        assert!(padded.ends_with('='), "or this shows nothing");
        for text in [file, padded, key.to_base64(), key.to_ssh_line("alice=admin of = things")] {
            for (name, text) in [(None, text.clone()), (Some("Älice (work)"), format!("Älice (work)={text}"))]
            {
                let signer = parse_signer(&text).expect(&text);
                let name = name.map(str::to_owned);
                assert_eq!(signer, Signer { name, ..Signer::nameless(key) }, "{text:?}");
            }
        }
        for text in ["alice=", "=alice.pub", ""] {
            assert!(
                parse_signer(text).is_err_and(|error| error.to_string().contains("NAME=KEY")),
                "{text:?}"
            );
        }
    }
}
