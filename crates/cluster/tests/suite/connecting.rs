//! Connecting, and what is looked at first: TLS, passwords, the format, rights, and settings that lose data.

use std::error::Error as StdError;

use countersign_cluster::database::Database;
use countersign_cluster::schema::{FORMAT, SchemaError, prepare};
use countersign_cluster::settings::{DatabaseSettings, UrlSource};
use countersign_testing::literals::{FIRST, SECOND};
use countersign_testing::postgres::{DATABASE, PASSWORD, Postgres, PostgresOptions, ROLE};

use crate::support::{FAST, World, database, runtime};

/// The error with all its causes.
fn chain(error: &dyn StdError) -> String {
    let causes = std::iter::successors(Some(error), |error: &&dyn StdError| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[test]
fn tls_needs_a_certificate_of_an_accepted_authority_for_the_hosts_name() {
    let options = PostgresOptions { certificate: Some(FIRST), needs_password: true, ..FAST };
    let Some(postgres) = Postgres::start_with(options) else { return };
    let dir = tempfile::tempdir().unwrap();
    let roots = |name: &str, [certificate, _]: [&str; 2]| {
        let path = dir.path().join(name);
        std::fs::write(&path, certificate).unwrap();
        path.to_string_lossy().into_owned()
    };
    let (accepted, other) = (roots("accepted.pem", FIRST), roots("other.pem", SECOND));
    let port = postgres.address().port();
    let connect = |host: &str, rest: &str| {
        let url = format!("postgres://{ROLE}:{PASSWORD}@{host}:{port}/{DATABASE}?{rest}");
        runtime().block_on(prepare(&database(&url)))
    };
    connect("localhost", &format!("sslmode=verify-full&sslrootcert={accepted}")).unwrap();
    connect("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={accepted}")).unwrap();
    let refused = |host, rest: &str| chain(&connect(host, rest).unwrap_err());
    let error =
        refused("db.example.org", &format!("hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={accepted}"));
    assert!(error.contains("certificate not valid for name"), "{error}");
    let error = refused("localhost", &format!("sslmode=verify-full&sslrootcert={other}"));
    assert!(error.contains("certificate"), "{error}");
    // Not one that the system knows either.
    let error = refused("localhost", "sslmode=verify-full");
    assert!(error.contains("certificate"), "{error}");
    // And a server that wants TLS does not get around it.
    let error = refused("localhost", "sslmode=disable");
    assert!(error.contains("pg_hba.conf"), "{error}");
}

/// The authorities of the system are read once in a process, and so this test runs in two.
#[test]
fn the_systems_authorities_are_those_of_ssl_cert_file() {
    const URL: &str = "COUNTERSIGN_TEST_DATABASE";
    if let Ok(url) = std::env::var(URL) {
        runtime().block_on(prepare(&database(&url))).unwrap();
        return;
    }
    let options = PostgresOptions { certificate: Some(FIRST), ..FAST };
    let Some(postgres) = Postgres::start_with(options) else { return };
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{}?sslmode=verify-full", postgres.url());
    for ([certificate, _], is_accepted) in [(FIRST, true), (SECOND, false)] {
        std::fs::write(dir.path().join("roots.pem"), certificate).unwrap();
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "connecting::the_systems_authorities_are_those_of_ssl_cert_file"]);
        again.env(URL, &url).env("SSL_CERT_FILE", dir.path().join("roots.pem")).env_remove("SSL_CERT_DIR");
        assert_eq!(again.output().unwrap().status.success(), is_accepted);
    }
}

