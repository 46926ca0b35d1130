//! The tables of the configuration file that need no file of their own. Each key has its default here.

use std::{convert::Infallible, error::Error as StdError, fmt, fs, io::Read as _, net::SocketAddr};
use std::{path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use countersign_cluster::settings::{DatabaseSettings, UrlSource};
use countersign_core::log::policy::Policy;
use countersign_core::values::bounds::{INDEX_BYTES, INDEX_FILES, POLICY_BYTES, SIGNERS_FILE_BYTES};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{key::PublicKey, shown::shown_text};
use countersign_forge::forges::{ForgeKind, Token};
use countersign_forge::{fetch::Timeouts, forges::ForgeConfig, forges::ForgeConfigError};
use countersign_log::CheckpointSigner;
use countersign_store::audit::replay::{MAX_FETCH, MIN_EXPIRY};
use countersign_store::{Author, StorageLimits, budget::Rate};
use serde::{Deserialize, Deserializer, de::Error as _};
use tracing::level_filters::LevelFilter;

use crate::follow::mirror::{MirrorSettings, exchange::OriginAddress};
use crate::limits::{Rates, connections::ConnectionLimits};
use crate::operate::{config::source::ConfigError, config::source::MAX_SECONDS, tls::TlsFiles};

/// A checksums file has at most two lines for each file, both shorter than its entry in an index.
const MAX_CHECKSUMS_FILE_BYTES: u64 = 2 * INDEX_BYTES as u64;
/// Signatures take most of the room in a request, and need far less than this.
const MAX_REQUEST_BODY_BYTES: u64 = 4 << 20;
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: u64 = 24 * 60 * 60;
const A_DAY: &str = ", which is a day";
// One day is the least that `limits.registration_expiry_days` accepts.
const _: () = assert!(DAY >= MIN_EXPIRY.as_secs(), "`fsck` accepts every expiry that can be set");

/// A table whose keys have defaults, perhaps with a switch in front. `check` refuses zero, which would switch off what
/// a key limits.
macro_rules! table {
    (
        $(#[$about:meta])*
        struct $table:ident in $name:ident {
            $([$switch:ident = $on:literal])?
            $($(#[$key_about:meta])* $key:ident: $type:ty = $default:expr,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $table {
            $($switch: bool,)?
            $($(#[$key_about])* pub $key: $type,)+
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($switch: $on,)? $($key: $default,)+ }
            }
        }

        impl $table {
            fn check(&self) -> Result<(), ConfigError> {
                refuse_zero(&[$((concat!(stringify!($name), ".", stringify!($key)), self.$key == 0),)+])
            }
        }
    };
}

/// Refuses a key that is zero. Each key comes with a flag that says so.
pub(crate) fn refuse_zero(keys: &[(&'static str, bool)]) -> Result<(), ConfigError> {
    match keys.iter().find(|(_, is_zero)| *is_zero) {
        Some((key, _)) => Err(ConfigError::value(key, "must be more than 0")),
        None => Ok(()),
    }
}

/// Refuses a value above a bound, and says why there is that bound.
fn refuse_more(key: &'static str, value: u64, most: u64, why: &str) -> Result<(), ConfigError> {
    if value > most { Err(ConfigError::value(key, format!("at most {most}{why}"))) } else { Ok(()) }
}

table! {
    /// How much the server accepts and keeps.
    struct ServiceLimits in limits {
        request_body_bytes: usize = 1 << 20,
        signers_file_bytes: u64 = SIGNERS_FILE_BYTES as u64,
        checksums_file_bytes: u64 = MAX_CHECKSUMS_FILE_BYTES,
        checksums_files: usize = 16,
        /// The number of files in a release.
        assets: usize = 1_000,
        /// The size of each of them.
        asset_bytes: u64 = 2 << 30,
        collecting_per_project: usize = 10_000,
        registration_expiry_days: u64 = 14,
        /// Never more than half of all connections.
        event_listeners: usize = 4_096,
        /// First registrations that still wait for signatures, on one host.
        registrations_per_host: usize = 10_000,
        /// First registrations that still wait for signatures, below the first name on a host. On a forge that name is
        /// an owner.
        registrations_per_owner: usize = 100,
        /// Proposals of a project that another one replaced. Each admin and master has a share of them.
        superseded_per_project: usize = 100,
        /// New signers that took effect within 24 hours.
        rotations_per_day: usize = 100,
        project_bytes_per_day: u64 = 256 << 20,
        project_reserved_bytes_per_day: u64 = 16 << 20,
        owner_bytes_per_day: u64 = 512 << 20,
        host_bytes_per_day: u64 = 2 << 30,
        total_bytes_per_day: u64 = 4 << 30,
    }
}

impl ServiceLimits {
    pub(crate) fn checked(self) -> Result<Self, ConfigError> {
        self.check()?;
        let (body, signers) = (self.request_body_bytes as u64, self.signers_file_bytes);
        // A larger value would let in content that the server cannot use (docs/bounds.md).
        let (no_client, no_room) = (
            ": no client accepts a larger signers file", ": an index has no room for what a larger one lists",
        );
        let in_memory = ": no request needs more, and each body is held in memory";
        let no_fit = ": more do not fit into an index";
        refuse_more("limits.signers_file_bytes", signers, SIGNERS_FILE_BYTES as u64, no_client)?;
        let checksums = self.checksums_file_bytes;
        refuse_more("limits.checksums_file_bytes", checksums, MAX_CHECKSUMS_FILE_BYTES, no_room)?;
        refuse_more("limits.assets", self.assets as u64, INDEX_FILES as u64, no_fit)?;
        refuse_more("limits.request_body_bytes", body, MAX_REQUEST_BODY_BYTES, in_memory)?;
        if self.registration_expiry_days.checked_mul(DAY).is_none() {
            return Err(ConfigError::value("limits.registration_expiry_days", "too many days"));
        }
        Ok(self)
    }

    /// When a first registration that is not complete can be replaced.
    pub fn registration_expiry(&self) -> Duration {
        Duration::from_secs(self.registration_expiry_days.saturating_mul(DAY))
    }

    pub fn storage(&self) -> StorageLimits {
        StorageLimits {
            project: self.project_bytes_per_day,
            project_reserved: self.project_reserved_bytes_per_day,
            owner: self.owner_bytes_per_day,
            host: self.host_bytes_per_day,
            total: self.total_bytes_per_day,
        }
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

impl FetchTable {
    pub(crate) fn resolve(self) -> Result<Timeouts, ConfigError> {
        self.check()?;
        if self.total_timeout_seconds > MAX_FETCH.as_secs() {
            let reason =
                format!("must be at most {}, the longest fetch that `fsck` expects", MAX_FETCH.as_secs());
            return Err(ConfigError::value("fetch.total_timeout_seconds", reason));
        }
        Ok(Timeouts {
            connect: Duration::from_secs(self.connect_timeout_seconds),
            idle: Duration::from_secs(self.idle_timeout_seconds),
            total: Duration::from_secs(self.total_timeout_seconds),
            pace: Timeouts::default().pace,
        })
    }
}

table! {
    struct RateLimitsTable in rate_limits {
        [enabled = true]
        address_per_second: u32 = 1_000,
        address_burst: u32 = 5_000,
        authenticated_per_second: u32 = 200,
        authenticated_burst: u32 = 2_000,
        key_per_second: u32 = 50,
        key_burst: u32 = 1_000,
        fetches_per_minute: u32 = 60,
        fetches_burst: u32 = 300,
        address_fetches_per_minute: u32 = 240,
        address_fetches_burst: u32 = 1_000,
    }
}

impl RateLimitsTable {
    /// Returns the rate limits, or `None` if they are switched off. Development mode is for one's own machine and has
    /// none (D37).
    pub(crate) fn resolve(self, dev: bool) -> Result<Option<Rates>, ConfigError> {
        self.check()?;
        let rate = |count: u32, per, burst: u32| Rate::new(count.into(), per, burst.into());
        let rates = Rates {
            address: rate(self.address_per_second, SECOND, self.address_burst),
            address_authenticated: rate(self.authenticated_per_second, SECOND, self.authenticated_burst),
            key: rate(self.key_per_second, SECOND, self.key_burst),
            key_fetches: rate(self.fetches_per_minute, MINUTE, self.fetches_burst),
            address_fetches: rate(self.address_fetches_per_minute, MINUTE, self.address_fetches_burst),
        };
        Ok((self.enabled && !dev).then_some(rates))
    }
}

table! {
    struct ConnectionsTable in connections {
        max: usize = 8_192,
        per_address: usize = 2_048,
    }
}

impl ConnectionsTable {
    pub(crate) fn resolve(self, dev: bool) -> Result<ConnectionLimits, ConfigError> {
        self.check()?;
        Ok(ConnectionLimits { total: self.max, per_address: (!dev).then_some(self.per_address) })
    }
}

table! {
    struct MirrorTable in mirror {
        max_lag_seconds: u64 = 300,
    }
}

impl MirrorTable {
    pub(crate) fn resolve(
        self,
        origin: Option<OriginAddress>,
    ) -> Result<Option<MirrorSettings>, ConfigError> {
        self.check()?;
        refuse_more("mirror.max_lag_seconds", self.max_lag_seconds, MAX_SECONDS, A_DAY)?;
        let max_lag = Duration::from_secs(self.max_lag_seconds);
        Ok(origin.map(|origin| MirrorSettings { origin, max_lag }))
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsTable {
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
}

impl TlsTable {
    pub(crate) fn resolve(
        self,
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> Result<Option<TlsFiles>, ConfigError> {
        let (missing, given) = match (cert.or(self.cert_file), key.or(self.key_file)) {
            (Some(cert), Some(key)) => return Ok(Some(TlsFiles { cert, key })),
            (None, None) => return Ok(None),
            (Some(_), None) => ("key (--tls-key, or tls.key_file)", "cert_file"),
            (None, Some(_)) => ("certificate (--tls-cert, or tls.cert_file)", "key_file"),
        };
        let text =
            format!("TLS needs a certificate and its key: the {missing} is missing. Give both, or neither");
        Err(ConfigError::new(text).at("tls", given, None))
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitsTable {
    name: Option<String>,
    email: Option<String>,
}

impl CommitsTable {
    pub(crate) fn resolve(self) -> Result<Author, ConfigError> {
        let name = self.name.as_deref().unwrap_or("Countersign");
        let email = self.email.as_deref().unwrap_or("countersign@localhost");
        Author::new(name, email).map_err(|error| ConfigError::value("commits", error))
    }
}

/// A code forge beside the well-known ones, or a well-known one with a token.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForgeTable {
    host: String,
    kind: Text<ForgeKind>,
    api: Option<String>,
    raw: Option<String>,
    token_file: Option<PathBuf>,
}

impl ForgeTable {
    /// Reads the token. It has its own file so that the operator can show the configuration to others.
    pub(crate) fn read(self) -> Result<ForgeConfig, ConfigError> {
        let token = self.token_file.map(read_token).transpose()?;
        Ok(ForgeConfig { host: self.host, kind: self.kind.0, api: self.api, raw: self.raw, token })
    }
}

fn read_token(path: PathBuf) -> Result<Token, ConfigError> {
    let shown = path.display();
    let refuse = |text: String| ConfigError::new(text).at("forge", "token_file", path.to_str());
    let text = std::fs::read_to_string(&path)
        .map_err(|error| refuse(format!("cannot read the token file {shown}")).because(error))?;
    Token::new(text.trim().to_owned()).map_err(|error| refuse(format!("the token in {shown}: {error}")))
}

pub(crate) fn explain_forge(error: ForgeConfigError) -> ConfigError {
    let host = match &error {
        ForgeConfigError::Host { text, .. } => text,
        ForgeConfigError::Twice { host }
        | ForgeConfigError::Base { host, .. }
        | ForgeConfigError::KnownHost { host, .. } => host,
    };
    ConfigError::new(error.to_string()).at("forge", "host", Some(host))
}

/// A value that is a string in the file.
#[derive(Debug, Clone)]
pub(crate) struct Text<T>(pub(crate) T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

pub(crate) fn read_text<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    Ok(Some(Text::deserialize(deserializer)?.0))
}

pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "write an address and a port, as in 127.0.0.1:3000 or [::]:3000")
}

pub(crate) fn read_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_address(&text).map(Some).map_err(D::Error::custom)
}

pub(crate) fn read_texts<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    let texts: Vec<Text<T>> = Vec::deserialize(deserializer)?;
    Ok(Some(texts.into_iter().map(|text| text.0).collect()))
}

// The table `[database]`, for nodes that share one.

const DEFAULT_MAX_LAG: u64 = 10;
const MAX_NAME_BYTES: usize = 64;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseTable {
    url: Option<String>,
    url_file: Option<PathBuf>,
    node: Option<String>,
    max_lag_seconds: Option<u64>,
}

/// A server that is a node among others.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    pub database: DatabaseSettings,
    /// What the others know this node by; `None` for a name that its data directory keeps.
    pub name: Option<String>,
    /// A node that lags behind for longer is not ready.
    pub max_lag: Duration,
}

/// A database URL from elsewhere than the file. Where it came from matters: on the command line every user can read a
/// password.
#[derive(Debug, Clone)]
pub struct GivenDatabase {
    url: String,
    source: UrlSource,
}

impl GivenDatabase {
    pub fn from_environment() -> Option<Self> {
        let url = std::env::var("COUNTERSIGN_DATABASE").ok().filter(|url| !url.is_empty())?;
        Some(Self { url, source: UrlSource::Environment })
    }
}

/// The value of a flag.
impl FromStr for GivenDatabase {
    type Err = Infallible;

    fn from_str(url: &str) -> Result<Self, Infallible> {
        Ok(Self { url: url.to_owned(), source: UrlSource::CommandLine })
    }
}

impl DatabaseTable {
    pub(crate) fn resolve(self, given: Option<GivenDatabase>) -> Result<Option<NodeSettings>, ConfigError> {
        if self.url.is_some() && self.url_file.is_some() {
            return Err(ConfigError::value(
                "database.url", "there is `database.url_file` as well: leave one out",
            ));
        }
        let parse = |key, url: &str| {
            let parsed = DatabaseSettings::parse(url, UrlSource::File);
            parsed.map(Some).map_err(|error| ConfigError::value(key, error))
        };
        let database = match (given, self.url, self.url_file) {
            (Some(given), _, _) => {
                let parsed = DatabaseSettings::parse(&given.url, given.source);
                Some(parsed.map_err(|error| ConfigError::new(error.to_string()))?)
            }
            (None, Some(url), _) => parse("database.url", &url)?,
            (None, None, Some(path)) => {
                let text = std::fs::read_to_string(&path).map_err(|error| {
                    let text =
                        format!("cannot read the file {} that `database.url_file` names", path.display());
                    ConfigError::new(text).at("database", "url_file", None).because(error)
                })?;
                parse("database.url_file", text.trim())?
            }
            (None, None, None) => None,
        };
        let name = self.node.map(check_name).transpose();
        let name = name.map_err(|reason| ConfigError::value("database.node", reason))?;
        let seconds = self.max_lag_seconds.unwrap_or(DEFAULT_MAX_LAG);
        if !(1..=3_600).contains(&seconds) {
            return Err(ConfigError::value("database.max_lag_seconds", "must be from 1 to 3600"));
        }
        Ok(database.map(|database| NodeSettings { database, name, max_lag: Duration::from_secs(seconds) }))
    }
}

fn check_name(name: String) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(is_plain) {
        return Err(format!(
            "a name of a node has letters, digits, `-`, `_` and `.`, at most {MAX_NAME_BYTES} of them"
        ));
    }
    Ok(name)
}

// The format and the level of log lines.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Clone, Copy)]
pub struct LogLevel(pub LevelFilter);

impl Default for LogLevel {
    fn default() -> Self {
        Self(LevelFilter::INFO)
    }
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        find(text, [("text", Self::Text), ("json", Self::Json)])
    }
}

impl FromStr for LogLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [
            ("error", LevelFilter::ERROR),
            ("warn", LevelFilter::WARN),
            ("info", LevelFilter::INFO),
            ("debug", LevelFilter::DEBUG),
        ];
        find(text, known).map(Self)
    }
}

fn find<T: Copy, const N: usize>(text: &str, known: [(&str, T); N]) -> Result<T, String> {
    let found = known.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known = known.map(|(name, _)| name).join(", ");
        format!("`{text}` is not one of {known}")
    })
}

// Whom people tell about a weakness of this server (D248).

/// An address as `security.txt` has it: of a web page, a mailbox or a telephone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityContact(String);

impl SecurityContact {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SecurityContact {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_known = ["https://", "mailto:", "tel:"]
            .iter()
            .any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
        if !is_known || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let wanted = "`security_contact` begins with `https://`, `mailto:` or `tel:`, and has no spaces";
            return Err(format!("{wanted}, as in mailto:security@example.org"));
        }
        Ok(Self(text.to_owned()))
    }
}

