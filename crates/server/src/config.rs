//! What the operator can set. Flag beats environment beats file beats default; unknown keys are errors.

mod database;
mod error;
mod log_lines;
mod mirror;
mod numbers;
mod service;
mod source;
mod transparency_log;
mod webhook;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use countersign_core::values::bounds::{INDEX_BYTES, INDEX_FILES, SIGNERS_FILE_BYTES};
use countersign_forge::{
    fetch::Timeouts,
    file_server::{FileServerRule, FileServers},
    forges::{ForgeConfig, ForgeKind, Forges, Token},
    guard::{AllowFetch, Guard},
};
use countersign_store::audit::replay::{MAX_FETCH, MIN_EXPIRY};
use serde::Deserialize;

pub use self::database::{GivenDatabase, NodeSettings};
pub use self::error::{ConfigError, WebhookProblem};
pub use self::log_lines::{LogFormat, LogLevel, UnknownName};
pub use self::source::{ConfigSource, explain_unknown};
pub use self::transparency_log::LogSettings;
use self::{
    database::DatabaseTable,
    mirror::MirrorTable,
    numbers::table,
    service::{ConnectionsTable, RateLimitsTable, TlsTable},
    transparency_log::LogTable,
    webhook::WebhookTable,
};
use crate::{
    connections::ConnectionLimits,
    limits::{Rates, caps::Caps},
    mirror::{MirrorSettings, address::OriginAddress},
    proxies::{ProxyNet, TrustedProxies},
    tls::TlsFiles,
    webhooks::settings::Webhook,
    witness::WitnessSettings,
};
use countersign_store::{Author, StorageLimits};

const DEFAULT_DATA_DIR: &str = "countersign-data";
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// A checksums file has at most two lines for each file, both shorter than its entry in an index.
const MAX_CHECKSUMS_FILE_BYTES: u64 = 2 * INDEX_BYTES as u64;
/// Signatures take most of the room in a request, and need far less than this.
const MAX_REQUEST_BODY_BYTES: u64 = 4 << 20;
const DAY: u64 = 24 * 60 * 60;
// One day is the least that `limits.registration_expiry_days` accepts.
const _: () = assert!(DAY >= MIN_EXPIRY.as_secs(), "`fsck` accepts every expiry that can be set");

#[derive(Debug, Clone)]
pub struct Settings {
    pub listen: SocketAddr,
    /// Where to serve metrics, if anywhere.
    pub metrics_listen: Option<SocketAddr>,
    pub tls: Option<TlsFiles>,
    pub connections: ConnectionLimits,
    /// `None`: no rate limits.
    pub rates: Option<Rates>,
    pub trusted_proxies: TrustedProxies,
    pub data_dir: PathBuf,
    pub dev: bool,
    pub guard: Guard,
    pub forges: Forges,
    pub timeouts: Timeouts,
    /// For one asset of a release.
    pub asset_timeout: Duration,
    pub limits: ServiceLimits,
    /// Author and committer of every commit (D33).
    pub author: Author,
    pub webhooks: Vec<Webhook>,
    /// `None`: this server is on its own.
    pub node: Option<NodeSettings>,
    /// `None`: a server that accepts changes.
    pub mirror: Option<MirrorSettings>,
    /// `None`: no log. A mirror has none of its own.
    pub log: Option<LogSettings>,
    /// For a mirror that is a witness as well.
    pub witness: Option<WitnessSettings>,
}

#[derive(Debug, Clone)]
pub struct ServiceLimits {
    pub request_body_bytes: usize,
    pub signers_file_bytes: u64,
    pub checksums_file_bytes: u64,
    pub checksums_files: usize,
    /// The number of files in a release, and the size of each.
    pub assets: usize,
    pub asset_bytes: u64,
    pub collecting_per_project: usize,
    pub registration_expiry: Duration,
    /// Never more than half of all connections.
    pub event_listeners: usize,
    pub caps: Caps,
    /// `None`: no limit but the disk.
    pub storage: Option<StorageLimits>,
}

