//! The client's configuration file: which server, key and policy, for all projects, for a host or for one project.

use std::{
    collections::BTreeMap, collections::BTreeSet, ops::Range, path::Path, path::PathBuf, time::Duration,
};

use clap::ValueEnum as _;
use countersign_core::values::{path::RepoPath, shown::shown_text, time::parse_span};
use countersign_server::operate::config::explain_unknown;
use serde::{Deserialize, Deserializer};
use toml_edit::{DocumentMut, Item, Table, value};

use crate::{settings::config_dir::ConfigDir, words::error::CliError};

const FILE: &str = "config.toml";
/// Stands beside a server that the user did not name.
const DISCOVERED: &str = "discovered";

/// A server, and whose word it is that it should be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownServer {
    pub(crate) address: String,
    /// The project whose signers file named it. `None` if the user did.
    pub(crate) named_by: Option<RepoPath>,
}

impl KnownServer {
    /// A server that the user named.
    pub(crate) fn named(address: &str) -> Self {
        Self { address: address.to_owned(), named_by: None }
    }

    pub(crate) fn is_at(&self, address: &str) -> bool {
        self.address.trim_end_matches('/') == address.trim_end_matches('/')
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientConfig {
    server: Option<String>,
    key: Option<PathBuf>,
    policy: Option<PathBuf>,
    #[serde(rename = "max-age")]
    max_age: Option<SetAge>,
    /// The settings by the host of a project.
    #[serde(default, deserialize_with = "read_entries")]
    servers: BTreeMap<String, ConfigEntry>,
    /// The settings by the identifier of a project.
    #[serde(default, deserialize_with = "read_entries")]
    projects: BTreeMap<String, ConfigEntry>,
}

/// What is set for a host or a project.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigEntry {
    server: Option<String>,
    /// The project's signers file named the server, not the user (D227).
    #[serde(default)]
    discovered: bool,
    key: Option<PathBuf>,
    policy: Option<PathBuf>,
    #[serde(rename = "max-age")]
    max_age: Option<SetAge>,
}

/// A server may stand alone, as in `"github.com" = "https://sign.example.org"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum EntryForm {
    Server(String),
    Table(ConfigEntry),
}

fn read_entries<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, ConfigEntry>, D::Error> {
    let entry = |form| match form {
        EntryForm::Server(server) => ConfigEntry { server: Some(server), ..ConfigEntry::default() },
        EntryForm::Table(entry) => entry,
    };
    let forms = BTreeMap::<String, EntryForm>::deserialize(deserializer)?;
    Ok(forms.into_iter().map(|(name, form)| (name, entry(form))).collect())
}

/// How old a proof can be, as in `12h`.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
struct SetAge {
    text: String,
    age: Duration,
}

impl TryFrom<String> for SetAge {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let age = parse_span(&text).ok_or("write a number and a unit, as in 90s, 30m, 2h or 1d")?;
        Ok(Self { text, age })
    }
}

impl ConfigEntry {
    /// The server of this entry, which is for `project` or for a host.
    fn known_server(&self, project: Option<&RepoPath>) -> Option<KnownServer> {
        let named_by = project.filter(|_| self.discovered).cloned();
        Some(KnownServer { address: self.server.clone()?, named_by })
    }

    /// Every setting of this entry.
    fn values(&self, scope: &SettingScope) -> Vec<ConfigValue> {
        let shown = |file: &PathBuf| file.display().to_string();
        let set = [
            (Setting::Server, self.server.clone()),
            (Setting::Key, self.key.as_ref().map(shown)),
            (Setting::Policy, self.policy.as_ref().map(shown)),
            (Setting::MaxAge, self.max_age.as_ref().map(|set| set.text.clone())),
        ];
        let value = |(setting, value): (_, Option<String>)| {
            Some(ConfigValue { scope: scope.clone(), setting, value: value? })
        };
        set.into_iter().filter_map(value).collect()
    }
}

/// What a setting is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingScope {
    All,
    Host(String),
    Project(RepoPath),
}

/// Shows the scope as the file spells it.
impl std::fmt::Display for SettingScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("all projects"),
            Self::Host(host) => f.write_str(&shown_text(host)),
            Self::Project(project) => write!(f, "{project}"),
        }
    }
}

/// What can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Setting {
    /// The signing server's address
    Server,
    /// Your private key, or a .pub file for an agent's key
    Key,
    /// A policy file: which log and witnesses must show that a release is the newest state
    Policy,
    /// How old a proof of the newest state can be, where your policy does not say it
    MaxAge,
}