// The table `[log]`: the log of all commits, and its witnesses.

const DEFAULT_CHECKPOINT: u64 = 5;
const DEFAULT_HEARTBEAT: u64 = 60;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogTable {
    origin: Option<String>,
    key_file: Option<PathBuf>,
    checkpoint_seconds: Option<u64>,
    heartbeat_seconds: Option<u64>,
    witnesses_file: Option<PathBuf>,
}

/// A server that keeps a log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    pub origin: String,
    /// The file with the log's key, or with its public half if an agent has the private half.
    pub key_file: PathBuf,
    /// The signer, or `None` until the program has read the key. The server speaks to no agent.
    pub signer: Option<Arc<CheckpointSigner>>,
    pub checkpoint_every: Duration,
    pub heartbeat_every: Duration,
    /// The witnesses to ask, and how many of them must answer.
    pub witnesses: Option<Policy>,
}

impl LogTable {
    pub(crate) fn resolve(self) -> Result<LogSettings, ConfigError> {
        let missing =
            |key| ConfigError::value(key, "is missing: `countersign admin log init` prints the table");
        let checkpoint = self.checkpoint_seconds.unwrap_or(DEFAULT_CHECKPOINT);
        let heartbeat = self.heartbeat_seconds.unwrap_or(DEFAULT_HEARTBEAT);
        let seconds = [("log.checkpoint_seconds", checkpoint), ("log.heartbeat_seconds", heartbeat)];
        refuse_zero(&seconds.map(|(key, seconds)| (key, seconds == 0)))?;
        for (key, seconds) in seconds {
            refuse_more(key, seconds, MAX_SECONDS, A_DAY)?;
        }
        Ok(LogSettings {
            origin: self.origin.ok_or_else(|| missing("log.origin"))?,
            key_file: self.key_file.ok_or_else(|| missing("log.key_file"))?,
            signer: None,
            checkpoint_every: Duration::from_secs(checkpoint),
            heartbeat_every: Duration::from_secs(heartbeat),
            witnesses: self.witnesses_file.map(read_policy).transpose()?,
        })
    }
}

