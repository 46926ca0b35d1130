//! What holds for all scripts of `packaging`.

use std::path::{Path, PathBuf};
use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt as _, process::Command};

use super::{packaging, program};
use crate::export::scene::list;
use crate::support::client::{Computer, Ran, text};
use crate::support::html::short_key;
use crate::support::{Running, SignersFile, World, alice, keys::installed, scripts::assert_whole_or_nothing};

fn scripts_in(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let mut scripts = Vec::new();
    for dir in dirs {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let is_script = path.is_file()
                && (fs::read(&path).unwrap().starts_with(b"#!/bin/sh\n") || path.ends_with("job.sh"));
            scripts.extend(is_script.then_some(path));
        }
    }
    scripts
}

#[test]
fn shellcheck_finds_nothing() {
    if !installed("shellcheck") {
        return;
    }
    let scripts = scripts_in(&[packaging(""), packaging("debian")]);
    assert!(scripts.len() >= 10, "{scripts:?}");
    Ran::of(Command::new("shellcheck").args(scripts)).ok();
}

/// Scripts of jobs and of packages are among them. The shells only read here: a script that is one command runs nothing
/// before it is read.
#[test]
fn a_script_that_was_cut_off_runs_nothing() {
    let scripts = scripts_in(&[packaging(""), packaging("debian"), packaging("npm"), packaging("../ci")]);
    assert!(scripts.len() >= 17, "{scripts:?}");
    for path in scripts {
        println!("{}", path.display());
        assert_whole_or_nothing(&fs::read(path).unwrap(), &["-n"], &[]);
    }
}

/// All who build one commit must get the same pages, so the clock has no say.
#[test]
fn manual_pages_have_the_date_that_the_build_names() {
    let dir = tempfile::TempDir::new().unwrap();
    let man = |epoch: &str, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        Ran::of(command.arg("man").args(args).current_dir(dir.path()).env("SOURCE_DATE_EPOCH", epoch))
    };
    man("1700000000", &[]).ok().says(&[".TH countersign 1 2023-11-14 "]);
    man("1700000000", &["pages"]).ok();
    let page = |name: &str| fs::read_to_string(dir.path().join("pages").join(name)).unwrap();
    for (page, name) in [
        (page("countersign.1"), "countersign"),
        (page("countersign-signers-new.1"), "countersign-signers-new"),
    ] {
        assert!(page.contains(&format!("\n.TH {name} 1 2023-11-14 ")), "{page}");
    }
    assert!(!dir.path().join("pages/countersign-help.1").exists());
    // An empty variable is as none.
    man("", &[]).ok().says(&[".TH countersign 1 \"\" "]);
    for odd in ["yesterday", "1.5", "99999999999999"] {
        man(odd, &["none"]).failed_with(2).says(&["SOURCE_DATE_EPOCH"]);
    }
    assert!(!dir.path().join("none").exists());
}

#[test]
fn the_packaged_unit_and_configuration_fit_together() {
    let read = |name| fs::read_to_string(packaging(name)).unwrap();
    let (unit, users, config) =
        (read("countersign.service"), read("sysusers.conf"), read("countersign.toml"));
    assert!(unit.contains("serve --config /etc/countersign/countersign.toml\n"), "{unit}");
    assert!(unit.contains("\nUser=countersign\n") && users.starts_with("u countersign "), "{users}");
    assert!(config.contains("data_dir = \"/var/lib/countersign\"") && users.contains("/var/lib/countersign"));
    // No stranger reaches a server that no one has configured.
    assert!(config.contains("\nlisten = \"127.0.0.1:"), "{config}");
    let dir = tempfile::TempDir::new().unwrap();
    // Another server can have the port of the configuration, such as the one of the README. If it is free, it is taken
    // here.
    let _taken = TcpListener::bind("127.0.0.1:3000");
    let mut check = Command::new(env!("CARGO_BIN_EXE_countersign"));
    check.args(["serve", "--check", "--config"]).arg(packaging("countersign.toml"));
    check.env_clear().env("COUNTERSIGN_LISTEN", "127.0.0.1:0");
    Ran::of(check.env("COUNTERSIGN_DATA_DIR", dir.path().join("data"))).ok();
}

