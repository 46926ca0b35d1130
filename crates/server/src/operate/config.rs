//! What the operator can set. Flag beats environment beats file beats default; unknown keys are errors.

pub(crate) mod source;
pub(crate) mod tables;
pub(crate) mod webhook;

use std::{net::IpAddr, net::Ipv4Addr, net::SocketAddr, path::Path, path::PathBuf, time::Duration};

use clap::{Args, builder::BoolishValueParser};
use countersign_forge::file_server::{FileServerRule, FileServers};
use countersign_forge::{fetch::Timeouts, forges::Forges, guard::AllowFetch, guard::Guard};
use countersign_store::{Author, StorageLimits};
use serde::Deserialize;

use crate::events::webhooks::settings::Webhook;
use crate::follow::{mirror::MirrorSettings, mirror::exchange::OriginAddress, witness::WitnessSettings};
use crate::limits::Rates;
use crate::limits::connections::{ConnectionLimits, ProxyNet, TrustedProxies};
pub use crate::operate::config::source::{ConfigError, ConfigSource, explain_unknown};
use crate::operate::config::tables::{
    CommitsTable, ConnectionsTable, DatabaseTable, FetchTable, ForgeTable, LogTable, MirrorTable,
    RateLimitsTable, TlsTable, explain_forge, parse_address, read_address, read_text, read_texts,
};
pub use crate::operate::config::tables::{
    GivenDatabase, LogFormat, LogLevel, LogSettings, NodeSettings, SecurityContact, ServiceLimits,
};
use crate::operate::config::webhook::WebhookTable;
use crate::operate::tls::TlsFiles;

