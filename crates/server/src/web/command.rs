//! Commands to paste. Text from strangers is one quoted word, and never contains invisible characters.

use countersign_core::values::shown::shown_text;

/// Where the visitor has to fill in the address of the server.
const UNKNOWN_SERVER: &str = "SERVER";

/// `countersign VERB SUBJECT --server ORIGIN`; `None` if the shell would run something other than the page shows.
pub(super) fn client(verb: &str, subject: &str, origin: Option<&str>) -> Option<String> {
    let is_plain = !subject.starts_with('-') && shown_text(subject) == subject;
    let server = origin.unwrap_or(UNKNOWN_SERVER);
    is_plain.then(|| format!("countersign {verb} {} --server {server}", quote(subject)))
}

/// One word of a POSIX shell.
fn quote(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | ':' | '+' | '@');
    if !text.is_empty() && text.chars().all(is_safe) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

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
}