fn write_program(path: PathBuf, script: &str) -> PathBuf {
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn package_tables() -> toml::Table {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    manifest["package"]["metadata"].as_table().unwrap().clone()
}

/// Both lists in Cargo.toml pack every file that `packaging/stage` puts there, once and in its place.
#[test]
fn packages_have_every_staged_file() {
    let dir = tempfile::TempDir::new().unwrap();
    let program = write_program(dir.path().join("program"), &format!("exec {} \"$@\"", program()));
    Ran::of(Command::new(packaging("stage")).arg(program).arg(dir.path().join("root"))).ok();
    let staged = list(&dir.path().join("root"));
    for name in ["usr/bin/countersign", "usr/share/countersign/ci/gate.sh", "usr/share/countersign/ci/job.sh"]
    {
        assert!(staged.iter().any(|staged| staged == name), "{name}: {staged:?}");
    }
    let tables = package_tables();
    let rpm = tables["generate-rpm"]["assets"].as_array().unwrap().iter();
    let rpm = rpm.map(|asset| (asset["source"].as_str().unwrap(), asset["dest"].as_str().unwrap()));
    let deb = tables["deb"]["assets"].as_array().unwrap().iter();
    let deb = deb.map(|asset| (asset[0].as_str().unwrap(), asset[1].as_str().unwrap()));
    for (kind, assets) in [("rpm", rpm.collect::<Vec<_>>()), ("deb", deb.collect())] {
        for name in &staged {
            let found: Vec<String> = assets.iter().filter_map(|(from, to)| packed(name, from, to)).collect();
            assert_eq!(found, [name.as_str()], "{kind}");
        }
        for (from, to) in &assets {
            assert!(
                staged.iter().any(|name| packed(name, from, to).is_some()),
                "{kind} packs nothing as {from}"
            );
        }
    }
}

/// Where an entry of a list puts this file, if it does.
fn packed(name: &str, from: &str, to: &str) -> Option<String> {
    let from = from.strip_prefix("../../target/package/").unwrap();
    let to = to.trim_start_matches('/');
    if let Some(dir) = from.strip_suffix("**/*") {
        return name.strip_prefix(dir).map(|rest| format!("{to}{rest}"));
    }
    if let Some(dir) = from.strip_suffix('*') {
        let rest = name.strip_prefix(dir).filter(|rest| !rest.contains('/'))?;
        return Some(format!("{to}{rest}"));
    }
    let last = from.rsplit('/').next()?;
    (name == from).then(|| if to.ends_with('/') { format!("{to}{last}") } else { to.to_owned() })
}

/// Runs the scripts as rpm does: with 0 at a removal, and 1 or 2 otherwise.
#[test]
fn the_scripts_of_the_rpm_tell_systemd() {
    let dir = tempfile::TempDir::new().unwrap();
    let log = dir.path().join("log");
    write_program(dir.path().join("systemctl"), &format!("echo \"$1 $2 $3\" >>'{}'; false", log.display()));
    let tables = package_tables();
    let run = |name: &str, count: &str| {
        let script = tables["generate-rpm"][name].as_str().unwrap();
        let script = script.replace("/run/systemd/system", dir.path().to_str().unwrap());
        let _ = fs::remove_file(&log);
        let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
        Ran::of(Command::new("sh").args(["-c", &script, "rpm", count]).env("PATH", path)).ok();
        fs::read_to_string(&log).unwrap_or_default()
    };
    assert_eq!(run("pre_uninstall_script", "0").trim_end(), "--no-reload disable --now");
    assert_eq!(run("pre_uninstall_script", "1"), "");
    assert_eq!(run("post_uninstall_script", "0").trim_end(), "daemon-reload");
    let upgraded = run("post_uninstall_script", "1");
    assert_eq!(
        upgraded.lines().map(str::trim_end).collect::<Vec<_>>(),
        ["daemon-reload", "try-restart countersign.service"]
    );
}

/// podman's own format has no health checks, and drops this one with a warning only.
#[test]
fn images_are_built_in_a_format_that_keeps_the_health_check() {
    let file = fs::read_to_string(packaging("Containerfile")).unwrap();
    assert!(file.contains("\nHEALTHCHECK "), "{file}");
    let page = fs::read_to_string(packaging("../docs/install.md")).unwrap();
    let operations = fs::read_to_string(packaging("../docs/operations.md")).unwrap();
    for (what, text) in
        [("Containerfile", file), ("docs/install.md", page), ("docs/operations.md", operations)]
    {
        let builds: Vec<_> = text.lines().filter(|line| line.contains("podman build ")).collect();
        assert!(!builds.is_empty(), "{what}");
        assert!(
            builds.iter().all(|line| line.contains("podman build --format docker ")),
            "{what}: {builds:?}"
        );
    }
}

/// What `docs/events.md` recommends to signers. The program that sends mails is a stand-in that prints them.
#[test]
fn a_signer_gets_an_e_mail_when_something_waits() {
    let alice = alice();
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let computer = Computer::of(&world.server);
    fs::create_dir(computer.path("bin")).unwrap();
    write_program(computer.path("bin/sendmail"), "echo \"$*\"; cat");
    write_program(computer.path("bin/countersign"), &format!("exec {} \"$@\"", program()));
    let path = format!("{}:{}", text(&computer.path("bin")), std::env::var("PATH").unwrap());
    let notify = |args: &[&str]| {
        let mut notify = Command::new(packaging("notify"));
        computer.settle(&mut notify);
        notify.args(args).env("PATH", &path);
        notify
    };
    for (args, why) in [
        (&[][..], "usage: notify mail ADDRESS"),
        (&["post"], "usage: notify mail ADDRESS"),
        (&["mail", "alice"], "\"alice\" is not an e-mail address"),
        (&["mail", "a@example.org\nBcc: b@example.org"], "is not an e-mail address"),
    ] {
        Ran::of(&mut notify(args)).failed_with(2).says(&[why]);
    }
    let key = computer.key_of("alice");
    let mut running = Running::start(notify(&["mail", "alice@example.org", "--key", text(&key)]));
    running.await_note("Watching http://");
    let index = world.add_release(&alice, "acme/app/1.0");
    let mail: Vec<String> = (0..12).map(|_| running.next_line().trim_end().to_owned()).collect();
    assert_eq!(
        mail[..3],
        ["-t -oi", "To: alice@example.org", "Subject: Countersign: something waits for your signature"]
    );
    assert!(mail.contains(&index) && mail.contains(&format!("  countersign sign {index}")), "{mail:#?}");
    let missing = format!(" has 0 of 1; 1 more from {}", short_key(&alice));
    assert!(mail.iter().any(|line| line.ends_with(&missing)), "{mail:#?}");
    // No process is left: the client would hold standard error open.
    running.send("TERM");
    assert_eq!(running.end(), (Some(143), String::new(), String::new()));
}