const DEFAULT_DATA_DIR: &str = "countersign-data";
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Declares each setting once: its flag and variable for clap, its key in the file for serde. Two structs have the
/// settings of every server, because a mirror and a witness do not take the other flags.
macro_rules! settings {
    (
        every server { $($(#[$common_about:meta])* $common:ident: $common_type:ty,)+ }
        serve { $($(#[$serve_about:meta])* $serve:ident: $serve_type:ty,)+ }
        file { $($(#[$table_about:meta])* $table:ident: $table_type:ty,)+ }
    ) => {
        /// The flags of a server that follows another one. It derives `Deserialize` so that the attributes mean something.
        #[derive(Debug, Clone, Default, Args, Deserialize)]
        #[serde(default)]
        pub struct CopyFlags { $($(#[$common_about])* pub $common: Option<$common_type>,)+ }

        /// What was set: by the flags and the environment of `countersign serve`, or by the configuration file.
        #[derive(Debug, Clone, Default, Args, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct GivenSettings {
            $($(#[$common_about])* pub $common: Option<$common_type>,)+
            $($(#[$serve_about])* pub $serve: Option<$serve_type>,)+
            $($(#[$table_about])* #[arg(skip)] pub $table: $table_type,)+
        }

        impl From<CopyFlags> for GivenSettings {
            fn from(flags: CopyFlags) -> Self {
                Self { $($common: flags.$common,)+ ..Self::default() }
            }
        }

        impl GivenSettings {
            /// Takes from the file what flags and environment leave open.
            pub fn or(self, file: Self) -> Self {
                Self {
                    $($common: self.$common.or(file.$common),)+
                    $($serve: self.$serve.or(file.$serve),)+
                    $($table: file.$table,)+
                }
            }
        }
    };
}

settings! {
    every server {
        /// Address and port to listen on; port 0 picks a free one [default: 127.0.0.1:3000]
        #[arg(
            long,
            value_name = "ADDR:PORT",
            env = "COUNTERSIGN_LISTEN",
            hide_env_values = true,
            value_parser = parse_address
        )]
        #[serde(deserialize_with = "read_address")]
        listen: SocketAddr,

        /// Directory for all state; created if missing [default: ./countersign-data]
        #[arg(long, value_name = "DIR", env = "COUNTERSIGN_DATA_DIR", hide_env_values = true)]
        data_dir: PathBuf,

        /// Configuration file (TOML)
        #[arg(long, value_name = "FILE", env = "COUNTERSIGN_CONFIG", hide_env_values = true)]
        #[serde(skip)]
        config: PathBuf,

        /// Believe the client addresses that this proxy writes into X-Forwarded-For (repeatable)
        #[arg(
            long = "trusted-proxy",
            alias = "trusted-proxies",
            value_name = "ADDR|CIDR",
            env = "COUNTERSIGN_TRUSTED_PROXIES",
            hide_env_values = true,
            value_delimiter = ','
        )]
        #[serde(deserialize_with = "read_texts")]
        trusted_proxies: Vec<ProxyNet>,

        /// Certificate file (PEM), to serve https without a proxy; SIGHUP reads it again
        #[arg(long, value_name = "FILE", env = "COUNTERSIGN_TLS_CERT", hide_env_values = true)]
        #[serde(skip)]
        tls_cert: PathBuf,

        /// Key file (PEM) of the certificate
        #[arg(long, value_name = "FILE", env = "COUNTERSIGN_TLS_KEY", hide_env_values = true)]
        #[serde(skip)]
        tls_key: PathBuf,

        /// Address and port for metrics and health checks; for your own network only [default: none]
        #[arg(
            long,
            value_name = "ADDR:PORT",
            env = "COUNTERSIGN_METRICS_LISTEN",
            hide_env_values = true,
            value_parser = parse_address
        )]
        #[serde(deserialize_with = "read_address")]
        metrics_listen: SocketAddr,

        /// Format of log lines: text or json [default: text]
        #[arg(long, value_name = "FORMAT", env = "COUNTERSIGN_LOG_FORMAT", hide_env_values = true)]
        #[serde(deserialize_with = "read_text")]
        log_format: LogFormat,

        /// How much to log: error, warn, info or debug [default: info]
        #[arg(long, value_name = "LEVEL", env = "COUNTERSIGN_LOG_LEVEL", hide_env_values = true)]
        #[serde(deserialize_with = "read_text")]
        log_level: LogLevel,

        /// Read configuration, certificates, data directory and token files, say what the server would do or what is wrong,
        /// and exit. Changes nothing
        #[arg(long, action = clap::ArgAction::SetTrue)]
        #[serde(skip)]
        check: bool,
    }
    serve {
        /// Fetch from loopback, accept every file server there, and set no rate limits and no budgets; only for your own
        /// machine
        #[arg(
            long,
            env = "COUNTERSIGN_DEV", hide_env_values = true,
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "true",
            value_parser = BoolishValueParser::new(),
            value_name = "BOOL",
            hide_possible_values = true
        )]
        dev: bool,

        /// Fetch from this host or network (CIDR) although its address is not public: on this port, on
        /// all ports with `:*`, or on 80 and 443 without a port (repeatable)
        #[arg(
            long,
            value_name = "HOST[:PORT]",
            env = "COUNTERSIGN_ALLOW_FETCH",
            hide_env_values = true,
            value_delimiter = ','
        )]
        #[serde(deserialize_with = "read_texts")]
        allow_fetch: Vec<AllowFetch>,

        /// Let projects on this file server register; `*` for all (repeatable)
        #[arg(
            long,
            value_name = "HOST[:PORT]",
            env = "COUNTERSIGN_FILE_SERVER",
            hide_env_values = true,
            value_delimiter = ','
        )]
        #[serde(deserialize_with = "read_texts")]
        file_server: Vec<FileServerRule>,

        /// Be one of several nodes that share this PostgreSQL database, as in
        /// postgres://USER@HOST/NAME. With a password in it, set COUNTERSIGN_DATABASE instead, or
        /// `url_file` in `[database]` (docs/cluster.md) [env: COUNTERSIGN_DATABASE=] [default: none]
        #[arg(long = "database", value_name = "URL")]
        #[serde(skip)]
        database_url: GivenDatabase,

        /// Follow this server instead of accepting changes.
        #[arg(skip)]
        #[serde(skip)]
        mirror_of: OriginAddress,

        #[arg(skip)]
        #[serde(skip)]
        witness: WitnessSettings,
    }
    file {
        forge: Vec<ForgeTable>,
        limits: ServiceLimits,
        rate_limits: RateLimitsTable,
        connections: ConnectionsTable,
        tls: TlsTable,
        fetch: FetchTable,
        commits: CommitsTable,
        webhook: Vec<WebhookTable>,
        database: DatabaseTable,
        mirror: MirrorTable,
        log: Option<LogTable>,
        #[serde(deserialize_with = "read_text")]
        security_contact: Option<SecurityContact>,
        /// The text of the file, for messages.
        #[serde(skip)]
        source: Option<ConfigSource>,
    }
}

impl GivenSettings {
    /// Reads the configuration file, if there is one.
    pub fn read(path: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = path else { return Ok(Self::default()) };
        let unread = || ConfigError::new(format!("cannot read the configuration file {}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| unread().because(error))?;
        let source = ConfigSource { path: path.to_owned(), text };
        let read = toml::from_str(&source.text).map_err(|error| source.explain(&error))?;
        Ok(Self { source: Some(source), ..read })
    }

    /// The data directory, for commands that need nothing else.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| DEFAULT_DATA_DIR.into())
    }

    /// The database, for commands that need nothing else.
    pub fn database(&self, given: Option<GivenDatabase>) -> Result<Option<NodeSettings>, ConfigError> {
        self.database.clone().resolve(given)
    }

    pub fn author(&self) -> Result<Author, ConfigError> {
        self.commits.clone().resolve()
    }

    /// Reads the format of log lines from a file that may be wrong elsewhere.
    pub fn find_log_format(path: &Path) -> Option<LogFormat> {
        let table: toml::Table = std::fs::read_to_string(path).ok()?.parse().ok()?;
        table.get("log_format")?.as_str()?.parse().ok()
    }
}

/// What a server runs with.
#[derive(Debug, Clone)]
pub struct Settings {
    pub listen: SocketAddr,
    /// The address at which metrics are served, if they are.
    pub metrics_listen: Option<SocketAddr>,
    pub tls: Option<TlsFiles>,
    pub connections: ConnectionLimits,
    /// The rate limits, or `None` if there are none.
    pub rates: Option<Rates>,
    pub trusted_proxies: TrustedProxies,
    pub data_dir: PathBuf,
    pub dev: bool,
    pub guard: Guard,
    pub forges: Forges,
    pub timeouts: Timeouts,
    /// How long fetching one asset of a release can take.
    pub asset_timeout: Duration,
    pub limits: ServiceLimits,
    /// The budgets for storage, or `None` if only the disk limits it.
    pub storage: Option<StorageLimits>,
    /// Author and committer of every commit (D33).
    pub author: Author,
    pub webhooks: Vec<Webhook>,
    /// The settings of a node, or `None` for a server on its own.
    pub node: Option<NodeSettings>,
    /// The settings of a mirror, or `None` for a server that accepts changes.
    pub mirror: Option<MirrorSettings>,
    /// The settings of the log, or `None` without a log. A mirror has no log of its own.
    pub log: Option<LogSettings>,
    /// The settings of a mirror that is a witness as well.
    pub witness: Option<WitnessSettings>,
    /// Whom people tell about a weakness of this server.
    pub security_contact: Option<SecurityContact>,
}

impl Settings {
    pub fn resolve(mut given: GivenSettings) -> Result<Self, ConfigError> {
        let source = given.source.take();
        Self::combine(given).map_err(|error| match source {
            Some(source) => source.locate(error),
            None => error,
        })
    }

    fn combine(given: GivenSettings) -> Result<Self, ConfigError> {
        // A witness that polls needs no address that others know.
        let is_polling = given.witness.as_ref().is_some_and(|witness| witness.is_polling);
        let listen = given.listen.unwrap_or(if is_polling { ANY_PORT } else { DEFAULT_LISTEN });
        let (data_dir, dev) = (given.data_dir(), given.dev.unwrap_or(false));
        if dev && !listen.ip().is_loopback() {
            let text = format!(
                "--dev is only for your own machine, and {listen} is not a loopback address. Leave out --dev, or listen on 127.0.0.1"
            );
            return Err(ConfigError::new(text).at("", "dev", None));
        }
        let file_servers = FileServers { rules: given.file_server.unwrap_or_default(), loopback: dev };
        let forges = given.forge.into_iter().map(ForgeTable::read).collect::<Result<_, _>>()?;
        let forges = Forges::new(forges).map_err(explain_forge)?;
        let mut allow = given.allow_fetch.unwrap_or_default();
        allow.extend(forges.exceptions());
        let node = given.database.resolve(given.database_url)?;
        let mirror = given.mirror.resolve(given.mirror_of)?;
        if node.is_some() && mirror.is_some() {
            let reason = "a mirror follows its origin, and cannot be a node: leave the table out";
            return Err(ConfigError::value("database", reason));
        }
        let log = given.log.filter(|_| mirror.is_none()).map(LogTable::resolve).transpose()?;
        let tls = given.tls.resolve(given.tls_cert, given.tls_key)?;
        let (connections, rates) = (given.connections.resolve(dev)?, given.rate_limits.resolve(dev)?);
        let asset_timeout = Duration::from_secs(given.fetch.asset_timeout_seconds);
        let (timeouts, limits) = (given.fetch.resolve()?, given.limits.checked()?);
        Ok(Self {
            listen,
            metrics_listen: given.metrics_listen,
            tls,
            connections,
            rates,
            trusted_proxies: TrustedProxies(given.trusted_proxies.unwrap_or_default()),
            data_dir,
            dev,
            guard: Guard { allow, file_servers, loopback: dev },
            forges,
            timeouts,
            asset_timeout,
            // Development mode is for one's own machine (D37).
            storage: (!dev).then(|| limits.storage()),
            limits,
            author: given.commits.resolve()?,
            webhooks: webhook::resolve(given.webhook)?,
            node,
            mirror,
            log,
            witness: given.witness,
            security_contact: given.security_contact,
        })
    }
}
