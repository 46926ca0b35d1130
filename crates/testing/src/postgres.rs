//! PostgreSQL for tests: a cluster in a temporary directory, which ends with the value that stands for it.
//!
//! It never touches a cluster that is there: it has a data directory, a port and a socket of its own.

mod process;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::{fs, os::unix::fs::PermissionsExt as _, process::Command, time::Duration, time::Instant};

use tempfile::TempDir;

use crate::literals::{CertificatePair, free_port};
use crate::postgres::process::{ClusterLog, Postmaster, TIMEOUT, Template, new_dir, run, said};
pub use crate::postgres::process::{DATABASE, PASSWORD, ROLE};

/// How the cluster is set up. The default: no password, no TLS, and everything is synced.
#[derive(Debug, Clone, Copy, Default)]
pub struct PostgresOptions {
    /// Asks TCP clients for [`PASSWORD`] by SCRAM.
    pub needs_password: bool,
    /// A certificate: TCP clients must use TLS, and see this one.
    pub certificate: Option<CertificatePair>,
    /// Whether to skip syncing, which is faster. A crash of the process loses nothing; one of the machine would.
    pub skips_fsync: bool,
    /// More lines of `postgresql.conf`.
    pub settings: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostgresEnd {
    /// Sessions are cut off, and everything is written.
    Fast,
    /// Stops as in a crash: the next start recovers from the log.
    Crash,
}

#[derive(Debug)]
pub struct Postgres {
    template: &'static Template,
    // Before the directory: the processes end first.
    running: Option<Postmaster>,
    log: ClusterLog,
    port: u16,
    dir: TempDir,
}

impl Postgres {
    /// A new cluster with an empty [`DATABASE`]. `None` where PostgreSQL is not installed; it then says so.
    pub fn start() -> Option<Self> {
        Self::start_with(PostgresOptions::default())
    }

    pub fn start_with(options: PostgresOptions) -> Option<Self> {
        let template = Template::get()?;
        let dir = new_dir(&template.programs);
        template.copy_to(&dir.path().join("data"));
        let mut postgres = Self { template, running: None, log: ClusterLog::default(), port: 0, dir };
        postgres.write_access(options);
        postgres.append("postgresql.conf", &postgres.settings(options));
        postgres.start_on_free_port();
        Some(postgres)
    }

    /// The URL `postgres://…` over TCP, for [`ROLE`] and [`DATABASE`].
    pub fn url(&self) -> String {
        self.url_at(self.address())
    }

    /// The URL through a proxy at this address.
    pub fn url_at(&self, address: SocketAddr) -> String {
        format!("postgres://{ROLE}:{PASSWORD}@{address}/{DATABASE}")
    }

    /// The URL over the Unix socket, without a password.
    pub fn socket_url(&self) -> String {
        let dir = self.dir.path().to_string_lossy().replace('/', "%2F");
        format!("postgres://{ROLE}@{dir}:{}/{DATABASE}", self.port)
    }

    /// The address, which stays the same over restarts.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Runs SQL as the superuser; rows as lines, fields divided by `|`.
    #[track_caller]
    pub fn sql(&self, statements: &str) -> String {
        self.try_sql(statements).unwrap_or_else(|error| panic!("{statements}: {error}"))
    }

