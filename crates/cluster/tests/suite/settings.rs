//! Database URLs: what is accepted, what is refused, and what is never shown.

use countersign_cluster::settings::{DatabaseSettings, SettingsError, UrlSource};

fn parse(text: &str) -> Result<DatabaseSettings, SettingsError> {
    DatabaseSettings::parse(text, UrlSource::File)
}

#[track_caller]
fn refusal(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn a_password_is_never_shown() {
    for text in [
        "postgres://user:s3cret@db.example.org/name",
        "host=db.example.org user=user password=s3cret dbname=name",
        "host=db.example.org user=user password='s3cret word' dbname=name",
    ] {
        let settings = parse(text).unwrap();
        let shown = format!("{settings:?} {settings}");
        assert!(!shown.contains("s3cret"), "{shown}");
        assert_eq!(settings.to_string(), "db.example.org:5432/name");
    }
    // Nor where the text is not understood.
    for text in [
        "host=db password=two s3cret words", "postgres://user:s3cret@db.example.org:notaport/name",
        "user:s3cret@db.example.org/name",
    ] {
        let error = parse(text).unwrap_err();
        let shown = format!("{error:?} {error}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[test]
fn a_password_on_the_command_line_is_refused_with_the_way_out() {
    let url = "postgres://user:s3cret@db.example.org/name";
    let error = DatabaseSettings::parse(url, UrlSource::CommandLine).unwrap_err().to_string();
    assert!(error.contains("url_file") && error.contains("environment"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
    DatabaseSettings::parse(url, UrlSource::Environment).unwrap();
    DatabaseSettings::parse("postgres://user@db.example.org/name", UrlSource::CommandLine).unwrap();
}

#[test]
fn tls_is_checked_in_full_or_left_out_in_writing() {
    for weak in ["prefer", "require", "allow", "verify-ca", "Disable", ""] {
        let error = refusal(&format!("postgres://user@db.example.org/name?sslmode={weak}"));
        assert!(error.contains("verify-full") && error.contains("sslrootcert"), "{error}");
    }
    let shown = |text: &str| format!("{:?}", parse(text).unwrap());
    for checked in [
        "postgres://user@db.example.org/name", "postgres://user@10.0.0.1/name",
        "postgres://user@localhost,db.example.org/name",
        "postgres://user@db.example.org/name?hostaddr=10.0.0.1",
        "postgres://user@localhost/name?hostaddr=10.0.0.1",
        "postgres://user@localhost/name?sslmode=verify-full", "host=db.example.org user=user",
        "host=localhost sslmode=verify-full user=user",
    ] {
        assert!(shown(checked).contains("VerifyFull"), "{checked}");
    }
    for open in [
        "postgres://user@localhost/name", "postgres://user@127.0.0.1,[::1]/name",
        "postgres://user@%2Frun%2Fpostgresql/name", "postgres://user@db.example.org/name?sslmode=disable",
        "postgres:///name?host=/run/postgresql", "host=/run/postgresql user=user",
        "host=db.example.org sslmode=disable user=user",
    ] {
        assert!(!shown(open).contains("VerifyFull"), "{open}");
    }
    assert!(refusal("postgres://u@db.example.org/name?channel_binding=require").contains("Remove it"));
    assert!(refusal("postgres://u@localhost/name?sslrootcert=/ca.pem").contains("verify-full"));
}

#[test]
fn what_is_no_url_is_refused_with_its_form() {
    for text in ["", "db.example.org", "https://db.example.org/", "postgres://"] {
        let error = refusal(text);
        assert!(error.contains("postgres://USER@HOST"), "{text:?}: {error}");
    }
    assert!(refusal("postgres://user@db.example.org/name?sslcert=/me.pem").contains("sslcert"));
    let several = parse("postgres://u@one.example.org:5433,two.example.org/name?connect_timeout=3").unwrap();
    assert_eq!(several.to_string(), "one.example.org:5433,two.example.org:5432/name");
}
