//! What docs/adopt.md tells a project to type works, on each kind of forge.

use std::{fs, path::Path, process::Command};

use tempfile::TempDir;

use super::written::commands;
use crate::support::fake_forge::{Asset, FakeForge, ForgeAnswer, ForgeWorld, Kind};
use crate::support::{SignersFile, alice};

const PAGE: &str = "docs/adopt.md";
const PROGRAM: &[u8] = b"pretend that this is a program\n";

/// Runs what the three people of the page would type. They answer yes, their keys have no passphrase, and the tools of
/// the forge do nothing, because the test puts there what they would.
fn paste(dir: &Path, world: &ForgeWorld, host: &str, commands: &str) -> String {
    let server = format!("http://{}", world.world.server.address());
    let commands = commands
        .replace(host, &world.forge.url(""))
        .replace("https://sign.example.org", &server)
        .replace("countersign keygen", "countersign keygen --no-password");
    let program = Path::new(env!("CARGO_BIN_EXE_countersign"));
    let people = "countersign() { command countersign --yes \"$@\"; }\nfor tool in git gh glab tea; do eval \"$tool() { :; }\"; done";
    let path = std::env::var("PATH").unwrap_or_default();
    let bin = program.parent().expect("a directory").display();
    let run = Command::new("bash")
        .args(["-c", &format!("set -e\n{people}\n{commands}")])
        .current_dir(dir)
        .env_clear()
        .envs([("PATH", format!("{bin}:{path}")), ("COUNTERSIGN_SERVER", server)])
        .env("COUNTERSIGN_CONFIG_DIR", dir.join("config"))
        .output()
        .expect("bash is there");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{host}: {said}\n{}", String::from_utf8_lossy(&run.stderr));
    said
}

/// Puts a signers file on the forge as `git push` would.
fn push_signers(forge: &FakeForge, bytes: &[u8]) {
    forge.put_signers("acme/app", "main", "svc.signers.json", &SignersFile::of(1, &[&alice()]));
    let answer = ForgeAnswer::bytes(bytes).with_header("content-type", "text/plain");
    forge.set(&forge.kind.branch_target("acme/app", "main", "svc.signers.json"), answer.clone());
    forge.set(&forge.file_target("acme/app", "main", "svc.signers.json"), answer);
}

#[test]
fn a_project_can_be_adopted_by_pasting_on_each_forge() {
    let sections = [
        (Kind::GitHub, "https://github.com", "### GitHub\n", "### GitLab\n"),
        (Kind::GitLab, "https://gitlab.com", "### GitLab\n", "### Forgejo\n"),
        (Kind::Forgejo, "https://codeberg.org", "### Forgejo\n", "## From then on"),
    ];
    for (kind, host, from, to) in sections {
        let dir = TempDir::new().expect("a temporary directory");
        let world = ForgeWorld::start(kind);
        paste(dir.path(), &world, host, &commands(PAGE, "## First, on any forge", "### GitHub\n"));
        let signers = fs::read(dir.path().join("svc.signers.json")).expect("it was written");
        push_signers(&world.forge, &signers);
        fs::create_dir(dir.path().join("dist")).expect("a directory");
        fs::write(dir.path().join("dist/app.tar.gz"), PROGRAM).expect("a file");
        world.forge.put_release("acme/app", "v1.0", &[Asset::new("app.tar.gz", PROGRAM)]);
        let said = paste(dir.path(), &world, host, &commands(PAGE, from, to));
        assert!(said.contains("Verified"), "{said}");
        assert_eq!(fs::read(dir.path().join("app.tar.gz")).expect("it was downloaded"), PROGRAM);
    }
}
