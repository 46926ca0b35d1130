//! The proxy in front of PostgreSQL: it loses the answer that a test names, and no other.

use std::process::Output;

use countersign_testing::postgres::{PASSWORD, Postgres, PostgresOptions};
use countersign_testing::{literals::FIRST, proxy::LossMoment, proxy::LostAnswer, proxy::Proxy};
use tempfile::TempDir;

fn start() -> Option<(Postgres, Proxy)> {
    let options = PostgresOptions { needs_password: true, skips_fsync: true, ..PostgresOptions::default() };
    let postgres = Postgres::start_with(options)?;
    postgres.sql("create table t (a serial); alter table t owner to countersign");
    let proxy = Proxy::for_postgres(postgres.address());
    Some((postgres, proxy))
}

/// One connection over which `psql` sends these, each as a simple query.
fn send(postgres: &Postgres, proxy: &Proxy, statements: &[&str]) -> Output {
    let mut psql = postgres.program("psql");
    psql.args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &postgres.url_at(proxy.address())]);
    psql.args(statements.iter().flat_map(|statement| ["-c", statement])).output().unwrap()
}

/// Runs one statement so many times over one connection, prepared, as a program does.
fn repeat(postgres: &Postgres, proxy: &Proxy, statement: &str, times: usize) -> Output {
    let dir = TempDir::new().unwrap();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let script = dir.path().join("script");
    std::fs::write(&script, format!("{statement};\n")).unwrap();
    let mut pgbench = postgres.program("pgbench");
    pgbench.args(["-n", "-M", "prepared", "-t", &times.to_string(), "-f"]).arg(&script);
    pgbench.args(["-h", "127.0.0.1", "-p", &proxy.address().port().to_string(), "-U", "countersign"]);
    pgbench.arg("countersign").env("PGPASSWORD", PASSWORD).output().unwrap()
}

fn lost(statement: &'static str, nth: usize, moment: LossMoment) -> LostAnswer {
    LostAnswer { statement, nth, moment }
}

#[test]
fn it_passes_on_what_it_need_not_lose() {
    let Some((postgres, proxy)) = start() else { return };
    let rows = "select repeat('x', 100000) from generate_series(1, 20)";
    let output = send(&postgres, &proxy, &["insert into t default values", "select 1; select 2", rows]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).len(), "INSERT 0 1\n1\n2\n".len() + 20 * 100_001);
    assert!(repeat(&postgres, &proxy, "insert into t default values", 50).status.success());
    assert_eq!(postgres.sql("select count(*) from t"), "51");
    assert_eq!(proxy.lost(), 0);
}

#[test]
fn it_counts_over_connections_and_an_error_of_the_database_does_not_shift_the_count() {
    let Some((postgres, proxy)) = start() else { return };
    proxy.lose(lost("into t", 2, LossMoment::AfterEffect));
    let insert = "insert into t default values";
    assert!(!send(&postgres, &proxy, &["insert into t values ('no number')"]).status.success());
    assert!(send(&postgres, &proxy, &[insert]).status.success());
    assert!(!send(&postgres, &proxy, &[insert]).status.success());
    assert!(send(&postgres, &proxy, &[insert]).status.success(), "one answer is lost, and no other");
    assert_eq!(postgres.sql("select count(*) from t"), "3");
}

#[test]
fn the_answer_of_the_kth_statement_is_lost_after_it_took_effect() {
    let Some((postgres, proxy)) = start() else { return };
    for k in [1, 3] {
        postgres.sql("truncate t");
        proxy.lose(lost("", k, LossMoment::AfterEffect));
        let insert = "insert into t default values";
        let output = send(&postgres, &proxy, &[insert; 4]);
        assert!(!output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "INSERT 0 1\n".repeat(k - 1));
        proxy.await_loss();
        assert_eq!(postgres.sql("select count(*) from t"), k.to_string());
    }
    assert_eq!(proxy.lost(), 2);
}

#[test]
fn the_kth_statement_is_lost_before_it_reaches_the_database() {
    let Some((postgres, proxy)) = start() else { return };
    proxy.lose(lost("INSERT   into T", 3, LossMoment::BeforeEffect));
    let insert = "insert into t default values";
    let output = send(&postgres, &proxy, &[insert, "select 1", insert, "select 2", insert, insert]);
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "INSERT 0 1\n1\nINSERT 0 1\n2\n");
    assert_eq!(postgres.sql("select count(*) from t"), "2");
}

#[test]
fn prepared_statements_are_known_by_their_text() {
    let Some((postgres, proxy)) = start() else { return };
    let insert = "insert into t default values";
    for (moment, rows) in [(LossMoment::BeforeEffect, "6"), (LossMoment::AfterEffect, "7")] {
        postgres.sql("truncate t");
        proxy.lose(lost("into t", 7, moment));
        assert!(!repeat(&postgres, &proxy, insert, 20).status.success());
        assert_eq!(postgres.sql("select count(*) from t"), rows);
    }
}

#[test]
fn tls_goes_through_unread() {
    let options =
        PostgresOptions { certificate: Some(FIRST), skips_fsync: true, ..PostgresOptions::default() };
    let Some(postgres) = Postgres::start_with(options) else { return };
    let proxy = Proxy::for_postgres(postgres.address());
    let output = send(&postgres, &proxy, &["select 'hello'"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n", "{output:?}");
}