/// What flags and environment say; `None` leaves it to the configuration file.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub listen: Option<SocketAddr>,
    pub data_dir: Option<PathBuf>,
    pub dev: Option<bool>,
    pub allow_fetch: Option<Vec<AllowFetch>>,
    pub file_servers: Option<Vec<FileServerRule>>,
    pub trusted_proxies: Option<Vec<ProxyNet>>,
    pub metrics_listen: Option<SocketAddr>,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub database: Option<GivenDatabase>,
    /// Follow this server instead of accepting changes.
    pub mirror_of: Option<OriginAddress>,
    pub witness: Option<WitnessSettings>,
}

/// The configuration file. Its keys have the names of the flags; only the file has tables.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    listen: Option<Text<SocketAddr>>,
    data_dir: Option<PathBuf>,
    dev: Option<bool>,
    allow_fetch: Option<Vec<Text<AllowFetch>>>,
    file_server: Option<Vec<Text<FileServerRule>>>,
    trusted_proxies: Option<Vec<Text<ProxyNet>>>,
    metrics_listen: Option<Text<SocketAddr>>,
    log_format: Option<Text<LogFormat>>,
    log_level: Option<Text<LogLevel>>,
    #[serde(default)]
    forge: Vec<ForgeTable>,
    #[serde(default)]
    limits: LimitsTable,
    #[serde(default)]
    rate_limits: RateLimitsTable,
    #[serde(default)]
    connections: ConnectionsTable,
    #[serde(default)]
    tls: TlsTable,
    #[serde(default)]
    fetch: FetchTable,
    #[serde(default)]
    commits: CommitsTable,
    #[serde(default)]
    webhook: Vec<WebhookTable>,
    #[serde(default)]
    database: DatabaseTable,
    #[serde(default)]
    mirror: MirrorTable,
    log: Option<LogTable>,
    /// For messages.
    #[serde(skip)]
    source: Option<ConfigSource>,
}

/// A code forge beside the well-known ones, or a well-known one with a token.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForgeTable {
    host: String,
    kind: Text<ForgeKind>,
    api: Option<String>,
    raw: Option<String>,
    token_file: Option<PathBuf>,
}

table! {
    struct LimitsTable in limits {
        request_body_bytes: usize = 1 << 20,
        signers_file_bytes: u64 = SIGNERS_FILE_BYTES as u64,
        checksums_file_bytes: u64 = MAX_CHECKSUMS_FILE_BYTES,
        checksums_files: usize = 16,
        assets: usize = 1_000,
        asset_bytes: u64 = 2 << 30,
        collecting_per_project: usize = 10_000,
        registration_expiry_days: u64 = 14,
        event_listeners: usize = 4_096,
        registrations_per_host: usize = 10_000,
        registrations_per_owner: usize = 100,
        superseded_per_project: usize = 100,
        rotations_per_day: usize = 100,
        project_bytes_per_day: u64 = 256 << 20,
        project_reserved_bytes_per_day: u64 = 16 << 20,
        owner_bytes_per_day: u64 = 512 << 20,
        host_bytes_per_day: u64 = 2 << 30,
        total_bytes_per_day: u64 = 4 << 30,
    }
}

