//! Settings for the database: what a URL such as `postgres://user@host/name` says.

use std::{fmt, net::IpAddr, path::PathBuf, str::FromStr as _};

use countersign_core::values::path::is_this_machine;
use percent_encoding::percent_decode_str;
use thiserror::Error;
use tokio_postgres::config::{ChannelBinding, Config, Host, SslMode, TargetSessionAttrs};

/// Where the text of a URL came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlSource {
    /// Every user of the machine can read it there.
    CommandLine,
    Environment,
    File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encryption {
    Off,
    /// TLS, with a certificate of an accepted authority for the host's name.
    VerifyFull,
}

/// A database URL that was understood. It is never printed with its password.
#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    pub(crate) config: Config,
    pub(crate) encryption: Encryption,
    /// The accepted authorities, instead of those of the system.
    pub(crate) root_file: Option<PathBuf>,
}

/// Why a database URL cannot be used: a sentence for the operator.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct SettingsError(String);

/// What the library does not know, or would understand more weakly.
#[derive(Debug, Default)]
struct OwnOptions {
    sslmode: Option<String>,
    sslrootcert: Option<String>,
    channel_binding: Option<String>,
}

impl DatabaseSettings {
    pub fn parse(text: &str, source: UrlSource) -> Result<Self, SettingsError> {
        let refuse = |reason: &str| Err(SettingsError(reason.to_owned()));
        let text = text.trim();
        let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
        let (rest, own) = if is_url { split_url(text) } else { split_words(text) };
        let mut config = match Config::from_str(&rest) {
            Ok(config) => config,
            Err(error) => {
                // In a list of words, a piece of the password can look like an option, and would be shown.
                let reason = std::error::Error::source(&error).filter(|_| is_url);
                return refuse(&reason.map_or_else(
                    || "this is not a database URL. Write it as postgres://USER@HOST:PORT/NAME".to_owned(),
                    |reason| format!("the database URL cannot be used: {reason}"),
                ));
            }
        };
        if source == UrlSource::CommandLine && config.get_password().is_some() {
            return refuse(
                "the database URL on the command line has a password, which every user of this machine can read there. \
                 Set the URL in the environment (COUNTERSIGN_DATABASE), or write it into a file that only this user can \
                 read, and name that as `url_file` in `[database]`",
            );
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return refuse("the database URL names no host. Write it as postgres://USER@HOST:PORT/NAME");
        }
        let default = if is_local(&config) { "disable" } else { "verify-full" };
        let encryption = match own.sslmode.as_deref().unwrap_or(default) {
            "disable" => Encryption::Off,
            "verify-full" => Encryption::VerifyFull,
            other => {
                return refuse(&format!(
                    "sslmode={other} does not make sure that it is your database that answers. Use sslmode=verify-full, \
                     with sslrootcert=FILE if the database has a certificate authority of its own; or sslmode=disable if \
                     the network is safe"
                ));
            }
        };
        if own.channel_binding.as_deref() == Some("require") {
            return refuse(
                "channel_binding=require is not supported. Remove it: sslmode=verify-full proves the server as well",
            );
        }
        if own.sslrootcert.is_some() && encryption == Encryption::Off {
            return refuse("sslrootcert is of no use without TLS. Add sslmode=verify-full, or remove it");
        }
        config.channel_binding(ChannelBinding::Disable);
        config.ssl_mode(match encryption {
            Encryption::Off => SslMode::Disable,
            Encryption::VerifyFull => SslMode::Require,
        });
        // Of several servers, only the primary can be used; after a failover that is another one.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        Ok(Self { config, encryption, root_file: own.sslrootcert.map(PathBuf::from) })
    }

    /// Whether the database is on this machine.
    pub fn is_local(&self) -> bool {
        is_local(&self.config)
    }
}

/// Where the database is, for messages.
impl fmt::Display for DatabaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hosts, ports) = (self.config.get_hosts(), self.config.get_ports());
        for at in 0..hosts.len().max(self.config.get_hostaddrs().len()) {
            f.write_str(if at == 0 { "" } else { "," })?;
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
            match (hosts.get(at), self.config.get_hostaddrs().get(at)) {
                (Some(Host::Unix(dir)), _) => write!(f, "{} port {port}", dir.display())?,
                (Some(Host::Tcp(host)), _) => write!(f, "{host}:{port}")?,
                (None, Some(address)) => write!(f, "{address}:{port}")?,
                (None, None) => {}
            }
        }
        self.config.get_dbname().map_or(Ok(()), |name| write!(f, "/{name}"))
    }
}

/// An address counts more than a name: that is where the connection goes.
fn is_local(config: &Config) -> bool {
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().iter().all(IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => is_this_machine(name),
    })
}

fn split_url(text: &str) -> (String, OwnOptions) {
    let mut own = OwnOptions::default();
    // As the library reads it: all up to the first `@` is user and password.
    let host = text.find('@').unwrap_or(0);
    let Some(query) = text[host..].find('?').map(|at| host + at) else { return (text.to_owned(), own) };
    let kept = text[query + 1..].split('&').filter(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        !own.take(name, || percent_decode_str(value).decode_utf8_lossy().into_owned())
    });
    let kept = kept.collect::<Vec<_>>().join("&");
    let separator = if kept.is_empty() { "" } else { "?" };
    (format!("{}{separator}{kept}", &text[..query]), own)
}

/// The other form, `host=… user=…`, where quotes hold values with spaces.
fn split_words(text: &str) -> (String, OwnOptions) {
    let (mut own, mut in_quotes, mut escaped) = (OwnOptions::default(), false, false);
    let words = text.split(|c: char| {
        in_quotes ^= c == '\'' && !escaped;
        escaped = c == '\\' && !escaped;
        c.is_whitespace() && !in_quotes
    });
    let kept = words.filter(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        !own.take(name, || value.trim_matches('\'').to_owned())
    });
    let kept = kept.collect::<Vec<_>>().join(" ");
    (kept, own)
}

impl OwnOptions {
    fn take(&mut self, name: &str, value: impl FnOnce() -> String) -> bool {
        let option = match name {
            "sslmode" => &mut self.sslmode,
            "sslrootcert" => &mut self.sslrootcert,
            "channel_binding" => &mut self.channel_binding,
            _ => return false,
        };
        *option = Some(value());
        true
    }
}
