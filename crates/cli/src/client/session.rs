//! What every client command begins with: the options, the configuration, and the servers and keys that these name.

use std::{cell::RefCell, path::PathBuf};

use countersign_core::values::{key::PublicKey, path::RepoPath, path::is_this_machine, wire};
use tokio::runtime::{Builder, Runtime};

use crate::settings::client_config::{ClientConfig, ClientConfigFile, KnownServer};
use crate::settings::config_dir::ConfigDir;
use crate::words::{error::CliError, output::Output};
use crate::{args::GlobalArgs, client::ServerClient, keys, keys::PublicHalf, keys::SigningKey};

/// Decides which servers may be asked without a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A signer knows the server. For a project on this machine, one on this machine is the default.
    Signer,
    /// A downloader may have met nothing of this before: the project's own signers file names its servers.
    Downloader,
}

/// The address of a server, and the server, if it may be asked.
pub(crate) type ClientAt = (String, Result<ServerClient, CliError>);

/// The address at which `countersign serve` listens by default.
pub(crate) const OWN_SERVER: &str = "http://127.0.0.1:3000";

#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) global: GlobalArgs,
    pub(crate) output: Output,
    pub(crate) config: ClientConfig,
    /// The server whose turn it is, after others failed.
    pub(crate) turn: Option<KnownServer>,
    /// What the project's own place has said in this command: which server is asked first, and all that it names.
    pub(crate) discovered: RefCell<Option<(String, Vec<String>)>>,
}

/// Runs what a client command does with a server.
pub(crate) fn ask<A, T>(
    global: GlobalArgs,
    output: Output,
    args: &A,
    command: impl AsyncFnOnce(&Session, &A) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let session = Session::open(global, output)?;
    client_runtime()?.block_on(command(&session, args))
}

impl Session {
    fn open(global: GlobalArgs, output: Output) -> Result<Self, CliError> {
        let config = match ClientConfigFile::locate() {
            Ok(file) => file.read()?,
            Err(error) if ConfigDir::chosen().is_some() => return Err(error),
            // Without a home there is no configuration; commands that remember something say so.
            Err(_) => ClientConfig::default(),
        };
        Ok(Self { global, output, config, turn: None, discovered: RefCell::default() })
    }

    /// The server that the user named for this command.
    pub(crate) fn named_server(&self) -> Option<&str> {
        self.global.server.as_deref()
    }

    /// The server that the user named for this command, or set for what the path is in.
    pub(crate) fn chosen_server(&self, path: Option<&RepoPath>) -> Option<KnownServer> {
        let named = self.named_server().map(KnownServer::named);
        named.or_else(|| self.turn.clone()).or_else(|| self.config.server_for(path))
    }

    /// Whether the user named a server for this command, or set one for this very project.
    pub(crate) fn names_server(&self, project: &RepoPath) -> bool {
        self.named_server().is_some() || self.config.is_server_set(project)
    }

    /// The server for what is in a project, or concerns none. For a stranger's project, one must be chosen.
    pub(crate) fn client_of(&self, path: Option<&RepoPath>) -> Result<ServerClient, CliError> {
        match (self.chosen_server(path), path) {
            (Some(server), _) => ServerClient::open(server, self.output),
            (None, Some(path)) if !path.host().is_some_and(is_this_machine) => Err(no_server(path)),
            (None, _) => ServerClient::new(OWN_SERVER, self.output),
        }
    }

    /// Every server that may have something for this user.
    pub(crate) fn clients(&self, reader: Reader) -> Result<Vec<ServerClient>, CliError> {
        self.each_client(reader)?.into_iter().map(|(_, client)| client).collect()
    }

