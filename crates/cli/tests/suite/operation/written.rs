//! What the documentation tells people to type works, and so does the demonstration.

use std::{env, ffi::OsString, fs, path::Path, path::PathBuf, process::Command, process::Output};

use countersign_testing::literals::free_port;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::keys::has_openssl;

/// The commands of a page from one heading to another, without those that build the program.
pub(super) fn commands(page: &str, from: &str, to: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = fs::read_to_string(path).expect("the page is there");
    let (_, text) = text.split_once(from).expect("the page has this heading");
    let (text, _) = text.split_once(to).expect("the page has this heading, too");
    let blocks = text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap_or_default());
    let lines = blocks.flat_map(str::lines);
    let is_build = |line: &&str| line.starts_with("cargo ") || line.starts_with("export PATH=");
    lines.filter(|line| !is_build(line)).map(|line| format!("{line}\n")).collect()
}

/// What a compiler is found with that rustup has installed.
fn rustup() -> impl Iterator<Item = (&'static str, OsString)> {
    let home = env::var_os("RUSTUP_HOME");
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".rustup").into()));
    let toolchain = env::var_os("RUSTUP_TOOLCHAIN");
    [("RUSTUP_HOME", home), ("RUSTUP_TOOLCHAIN", toolchain)]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
}

/// Runs what a person would paste, line by line, and stops at the first failure.
fn paste(commands: &str) -> (TempDir, Output) {
    let dir = TempDir::new().expect("a temporary directory");
    let [server, site] = [free_port(), free_port()];
    let commands = commands
        .replace("cd \"$(mktemp -d)\"\n", "")
        .replace(
            "countersign serve --dev --data-dir",
            "countersign serve --dev --listen 127.0.0.1:3000 --data-dir",
        )
        .replace("serve-files site >", "serve-files site --listen 127.0.0.1:8000 >")
        .replace("until countersign ping", "until [ -s server.log ] && countersign ping")
        .replace("127.0.0.1:3000", &format!("127.0.0.1:{server}"))
        .replace("127.0.0.1:8000", &format!("127.0.0.1:{site}"))
        .replace("127.0.0.1/8000", &format!("127.0.0.1/{site}"));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_countersign"));
    let bin = program.parent().expect("a directory").display();
    let path = env::var("PATH").unwrap_or_default();
    let script = format!("set -em\ntrap 'kill %1 %2 2>/dev/null || true' EXIT\n{commands}");
    let run = Command::new("bash")
        .args(["-c", &script])
        .current_dir(dir.path())
        .env_clear()
        .envs(rustup())
        .envs([
            ("PATH", format!("{bin}:{path}")),
            ("COUNTERSIGN_SERVER", format!("http://127.0.0.1:{server}")),
        ])
        .output();
    (dir, run.expect("bash is there"))
}

#[track_caller]
fn assert_works(run: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&run.stdout);
    let failed = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{}: {said}\n{failed}", run.status);
    for word in words {
        assert!(said.contains(word), "{word:?} is missing: {said}\n{failed}");
    }
}

#[test]
fn the_guide_can_be_pasted_from_its_beginning_to_its_end() {
    let (dir, run) = paste(&commands("docs/guide.md", "## 1. Install", "## On a real forge"));
    assert_works(&run, &["Verified app.tar.gz", "exit code 3", "exit code 4", "Revoke http/"]);
    let file = fs::read_to_string(dir.path().join("countersign-guide/app.tar.gz"));
    assert_eq!(file.expect("it was downloaded"), "pretend that this is a program\n");
}

#[test]
fn the_walk_through_of_the_readme_can_be_pasted() {
    let (_dir, run) = paste(&commands("README.md", "## First walk-through", "## Where to go next"));
    assert_works(&run, &["Verified app.tar.gz", "Create the repository"]);
    // The sample above it is such a report.
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md"));
    let said = String::from_utf8_lossy(&run.stdout);
    let [sample, report] = [page.expect("the page is there").as_str(), &said].map(|text| {
        let report = text.lines().skip_while(|line| !line.starts_with("Verified app.tar.gz: "));
        let lines = report.skip(1).take_while(|line| line.starts_with("  "));
        lines.map(|line| line.get(2..14).unwrap_or_default().trim_end().to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(sample, report);
    assert!(report.contains(&"signed by".to_owned()), "{said}");
}

#[test]
fn the_example_of_an_export_can_be_pasted_after_the_guide() {
    if !has_openssl() {
        return;
    }
    let guide = commands("docs/guide.md", "## 1. Install", "## 7. Change the signers");
    let example = commands("docs/export.md", "## Try it", "## Publish it");
    let (_dir, run) = paste(&format!("{guide}{example}"));
    assert_works(&run, &["VERIFIED: ", "app.tar.gz: OK", "Signature Verified Successfully"]);
}

#[test]
fn the_example_of_rebuilds_can_be_pasted_after_two_steps_of_the_guide() {
    let guide = commands("docs/guide.md", "## 1. Install", "## 3. Who signs");
    let example = commands("docs/rebuilds.md", "## Try it", "## In the builder's CI");
    let (dir, run) = paste(&format!("{guide}{example}"));
    let path = format!("{}/at-frida/source/hello.rs", dir.path().join("countersign-guide").display());
    let said = [
        "svc.index.json is what its source gives",
        "DIFFERENT frida got something else: hello.bin from commit", "exit code 3", &path,
        "Verified hello.bin: 1.0 of http://127.0.0.1:",
        "reproduced by 2 of 2 (any 2 of 3 builders) from commit",
    ];
    assert_works(&run, &said);
    let failed = String::from_utf8_lossy(&run.stderr);
    assert!(failed.contains("the source gives something else than"), "{failed}");
}

fn demo(args: &[&str], temporary: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.arg("demo").args(args).env_clear().env("TMPDIR", temporary);
    command.output().expect("the program starts")
}

#[test]
fn the_demonstration_shows_everything_and_leaves_nothing_behind() {
    let dir = TempDir::new().expect("a temporary directory");
    let run = demo(&[], dir.path());
    assert_works(
        &run,
        &[
            "$ countersign keygen --out alice", "$ countersign register http://127.0.0.1:",
            "$ countersign download http://127.0.0.1:", "Verified app.tar.gz",
            "is not the file that was signed", "joins as artifact signer", "was REVOKED on",
        ],
    );
    assert_eq!(fs::read_dir(dir.path()).expect("it is there").count(), 0);
}

#[test]
fn the_demonstration_tells_programs_its_steps() {
    let dir = TempDir::new().expect("a temporary directory");
    let run = demo(&["--json"], dir.path());
    let told: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
    let codes = told["steps"].as_array().expect("a list").iter().map(|step| step["exit_code"].as_i64());
    let codes: Vec<_> = codes.flatten().collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count() + 2, codes.len());
    assert!(codes.contains(&3) && codes.contains(&4), "{codes:?}");
}