impl Setting {
    pub(crate) fn name(self) -> String {
        self.to_possible_value().expect("every setting can be set").get_name().to_owned()
    }
}

/// One line of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigValue {
    pub(crate) scope: SettingScope,
    pub(crate) setting: Setting,
    pub(crate) value: String,
}

impl ClientConfig {
    fn parse(text: &str, path: &Path) -> Result<Self, CliError> {
        let config: Self = toml::from_str(text)
            .map_err(|error| unusable(path, &explain(text, error.message(), error.span())))?;
        for project in config.projects.keys() {
            let is_project = RepoPath::parse(project).is_ok_and(|path| path.names().next().is_some());
            if !is_project {
                let reason = format!(
                    "[projects.\"{}\"]: write a project as in https/github.com/443/acme/app",
                    shown_text(project)
                );
                return Err(unusable(path, &reason));
            }
        }
        Ok(config)
    }

    /// The server of the project that the path is in, else of its host, else of all projects.
    pub(crate) fn server_for(&self, path: Option<&RepoPath>) -> Option<KnownServer> {
        self.find(path, |entry| entry.known_server(path)).or_else(|| self.server_of_all())
    }

    /// Whether a server is set for this project itself, not for its host or for all.
    pub(crate) fn is_server_set(&self, project: &RepoPath) -> bool {
        self.projects.get(project.as_str()).is_some_and(|entry| entry.server.is_some())
    }

    fn server_of_all(&self) -> Option<KnownServer> {
        self.server.as_deref().map(KnownServer::named)
    }

    pub(crate) fn key_for(&self, path: Option<&RepoPath>) -> Option<&Path> {
        self.find(path, |entry| entry.key.as_deref()).or(self.key.as_deref())
    }

    /// The file with the user's own policy.
    pub(crate) fn policy_for(&self, path: &RepoPath) -> Option<&Path> {
        self.find(Some(path), |entry| entry.policy.as_deref()).or(self.policy.as_deref())
    }

    pub(crate) fn max_age_for(&self, path: &RepoPath) -> Option<Duration> {
        let own = self.find(Some(path), |entry| entry.max_age.as_ref());
        own.or(self.max_age.as_ref()).map(|set| set.age)
    }

    /// What is set for the project that the path is in, else for its host.
    fn find<'a, T>(
        &'a self,
        path: Option<&RepoPath>,
        get: impl Fn(&'a ConfigEntry) -> Option<T>,
    ) -> Option<T> {
        let path = path?;
        let projects = path.self_and_ancestors();
        let projects = projects.filter_map(|project| self.projects.get(project.as_str()));
        let host = path.host().and_then(|host| self.servers.get(host));
        projects.chain(host).find_map(get)
    }

    /// Every server that is named here, each once.
    pub(crate) fn all_servers(&self) -> Vec<KnownServer> {
        let of_hosts = self.servers.values().filter_map(|entry| entry.known_server(None));
        let of_projects = self
            .projects
            .iter()
            .filter_map(|(project, entry)| entry.known_server(RepoPath::parse(project).ok().as_ref()));
        let mut all: Vec<_> = self.server_of_all().into_iter().chain(of_hosts).chain(of_projects).collect();
        // What the user named anywhere is the user's word everywhere.
        all.sort_by_key(|server| server.named_by.is_some());
        let mut addresses = BTreeSet::new();
        all.retain(|server| addresses.insert(server.address.clone()));
        all
    }

    pub(crate) fn projects(&self) -> impl Iterator<Item = RepoPath> {
        self.projects.keys().filter_map(|project| RepoPath::parse(project).ok())
    }

    /// Lists everything that is set, in the order of the file's parts.
    pub(crate) fn values(&self) -> Vec<ConfigValue> {
        let Self { server, key, policy, max_age, servers, projects } = self.clone();
        let all = ConfigEntry { server, discovered: false, key, policy, max_age };
        let mut values = all.values(&SettingScope::All);
        for (host, entry) in servers {
            values.extend(entry.values(&SettingScope::Host(host)));
        }
        for (project, entry) in projects {
            if let Ok(project) = RepoPath::parse(&project) {
                values.extend(entry.values(&SettingScope::Project(project)));
            }
        }
        values
    }
}

/// What is wrong, and in which line, as one line.
fn explain(text: &str, message: &str, span: Option<Range<usize>>) -> String {
    let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default().trim();
    let reason = match explain_unknown(message) {
        Some(reason) => reason,
        None if message.contains("untagged enum") => {
            "this must be the address of a server, or a table of `server`, `key`, `policy` and `max-age`"
                .to_owned()
        }
        None => message.trim().replace('\n', ", "),
    };
    format!("line {}, `{}`: {reason}", number + 1, shown_text(line))
}