    /// Every server that may have something for this user, with its address, though some cannot be asked.
    pub(crate) fn each_client(&self, reader: Reader) -> Result<Vec<ClientAt>, CliError> {
        let chosen = match self.named_server() {
            Some(address) => vec![KnownServer::named(address)],
            None => self.config.all_servers(),
        };
        if chosen.is_empty() {
            let hint = match reader {
                Reader::Signer => {
                    "ask the project which server collects its signatures. Set it once: `countersign config set server \
                     URL`, or pass --server URL"
                }
                Reader::Downloader => {
                    "give the URL that the file has on the project's site: its signers file names the server. Or pass \
                     --server URL, or set one for all projects: `countersign config set server URL`"
                }
            };
            return Err(CliError::usage("no server is set, and no project's server is known yet", hint));
        }
        let open = |server: KnownServer| (server.address.clone(), ServerClient::open(server, self.output));
        Ok(chosen.into_iter().map(open).collect())
    }

    /// The project's server from now on, if none was set before. It is a convenience: a directory that cannot be
    /// written to is no reason to fail.
    pub(crate) fn remember(&self, project: &RepoPath, client: &ServerClient) {
        if self.config.server_for(Some(project)).is_none() {
            self.keep_server(project, client, |file, server| match file.read()?.is_server_set(project) {
                true => Ok(()),
                false => file.set_server(project, server),
            });
        }
    }

    /// The project's server from now on, because the user registered it there (D245).
    pub(crate) fn remember_registered(&self, project: &RepoPath, client: &ServerClient) {
        let known = self.config.server_for(Some(project));
        if known.is_none_or(|known| !known.is_at(&client.address())) {
            self.keep_server(project, client, |file, server| file.set_server(project, server));
        }
    }

    fn keep_server(
        &self,
        project: &RepoPath,
        client: &ServerClient,
        keep: impl FnOnce(&ClientConfigFile, &KnownServer) -> Result<(), CliError>,
    ) {
        let server = KnownServer { address: client.address(), named_by: client.named_by.clone() };
        if let Err(error) = ClientConfigFile::locate().and_then(|file| keep(&file, &server)) {
            self.output.note(&format!("note: the server of {project} is not remembered: {error}"));
        }
    }

    /// The user's key, unlocked; asked for only by commands that sign. `listed`: the keys that could do what is asked.
    pub(crate) fn key(&self, path: Option<&RepoPath>, listed: &[PublicKey]) -> Result<SigningKey, CliError> {
        self.load_key(path, listed).map_err(|error| {
            let known = self.known_projects();
            let is_of = |known: &&RepoPath| path.is_some_and(|path| path == *known || path.is_inside(known));
            match known.iter().find(is_of) {
                Some(project) => error.naming("PROJECT", &self.name_of(project, Some(project))),
                None => error,
            }
        })
    }

    /// The user's key for a project whose first signers file is not in force: a lost key is replaced in that file.
    pub(crate) fn key_before_first(
        &self,
        path: Option<&RepoPath>,
        listed: &[PublicKey],
    ) -> Result<SigningKey, CliError> {
        self.load_key(path, listed).map_err(|error| error.naming("PROJECT", wire::SIGNERS_FILE))
    }

    fn load_key(&self, path: Option<&RepoPath>, listed: &[PublicKey]) -> Result<SigningKey, CliError> {
        let password_file = self.global.password_file.as_deref();
        match self.key_path(path) {
            Some(path) => SigningKey::load(&path, password_file, self.output),
            None => keys::find_default(listed, password_file, self.output),
        }
    }

    /// The keys that could do something at a path, as the server says: only a default key depends on them.
    pub(crate) async fn listed_keys(
        &self,
        client: &ServerClient,
        path: Option<&RepoPath>,
    ) -> Result<Vec<PublicKey>, CliError> {
        match path {
            Some(path) if self.key_path(Some(path)).is_none() => client.listed_keys(path).await,
            Some(_) | None => Ok(Vec::new()),
        }
    }

    /// The public half of the user's key, for which nothing has to be unlocked.
    pub(crate) fn public_key(&self) -> Result<PublicKey, CliError> {
        self.public_key_of(None, &[])
    }