impl LogSettings {
    /// The key under the name of the origin, if the witnesses file has nothing against it.
    pub fn verifier_key(&self, key: PublicKey) -> Result<VerifierKey, ConfigError> {
        let named = VerifierKey::new(&self.origin, KeyKind::Log, key)
            .map_err(|error| ConfigError::value("log.origin", error))?;
        let refuse = |reason: String| Err(ConfigError::value("log.witnesses_file", reason));
        let Some(policy) = &self.witnesses else { return Ok(named) };
        let has_this_key = |witness: &VerifierKey| witness.ed25519() == Some(key);
        if policy.witness_keys().iter().any(has_this_key) {
            return refuse(format!("the log's key {key} is a witness's as well (D90)"));
        }
        if !policy.logs().is_empty() && !policy.log_keys().contains(&named) {
            return refuse(format!("it is about other logs: add the line `log {named}`"));
        }
        Ok(named)
    }
}

fn read_policy(path: PathBuf) -> Result<Policy, ConfigError> {
    let wrong = |error: &dyn StdError| {
        let shown = shown_text(&path.to_string_lossy());
        ConfigError::value("log.witnesses_file", format!("{shown} cannot be used: {error}"))
    };
    let mut bytes = Vec::new();
    let file = fs::File::open(&path).map_err(|error| wrong(&error))?;
    file.take(POLICY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| wrong(&error))?;
    Policy::parse(&bytes).map_err(|error| wrong(&error))
}
