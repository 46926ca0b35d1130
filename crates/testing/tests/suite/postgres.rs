//! Clusters start, end, pause, follow and are gone with the value that stands for them.

use std::{fs, path::Path, sync::mpsc, time::Duration};

use countersign_testing::postgres::{Postgres, PostgresEnd, PostgresOptions, Standby};

/// Most tests ask nothing of the disk.
const QUICK: PostgresOptions =
    PostgresOptions { skips_fsync: true, needs_password: false, certificate: None, settings: &[] };

#[test]
fn a_cluster_has_an_empty_database_whose_owner_is_no_superuser() {
    let Some(postgres) = Postgres::start() else { return };
    assert_eq!(postgres.sql("select count(*) from pg_tables where schemaname = 'public'"), "0");
    assert_eq!(postgres.sql("select rolsuper from pg_roles where rolname = 'countersign'"), "f");
    let owner = "select pg_get_userbyid(datdba) from pg_database where datname = 'countersign'";
    assert_eq!(postgres.sql(owner), "countersign");
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        assert_eq!(postgres.sql(&format!("show {setting}")), "on");
    }
    for url in [postgres.url(), postgres.socket_url()] {
        let mut psql = postgres.program("psql");
        let output = psql.args(["-X", "-A", "-t", "-d", &url, "-c", "select 'hello'"]).output().unwrap();
        assert!(output.status.success() && output.stdout == b"hello\n", "{output:?}");
    }
}

#[test]
fn a_cluster_keeps_its_address_and_what_was_committed_over_a_crash() {
    let Some(mut postgres) = Postgres::start_with(QUICK) else { return };
    let url = postgres.url();
    postgres.sql("create table t (a int)");
    for (end, rows) in [(PostgresEnd::Crash, 1), (PostgresEnd::Fast, 2), (PostgresEnd::Crash, 3)] {
        postgres.sql("insert into t values (1)");
        postgres.stop(end);
        assert!(postgres.try_sql("select 1").is_err());
        postgres.start_again();
        assert_eq!(postgres.sql("select count(*) from t"), rows.to_string());
    }
    assert_eq!(postgres.url(), url);
    postgres.await_log("database system was interrupted");
}

#[test]
fn a_paused_cluster_is_silent_and_then_goes_on() {
    let Some(postgres) = Postgres::start_with(QUICK) else { return };
    postgres.pause();
    let (sender, answers) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(postgres.sql("select 7")).unwrap());
        assert!(answers.recv_timeout(Duration::from_millis(300)).is_err());
        postgres.resume();
        assert_eq!(answers.recv().unwrap(), "7");
    });
}

#[test]
fn an_asynchronous_standby_can_lose_the_newest_rows() {
    let Some(mut primary) = Postgres::start_with(QUICK) else { return };
    primary.sql("create table t (a int)");
    let standby = primary.start_standby(Standby::Asynchronous);
    primary.sql("insert into t values (1)");
    standby.await_row("select count(*) from t", "1");
    standby.pause();
    primary.sql("insert into t values (2)");
    primary.stop(PostgresEnd::Crash);
    standby.resume();
    standby.promote();
    let rows = standby.sql("select count(*) from t");
    assert!(rows == "1" || rows == "2", "what was in its socket already may still arrive: {rows}");
}

#[test]
fn nothing_is_left_after_a_panic() {
    let Some(probe) = Postgres::start_with(QUICK) else { return };
    drop(probe);
    let (sender, told) = mpsc::channel();
    let panicked = std::thread::spawn(move || {
        let postgres = Postgres::start_with(QUICK).unwrap();
        postgres.pause();
        let data = postgres.data_dir();
        let lines = fs::read_to_string(data.join("postmaster.pid")).unwrap();
        sender.send((data, lines.lines().next().unwrap().to_owned())).unwrap();
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    let (data, process) = told.recv().unwrap();
    assert!(!data.parent().unwrap().exists());
    assert!(!Path::new("/proc").join(process).exists());
}

/// The test program ends at once, without dropping anything.
#[test]
fn nothing_is_left_after_the_test_program_is_killed() {
    const CHILD: &str = "COUNTERSIGN_TESTING_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let postgres = Postgres::start_with(QUICK).unwrap();
        let lines = fs::read_to_string(postgres.data_dir().join("postmaster.pid")).unwrap();
        println!("process {} {}", lines.lines().next().unwrap(), postgres.data_dir().display());
        std::process::abort();
    }
    let Some(_here) = Postgres::start_with(QUICK) else { return };
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let name = "postgres::nothing_is_left_after_the_test_program_is_killed";
    let output = child.args([name, "--exact", "--nocapture"]).env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = said.lines().find_map(|line| line.split_once("process ")).unwrap().1;
    let (process, data) = told.split_once(' ').unwrap();
    let process = Path::new("/proc").join(process);
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while process.exists() || Path::new(data).parent().unwrap().exists() {
        assert!(std::time::Instant::now() < end, "{told} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}
