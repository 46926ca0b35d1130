//! The real `git`, which looks at repositories and changes them.

use std::process::{Command, Stdio};
use std::{io::Write as _, path::Path};

/// What `git` prints about a repository, and what it says besides. It must succeed. Nothing of the machine's configuration
/// counts. Its commits have a time of our clocks: a store changes nothing that was made long after its own time (D191).
#[track_caller]
pub fn run_git(repository: &Path, arguments: &[&str], input: &[u8]) -> (Vec<u8>, String) {
    let mut command = Command::new("git");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    command.env("GIT_COMMITTER_DATE", "1700000000 +0000").arg("-C").arg(repository).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().expect("`git` is on the path");
    running.stdin.take().expect("piped").write_all(input).expect("git reads its input");
    let output = running.wait_with_output().expect("git ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {}{said}", String::from_utf8_lossy(&output.stdout));
    (output.stdout, said)
}

/// What it prints and says, as one text.
#[track_caller]
pub fn git(repository: &Path, arguments: &[&str], input: &[u8]) -> String {
    let (printed, said) = run_git(repository, arguments, input);
    String::from_utf8_lossy(&printed).into_owned() + &said
}
