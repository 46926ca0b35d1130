//! Shell scripts that are cut off: the shells that are here read each beginning of one, and run nothing.

use std::{fs, path::Path, process::Command, process::Stdio};

use super::keys::installed;

/// Between these bytes, and at the end of each line, a script is cut off.
const STEP: usize = 61;

/// The shells that are here, each as the words of a command.
fn shells() -> Vec<Vec<&'static str>> {
    let known = ["sh", "dash", "bash", "busybox", "mksh", "ksh", "yash"];
    let found = known.into_iter().filter(|shell| installed(shell));
    found.map(|shell| if shell == "busybox" { vec![shell, "sh"] } else { vec![shell] }).collect()
}

/// Fails unless each beginning of the script is an error, from its second line on, which tells nothing on standard
/// output. `options` are those of the shell, such as `-n`, which only reads.
#[track_caller]
pub(crate) fn assert_whole_or_nothing(script: &[u8], options: &[&str], arguments: &[&Path]) {
    let dir = tempfile::TempDir::new().expect("a temporary directory");
    let path = dir.path().join("script");
    let begins = script.iter().position(|byte| *byte == b'\n').expect("a first line") + 1;
    assert!(script[begins..].starts_with(b"{ "), "the second line begins a compound command");
    // A line end behind the closing brace is nothing that could be missing.
    let whole = script.trim_ascii_end().len();
    let line_ends = (begins..whole).filter(|at| script[*at] == b'\n');
    let ends = (begins + 1..whole).step_by(STEP).chain(line_ends).chain([whole - 1]);
    let shells = shells();
    for (turn, end) in ends.enumerate() {
        fs::write(&path, &script[..end]).expect("written");
        // The shells take turns. All of them try it without its last byte.
        for shell in shells.iter().cycle().skip(turn).take(if end + 1 == whole { shells.len() } else { 1 }) {
            let mut command = Command::new(shell[0]);
            command.args(&shell[1..]).args(options).arg(&path).args(arguments).current_dir(dir.path());
            let ran = command.stdin(Stdio::null()).output().expect("the shell runs");
            let is_refused = !ran.status.success() && ran.stdout.is_empty();
            assert!(is_refused, "{shell:?}: {end} of {} bytes: {ran:?}", script.len());
        }
    }
}