table! {
    struct FetchTable in fetch {
        connect_timeout_seconds: u64 = Timeouts::default().connect.as_secs(),
        idle_timeout_seconds: u64 = Timeouts::default().idle.as_secs(),
        total_timeout_seconds: u64 = Timeouts::default().total.as_secs(),
        asset_timeout_seconds: u64 = 60 * 60,
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommitsTable {
    name: Option<String>,
    email: Option<String>,
}

impl ConfigFile {
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let source = ConfigSource { path: path.to_owned(), text };
        let read = toml::from_str(&source.text).map_err(|error| source.explain(&error))?;
        Ok(Self { source: Some(source), ..read })
    }

    /// Its text, if it was read from a file.
    pub fn source(&self) -> Option<ConfigSource> {
        self.source.clone()
    }

    /// Only the data directory, for commands that need nothing else.
    pub fn data_dir(&self, flag: Option<PathBuf>) -> PathBuf {
        data_dir(flag, self.data_dir.clone())
    }

    /// Only the database, for commands that need nothing else.
    pub fn database(&self, given: Option<GivenDatabase>) -> Result<Option<NodeSettings>, ConfigError> {
        self.database.clone().resolve(given)
    }

    pub fn author(&self) -> Result<Author, ConfigError> {
        self.commits.clone().resolve()
    }

    /// Of a file that may be wrong elsewhere.
    pub fn find_log_format(path: &Path) -> LogFormat {
        #[derive(Deserialize)]
        struct LogSetting {
            log_format: Text<LogFormat>,
        }
        let text = std::fs::read_to_string(path).unwrap_or_default();
        toml::from_str(&text).map(|found: LogSetting| found.log_format.0).unwrap_or_default()
    }

    pub fn log_format(&self) -> LogFormat {
        self.log_format.as_ref().map(|text| text.0).unwrap_or_default()
    }

    pub fn log_level(&self) -> LogLevel {
        self.log_level.as_ref().map(|text| text.0).unwrap_or_default()
    }
}

impl Settings {
    pub fn resolve(overrides: Overrides, mut file: ConfigFile) -> Result<Self, ConfigError> {
        let source = file.source.take();
        Self::combine(overrides, file).map_err(|error| match source {
            Some(source) => source.locate(error),
            None => error,
        })
    }

    fn combine(overrides: Overrides, file: ConfigFile) -> Result<Self, ConfigError> {
        // A witness that polls needs no address that others know.
        let is_polling = overrides.witness.as_ref().is_some_and(|witness| witness.is_polling);
        let default_listen = if is_polling { ANY_PORT } else { DEFAULT_LISTEN };
        let listen = overrides.listen.or(file.listen.map(|text| text.0)).unwrap_or(default_listen);
        let dev = overrides.dev.or(file.dev).unwrap_or(false);
        if dev && !listen.ip().is_loopback() {
            return Err(ConfigError::DevInPublic(listen));
        }
        let rules = overrides.file_servers.unwrap_or_else(|| values(file.file_server));
        let file_servers = FileServers { rules, loopback: dev };
        let forges = file.forge.into_iter().map(ForgeTable::read).collect::<Result<_, _>>()?;
        let forges = Forges::new(forges)?;
        let mut allow = overrides.allow_fetch.unwrap_or_else(|| values(file.allow_fetch));
        allow.extend(forges.exceptions());
        let node = file.database.resolve(overrides.database)?;
        let mirror = file.mirror.resolve(overrides.mirror_of)?;
        if node.is_some() && mirror.is_some() {
            let reason = "a mirror follows its origin, and cannot be a node: leave the table out".to_owned();
            return Err(ConfigError::Value { key: "database", reason });
        }
        let log = file.log.filter(|_| mirror.is_none()).map(LogTable::resolve).transpose()?;
        let proxies = overrides.trusted_proxies.unwrap_or_else(|| values(file.trusted_proxies));
        Ok(Self {
            listen,
            metrics_listen: overrides.metrics_listen.or(file.metrics_listen.map(|text| text.0)),
            tls: file.tls.resolve(overrides.tls_cert, overrides.tls_key)?,
            connections: file.connections.resolve(dev)?,
            rates: file.rate_limits.resolve(dev)?,
            trusted_proxies: TrustedProxies(proxies),
            data_dir: data_dir(overrides.data_dir, file.data_dir),
            dev,
            guard: Guard { allow, file_servers, loopback: dev },
            forges,
            asset_timeout: Duration::from_secs(file.fetch.asset_timeout_seconds),
            timeouts: file.fetch.resolve()?,
            limits: file.limits.resolve(dev)?,
            author: file.commits.resolve()?,
            webhooks: webhook::resolve(file.webhook)?,
            node,
            mirror,
            log,
            witness: overrides.witness,
        })
    }
}

fn data_dir(flag: Option<PathBuf>, file: Option<PathBuf>) -> PathBuf {
    flag.or(file).unwrap_or_else(|| DEFAULT_DATA_DIR.into())
}

fn values<T>(list: Option<Vec<Text<T>>>) -> Vec<T> {
    list.unwrap_or_default().into_iter().map(|text| text.0).collect()
}

impl ForgeTable {
    /// Reads the token. It has its own file so that the operator can show the configuration to others.
    fn read(self) -> Result<ForgeConfig, ConfigError> {
        let token = self.token_file.map(read_token).transpose()?;
        Ok(ForgeConfig { host: self.host, kind: self.kind.0, api: self.api, raw: self.raw, token })
    }
}

fn read_token(path: PathBuf) -> Result<Token, ConfigError> {
    match std::fs::read_to_string(&path) {
        Ok(text) => Token::new(text.trim().to_owned()).map_err(|source| ConfigError::Token { path, source }),
        Err(source) => Err(ConfigError::TokenFile { path, source }),
    }
}

impl LimitsTable {
    fn resolve(self, dev: bool) -> Result<ServiceLimits, ConfigError> {
        self.check()?;
        // A larger value would let in content that the server cannot use (docs/bounds.md).
        for (key, value, most, why) in [
            (
                "limits.signers_file_bytes",
                self.signers_file_bytes,
                SIGNERS_FILE_BYTES as u64,
                "no client accepts a larger signers file",
            ),
            (
                "limits.checksums_file_bytes",
                self.checksums_file_bytes,
                MAX_CHECKSUMS_FILE_BYTES,
                "an index has no room for what a larger one lists",
            ),
            ("limits.assets", self.assets as u64, INDEX_FILES as u64, "more do not fit into an index"),
            (
                "limits.request_body_bytes",
                self.request_body_bytes as u64,
                MAX_REQUEST_BODY_BYTES,
                "no request needs more, and each body is held in memory",
            ),
        ] {
            if value > most {
                return Err(ConfigError::Value { key, reason: format!("at most {most}: {why}") });
            }
        }
        let seconds = self.registration_expiry_days.checked_mul(DAY).ok_or_else(|| ConfigError::Value {
            key: "limits.registration_expiry_days",
            reason: "too many days".to_owned(),
        })?;
        let storage = StorageLimits {
            project: self.project_bytes_per_day,
            project_reserved: self.project_reserved_bytes_per_day,
            owner: self.owner_bytes_per_day,
            host: self.host_bytes_per_day,
            total: self.total_bytes_per_day,
        };
        Ok(ServiceLimits {
            request_body_bytes: self.request_body_bytes,
            signers_file_bytes: self.signers_file_bytes,
            checksums_file_bytes: self.checksums_file_bytes,
            checksums_files: self.checksums_files,
            assets: self.assets,
            asset_bytes: self.asset_bytes,
            collecting_per_project: self.collecting_per_project,
            registration_expiry: Duration::from_secs(seconds),
            event_listeners: self.event_listeners,
            caps: Caps {
                registrations_per_host: self.registrations_per_host,
                registrations_per_owner: self.registrations_per_owner,
                superseded_per_project: self.superseded_per_project,
                rotations_per_day: self.rotations_per_day,
            },
            // Development mode is for one's own machine (D37).
            storage: (!dev).then_some(storage),
        })
    }
}

impl FetchTable {
    fn resolve(self) -> Result<Timeouts, ConfigError> {
        self.check()?;
        if self.total_timeout_seconds > MAX_FETCH.as_secs() {
            let reason =
                format!("must be at most {}, the longest fetch that `fsck` expects", MAX_FETCH.as_secs());
            return Err(ConfigError::Value { key: "fetch.total_timeout_seconds", reason });
        }
        Ok(Timeouts {
            connect: Duration::from_secs(self.connect_timeout_seconds),
            idle: Duration::from_secs(self.idle_timeout_seconds),
            total: Duration::from_secs(self.total_timeout_seconds),
            pace: Timeouts::default().pace,
        })
    }
}

impl CommitsTable {
    fn resolve(self) -> Result<Author, ConfigError> {
        let name = self.name.as_deref().unwrap_or("Countersign");
        let email = self.email.as_deref().unwrap_or("countersign@localhost");
        Author::new(name, email)
            .map_err(|error| ConfigError::Value { key: "commits", reason: error.to_string() })
    }
}

/// A value that is a string in the file.
#[derive(Debug, Clone)]
struct Text<T>(T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}