    /// The public half of the user's key, if one is given or set.
    pub(crate) fn own_key(&self) -> Option<PublicKey> {
        self.key_path(None).and_then(|path| keys::read_public_half(&path).ok()).map(|half| half.key)
    }

    /// The public half of the key that [`Session::key`] would unlock.
    pub(crate) fn public_key_of(
        &self,
        path: Option<&RepoPath>,
        listed: &[PublicKey],
    ) -> Result<PublicKey, CliError> {
        self.public_half_of(path, listed).map(|half| half.key)
    }

    /// The public half of that key, with what its file or the agent says of its format.
    pub(crate) fn public_half_of(
        &self,
        path: Option<&RepoPath>,
        listed: &[PublicKey],
    ) -> Result<PublicHalf, CliError> {
        match self.key_path(path) {
            Some(path) => keys::read_public_half(&path),
            None => keys::find_default_public(listed, self.output),
        }
    }

    /// The file of the user's key, if one is given or set.
    pub(crate) fn key_path(&self, path: Option<&RepoPath>) -> Option<PathBuf> {
        self.global.key.clone().or_else(|| self.config.key_for(path).map(ClientConfigFile::resolve))
    }

    /// Shows what a question is about, and goes on only if the answer is yes.
    pub(crate) fn confirm(&self, about: &str, question: &str) -> Result<(), CliError> {
        self.output.show_question(about);
        self.output.confirm(question)
    }
}

/// The keys of one command, each unlocked once and only when it is needed.
pub(crate) struct KeyRing<'a> {
    pub(crate) session: &'a Session,
    keys: Vec<SigningKey>,
    /// The keys that could not be unlocked. The user is not asked again for each of many files.
    locked: Vec<PublicKey>,
}

impl<'a> KeyRing<'a> {
    pub(crate) fn new(session: &'a Session) -> Self {
        Self { session, keys: Vec::new(), locked: Vec::new() }
    }

    /// Refuses a key that could not be unlocked before.
    pub(crate) fn check(&self, you: &PublicKey) -> Result<(), CliError> {
        if self.locked.contains(you) {
            return Err(CliError::other(format!("{you} was not unlocked"), "unlock it, and run this again"));
        }
        Ok(())
    }

    /// The user's key for a path. `listed`: the keys that could do what is asked. `is_first`: whether it is a project's
    /// first signers file.
    pub(crate) fn unlock(
        &mut self,
        path: &RepoPath,
        listed: &[PublicKey],
        is_first: bool,
    ) -> Result<&SigningKey, CliError> {
        let you = self.session.public_key_of(Some(path), listed)?;
        self.check(&you)?;
        let known = self.keys.iter().position(|key| key.public_key() == you);
        let position = match known {
            Some(position) => position,
            None => {
                let key = match is_first {
                    true => self.session.key_before_first(Some(path), listed),
                    false => self.session.key(Some(path), listed),
                };
                self.keys.push(key.inspect_err(|_| self.locked.push(you))?);
                self.keys.len() - 1
            }
        };
        Ok(&self.keys[position])
    }
}

pub(crate) fn no_server(path: &RepoPath) -> CliError {
    let host = path.host().unwrap_or("HOST");
    CliError::usage(
        format!("no server is set for {path}"),
        format!(
            "ask the project which server collects its signatures. Pass it as --server URL, or set it once: \
             `countersign config set server URL --host {host}`"
        ),
    )
}

/// The runtime that server code runs in.
pub(crate) fn runtime() -> Result<Runtime, CliError> {
    Builder::new_multi_thread().enable_all().build().map_err(no_runtime)
}

/// The runtime of the client: it waits for one thing at a time.
pub(crate) fn client_runtime() -> Result<Runtime, CliError> {
    Builder::new_current_thread().enable_all().build().map_err(no_runtime)
}

fn no_runtime(error: std::io::Error) -> CliError {
    CliError::other("the asynchronous runtime could not be started", "check the limits of processes")
        .because(error)
}
