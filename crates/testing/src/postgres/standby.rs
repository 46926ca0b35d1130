//! A second cluster that follows the first by streaming replication.

use std::time::{Duration, Instant};

use super::{
    cluster::Postgres,
    process::{ClusterLog, PATIENCE},
    programs::run,
    template::new_dir,
};

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
        let end = Instant::now() + PATIENCE;
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