    /// Runs statements as `sql` does; an error is what `psql` said.
    pub fn try_sql(&self, statements: &str) -> Result<String, String> {
        let output = self.psql().args(["-c", statements]).output().expect("`psql` starts");
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned()),
            false => Err(said(&output)),
        }
    }

    /// A command that runs `psql` over the socket, as the superuser, on [`DATABASE`].
    pub fn psql(&self) -> Command {
        let mut psql = self.program("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", DATABASE]);
        psql.arg("-h").arg(self.dir.path()).args(["-p", &self.port.to_string()]);
        psql
    }

    /// A command that runs another of PostgreSQL's programs, as the user that owns the cluster.
    pub fn program(&self, name: &str) -> Command {
        self.template.programs.command(name)
    }

    #[track_caller]
    pub fn stop(&mut self, end: PostgresEnd) {
        let signal = match end {
            PostgresEnd::Fast => "INT",
            PostgresEnd::Crash => "QUIT",
        };
        self.running.take().expect("it runs").end(signal);
    }

    /// Starts the cluster again on the same port, with the data that it left.
    #[track_caller]
    pub fn start_again(&mut self) {
        assert!(self.running.is_none(), "it runs already");
        self.running = Postmaster::start(&self.template.programs, self.dir.path(), &self.log);
        assert!(self.running.is_some(), "PostgreSQL does not start: {}", self.log.text());
    }

    #[track_caller]
    pub fn restart(&mut self, end: PostgresEnd) {
        self.stop(end);
        self.start_again();
    }

    /// Stops all its processes where they are; connections stay open and silent.
    pub fn pause(&self) {
        self.running.as_ref().expect("it runs").pause();
    }

    pub fn resume(&self) {
        self.running.as_ref().expect("it runs").resume();
    }

    /// Everything that the cluster has logged so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    #[track_caller]
    pub fn await_log(&self, words: &str) {
        assert!(self.log.await_words(words, 0), "no {words:?} in the log: {}", self.log.text());
    }

    fn start_on_free_port(&mut self) {
        // Another program can take the port between the look and the start.
        for _ in 0..10 {
            self.port = free_port();
            self.append("postgresql.conf", &format!("port = {}\n", self.port));
            self.running = Postmaster::start(&self.template.programs, self.dir.path(), &self.log);
            if self.running.is_some() {
                return;
            }
        }
        panic!("PostgreSQL does not start: {}", self.log.text());
    }

    fn settings(&self, options: PostgresOptions) -> String {
        let mut settings = vec![
            "listen_addresses = '127.0.0.1'".to_owned(),
            format!("unix_socket_directories = '{}'", self.dir.path().display()),
            format!("fsync = {}", if options.skips_fsync { "off" } else { "on" }),
            "shared_buffers = 16MB".to_owned(),
            "max_connections = 60".to_owned(),
            // A standby that was away finds what it missed.
            "wal_keep_size = 64MB".to_owned(),
        ];
        if options.certificate.is_some() {
            settings.push("ssl = on\nssl_cert_file = 'cert.pem'\nssl_key_file = 'key.pem'".to_owned());
        }
        settings.extend(options.settings.iter().map(|setting| (*setting).to_owned()));
        settings.join("\n") + "\n"
    }

    /// Writes who may connect, and the files of TLS.
    fn write_access(&self, options: PostgresOptions) {
        let method = if options.needs_password { "scram-sha-256" } else { "trust" };
        let kind = if options.certificate.is_some() { "hostssl" } else { "host" };
        let rules = format!(
            "local all all trust\nlocal replication all trust\n{kind} all all 127.0.0.1/32 {method}\n"
        );
        self.write("pg_hba.conf", &rules);
        if let Some([certificate, key]) = options.certificate {
            self.write("cert.pem", certificate);
            self.write("key.pem", key);
        }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.data_dir().join(name);
        fs::write(&path, text).expect("our own directory");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("our own file");
        self.template.programs.give(&path);
    }

    /// The last of several values of a setting counts.
    fn append(&self, name: &str, text: &str) {
        let held = fs::read_to_string(self.data_dir().join(name)).expect("a file of the cluster");
        self.write(name, &format!("{held}\n{text}"));
    }

    fn socket_dir(&self) -> &Path {
        self.dir.path()
    }
}

// A second cluster that follows the first by streaming replication.

/// Whether a commit on the primary waits for the standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standby {
    Synchronous,
    Asynchronous,
}

impl Postgres {
    /// A standby of this cluster, which has caught up. It answers reads.
    pub fn start_standby(&self, standby: Standby) -> Postgres {
        let programs = &self.template.programs;
        let dir = new_dir(programs);
        let data = dir.path().join("data");
        let port = self.port.to_string();
        let mut copy = programs.command("pg_basebackup");
        copy.arg("-D").arg(&data).arg("-h").arg(self.socket_dir()).args(["-p", &port, "-U", "postgres"]);
        run(copy.args(["-X", "stream", "--checkpoint=fast", "--no-sync"]));

        let mut postgres =
            Postgres { template: self.template, running: None, log: ClusterLog::default(), port: 0, dir };
        let name = format!("standby{}", postgres.dir.path().file_name().expect("a name").to_string_lossy());
        let name: String =
            name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        let sockets = postgres.socket_dir().display().to_string();
        postgres.append("postgresql.conf", &format!("unix_socket_directories = '{sockets}'\n"));
        let primary =
            format!("host={} port={port} user=postgres application_name={name}", self.socket_dir().display());
        // This file wins over the other, and may say what the primary was told.
        postgres.append(
            "postgresql.auto.conf",
            &format!("primary_conninfo = '{primary}'\nsynchronous_standby_names = ''\n"),
        );
        postgres.write("standby.signal", "");
        postgres.start_on_free_port();

        let (wanted, names) = match standby {
            Standby::Synchronous => ("sync", name.as_str()),
            Standby::Asynchronous => ("async", ""),
        };
        self.set_synchronous_standby(names);
        let question =
            format!("select state, sync_state from pg_stat_replication where application_name = '{name}'");
        self.await_row(&question, &format!("streaming|{wanted}"));
        postgres
    }

    /// What commits wait for from now on: the name of a standby, or nothing.
    fn set_synchronous_standby(&self, name: &str) {
        // `alter system` is refused beside another statement, and the first of the two must not wait itself.
        self.sql(&format!("alter system set synchronous_standby_names = '{name}'"));
        self.sql("select pg_reload_conf()");
    }

    /// Makes a standby a primary that accepts changes.
    #[track_caller]
    pub fn promote(&self) {
        assert_eq!(self.sql("select pg_promote(true, 60)"), "t", "{}", self.log());
        self.await_row("select pg_is_in_recovery()", "f");
    }

    /// Waits until a query gives this; PostgreSQL has no event for it.
    #[track_caller]
    pub fn await_row(&self, query: &str, wanted: &str) {
        let end = Instant::now() + TIMEOUT;
        loop {
            let row = self.sql(query);
            if row == wanted {
                return;
            }
            assert!(Instant::now() < end, "{query} gives {row:?} instead of {wanted:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