fn unusable(path: &Path, reason: &str) -> CliError {
    CliError::usage(
        format!("{} cannot be used", path.display()),
        "correct the file; `countersign config --help` shows what it can contain",
    )
    .because(reason.trim().to_owned())
}

/// The file itself.
#[derive(Debug, Clone)]
pub(crate) struct ClientConfigFile {
    dir: ConfigDir,
}

impl ClientConfigFile {
    pub(crate) fn locate() -> Result<Self, CliError> {
        Ok(Self { dir: ConfigDir::locate()? })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.file(FILE)
    }

    pub(crate) fn read(&self) -> Result<ClientConfig, CliError> {
        ClientConfig::parse(&self.text()?, &self.path())
    }

    fn text(&self) -> Result<String, CliError> {
        let bytes = self.dir.read(FILE)?.unwrap_or_default();
        String::from_utf8(bytes).map_err(|_| unusable(&self.path(), "it is not UTF-8"))
    }

    /// A path in the file is seen from the file's own directory; `~/` is the user's home.
    pub(crate) fn resolve(path: &Path) -> PathBuf {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        match (path.strip_prefix("~"), home, Self::locate()) {
            (_, _, Err(_)) => path.to_owned(),
            (Ok(rest), Some(home), _) => home.join(rest),
            (_, _, Ok(file)) => file.path().with_file_name(path),
        }
    }

    /// Sets a value, or removes it; the rest of the file stays as the user wrote it.
    pub(crate) fn set(
        &self,
        scope: &SettingScope,
        setting: Setting,
        to: Option<&str>,
    ) -> Result<(), CliError> {
        self.change(|document| {
            let table = match scope {
                SettingScope::All => document.as_table_mut(),
                SettingScope::Host(host) => entry_of(document, "servers", host),
                SettingScope::Project(project) => entry_of(document, "projects", project.as_str()),
            };
            match to {
                Some(text) => put(table, &setting.name(), text),
                None => drop(table.remove(&setting.name())),
            }
            if setting == Setting::Server {
                table.remove(DISCOVERED);
            }
        })
    }

    /// The server of a project, whatever was set before.
    pub(crate) fn set_server(&self, project: &RepoPath, server: &KnownServer) -> Result<(), CliError> {
        self.change(|document| {
            let table = entry_of(document, "projects", project.as_str());
            put(table, &Setting::Server.name(), &server.address);
            match server.named_by.is_some() {
                true => drop(table.insert(DISCOVERED, value(true))),
                false => drop(table.remove(DISCOVERED)),
            }
        })
    }

    fn change(&self, change: impl FnOnce(&mut DocumentMut)) -> Result<(), CliError> {
        let _lock = self.dir.lock()?;
        let before = self.text()?;
        let mut document: DocumentMut = before.parse().map_err(|error: toml_edit::TomlError| {
            unusable(&self.path(), &explain(&before, error.message(), error.span()))
        })?;
        change(&mut document);
        let after = document.to_string();
        // What is written must be what can be read.
        ClientConfig::parse(&after, &self.path())?;
        if after == before { Ok(()) } else { self.dir.write(FILE, after.as_bytes()) }
    }
}

/// Sets a value. The comments above and behind one that is there stay.
fn put(table: &mut Table, name: &str, text: &str) {
    match table.get_mut(name).and_then(Item::as_value_mut) {
        Some(present) => {
            let decor = present.decor().clone();
            *present = text.into();
            *present.decor_mut() = decor;
        }
        None => drop(table.insert(name, value(text))),
    }
}

/// The table of one host or project; a server that stands alone becomes a table.
fn entry_of<'a>(document: &'a mut DocumentMut, part: &str, name: &str) -> &'a mut Table {
    let part = document.entry(part).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let entry = make_table(part).entry(name).or_insert_with(|| Item::Table(Table::new()));
    if let Some(server) = entry.as_str().map(str::to_owned) {
        let mut table = Table::new();
        table.insert(&Setting::Server.name(), value(server));
        *entry = Item::Table(table);
    }
    make_table(entry)
}

/// The table that an item is or becomes.
fn make_table(item: &mut Item) -> &mut Table {
    if !item.is_table() {
        *item = Item::Table(std::mem::take(item).into_table().unwrap_or_default());
    }
    item.as_table_mut().expect("made a table above")
}