#[test]
fn an_authority_file_must_be_one() {
    let parse = |path: &str| {
        let url = format!("postgres://user@db.example.org/name?sslrootcert={path}");
        Database::new(DatabaseSettings::parse(&url, UrlSource::File).unwrap()).unwrap_err().to_string()
    };
    assert!(parse("/does/not/exist.pem").contains("/does/not/exist.pem"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "no certificate").unwrap();
    assert!(parse(&file.path().to_string_lossy()).contains("no certificate"));
}

#[test]
fn the_password_of_the_url_is_used() {
    let Some(postgres) = Postgres::start_with(PostgresOptions { needs_password: true, ..FAST }) else {
        return;
    };
    let prepare = |user: &str| {
        let url = format!("postgres://{user}@{}/{DATABASE}", postgres.address());
        let settings = DatabaseSettings::parse(&url, UrlSource::Environment).unwrap();
        runtime().block_on(prepare(&Database::new(settings).unwrap()))
    };
    let error = prepare(ROLE).unwrap_err();
    assert!(chain(&error).contains("password"), "{}", chain(&error));
    let error = prepare(&format!("{ROLE}:wrong")).unwrap_err();
    assert!(chain(&error).contains("password authentication failed"), "{}", chain(&error));
    prepare(&format!("{ROLE}:{PASSWORD}")).unwrap();
}

#[test]
fn tables_are_made_once_by_however_many_nodes() {
    let Some(postgres) = Postgres::start_with(FAST) else { return };
    let runtime = runtime();
    let created = runtime.block_on(async {
        let nodes: Vec<_> = (0..5)
            .map(|_| {
                let database = database(&postgres.url());
                tokio::spawn(async move { prepare(&database).await })
            })
            .collect();
        let mut prepared = Vec::new();
        for node in nodes {
            prepared.push(node.await.unwrap().unwrap());
        }
        prepared
    });
    // On loopback a standby is not missed.
    let warnings: Vec<_> = created.iter().flat_map(|prepared| &prepared.warnings).collect();
    assert!(warnings.iter().all(|warning| warning.contains("fsync is off")), "{warnings:?}");
    assert_eq!(postgres.sql("select count(*), min(format) from svc_repository"), format!("1|{FORMAT}"));
    let storage =
        "select attstorage from pg_attribute where attrelid = 'svc_batch'::regclass and attname = 'body'";
    assert_eq!(postgres.sql(storage), "e");
    assert!(!runtime.block_on(prepare(&database(&postgres.url()))).unwrap().was_empty);
}

#[test]
fn a_database_of_another_program_is_refused_with_the_way_out() {
    let Some(world) = World::start() else { return };
    let refused = |format: i32| {
        world.postgres.sql(&format!("update svc_repository set format = {format}"));
        world.runtime.block_on(prepare(&world.database())).unwrap_err()
    };
    let newer = refused(FORMAT + 1);
    assert!(matches!(newer, SchemaError::Newer { found } if found == FORMAT + 1), "{newer:?}");
    assert!(newer.to_string().contains("written by a newer program"), "{newer}");
    let older = refused(1);
    assert!(matches!(older, SchemaError::Older { found: 1 }), "{older:?}");
    assert!(older.to_string().contains("admin cluster init"), "{older}");
}

#[test]
fn missing_rights_are_named() {
    let Some(postgres) = Postgres::start_with(FAST) else { return };
    postgres.sql("create schema apart; create role guest login");
    let prepare_as = |role: &str, options: &str| {
        let url = format!("postgres://{role}@{}/{DATABASE}?options={options}", postgres.address());
        runtime().block_on(prepare(&database(&url)))
    };
    let path = "-c%20search_path%3Dapart";
    let error = prepare_as("guest", path).unwrap_err().to_string();
    // A schema that the role may not even see is none.
    assert!(error.contains("guest") && error.contains("search_path"), "{error}");
    postgres.sql("grant usage on schema apart to guest");
    let error = prepare_as("guest", path).unwrap_err().to_string();
    assert!(error.contains("grant usage, create on schema \"apart\" to \"guest\""), "{error}");
    postgres.sql("grant create on schema apart to guest");
    assert!(prepare_as("guest", path).unwrap().was_empty);
    assert_eq!(postgres.sql("select count(*) from apart.svc_repository"), "1");
    // Tables of another role.
    postgres.sql("create role other login; grant usage on schema apart to other");
    let error = prepare_as("other", path).unwrap_err().to_string();
    assert!(error.contains("grant select, insert, update, delete"), "{error}");
    postgres.sql("grant select, insert, update, delete on all tables in schema apart to other");
    assert!(!prepare_as("other", path).unwrap().was_empty);
}

#[test]
fn settings_that_lose_changes_are_warned_of_and_a_server_without_tls_is_refused_where_it_is_asked_for() {
    let settings = &["synchronous_commit = off", "full_page_writes = off"];
    let Some(postgres) = Postgres::start_with(PostgresOptions { settings, ..FAST }) else { return };
    // It has no TLS either.
    let url = format!("{}?sslmode=verify-full", postgres.url());
    let error = chain(&runtime().block_on(prepare(&database(&url))).unwrap_err());
    assert!(error.contains("does not support TLS"), "{error}");
    let prepared = runtime().block_on(prepare(&database(&postgres.url()))).unwrap();
    let all = prepared.warnings.join("\n");
    for name in ["fsync is off", "full_page_writes is off", "synchronous_commit is off"] {
        assert!(all.contains(name), "{all}");
    }
    assert!(!all.contains("standby"), "{all}");
}
