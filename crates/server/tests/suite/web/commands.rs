use std::process::Command;

use countersign_server::web::links::{client, quote};

#[test]
fn a_shell_takes_every_name_for_one_word() {
    let names =
        ["a b", "a'b", "$(reboot)", "`x`", "a\"b", "x;y", "!x", "~", "*", "a\\b", "'", "''", "ü&|<>#"];
    for name in names {
        let script = format!("printf %s {}", quote(name));
        let printed = Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
        assert_eq!(String::from_utf8(printed).unwrap(), name);
    }
}

#[test]
fn a_command_has_nothing_that_cannot_be_seen() {
    assert_eq!(
        client("sign", "https/h/443/a", Some("https://s.example")).as_deref(),
        Some("countersign sign https/h/443/a --server https://s.example")
    );
    assert_eq!(client("sign", "a b", None).as_deref(), Some("countersign sign 'a b' --server SERVER"));
    for hidden in ["a\u{202e}b", "a\nb", "a\u{200b}b", "-x", &"x".repeat(400)] {
        assert_eq!(client("sign", hidden, None), None);
    }
}
