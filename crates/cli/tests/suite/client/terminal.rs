//! Questions on a real pseudo-terminal, by way of `script` of util-linux: only a yes signs.

use std::{fs, os::unix::fs::MetadataExt as _};

use countersign_core::values::digest::Sha256;

use crate::support::client::{Computer, Ran, put_release, text};
use crate::support::{SignersFile, Terminal, World, alice};

/// The client on a terminal, with alice's key.
fn start(computer: &Computer, args: &[&str]) -> Option<Terminal> {
    start_with(computer, "", args)
}

/// `no_color`: the value of NO_COLOR.
fn start_with(computer: &Computer, no_color: &str, args: &[&str]) -> Option<Terminal> {
    Terminal::start(args, |command| {
        computer.settle(command);
        command.env("NO_COLOR", no_color).env("COUNTERSIGN_KEY", text(&computer.key_of("alice")));
    })
}

/// A project of alice with two unsigned releases; their indexes.
fn unsigned() -> (World, Computer, [String; 2]) {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    let indexes = [("acme/app/1.0", &b"content"[..]), ("acme/app/2.0", b"new")].map(|(dir, content)| {
        let sums = put_release(&world.files, dir, &[("app", content)]);
        world.register_assets(&alice(), &[&sums]).ok();
        world.index_path(dir)
    });
    let computer = Computer::of(&world.server);
    (world, computer, indexes)
}

#[test]
fn anything_but_yes_signs_nothing() {
    let (world, computer, indexes) = unsigned();
    let index = &indexes[0];
    // The last one is an interrupt from the keyboard.
    for answer in ["n\n", "\n", "yess\n", "no\n", "\u{4}", "\u{3}"] {
        let Some(mut terminal) = start(&computer, &["sign", index]) else { return };
        terminal.answer("[y/N]", answer);
        let (code, seen) = terminal.end();
        assert_ne!(code, 0, "{answer:?}: {seen}");
        assert!(answer == "\u{3}" || (code == 1 && seen.contains("hint")), "{answer:?}: {seen}");
    }
    // The question says how a comparison went.
    computer.write("built/app", "content");
    let Some(mut terminal) = start(&computer, &["sign", index, "--files", "built"]) else { return };
    terminal.answer("[y/N]", "n\n");
    let seen = terminal.seen();
    assert!(seen.contains("All files are the same") && !seen.contains("been compared"), "{seen}");
    assert_eq!(terminal.end().0, 1);
    // What differs is not asked about.
    computer.write("built/app", "Content");
    let Some(terminal) = start(&computer, &["sign", index, "--files", "built"]) else { return };
    let (code, seen) = terminal.end();
    assert!(code == 3 && seen.contains("DIFFERS") && !seen.contains("[y/N]"), "{code}: {seen}");
    assert_eq!(world.pending(&alice()), indexes);
    // Whether `--json` refuses or asks: what is to be signed must have been seen before a `y` counts.
    let Some(mut terminal) = start(&computer, &["sign", index, "--json"]) else { return };
    terminal.press("y\n");
    let (_, seen) = terminal.end();
    let is_signed = world.pending(&alice()).len() < 2;
    let shown = seen.split("[y/N]").next().unwrap();
    assert!(!is_signed || shown.contains("sha256"), "signed without having been shown: {seen}");
}

#[test]
fn yes_signs_what_was_shown_before_the_question_and_each_file_by_itself() {
    let (world, computer, [first, second]) = unsigned();
    let Some(mut terminal) = start(&computer, &["sign", "--all"]) else { return };
    terminal.answer("[y/N]", "y\n");
    let shown = terminal.seen().split("[y/N]").next().unwrap().to_owned();
    for part in [&first, &world.id("acme/app"), "app", &Sha256::of(b"content").to_string()] {
        assert!(shown.contains(part), "`{part}` is missing: {shown}");
    }
    assert!(shown.to_lowercase().contains("not been compared"), "{shown}");
    terminal.wait_for(&second);
    terminal.answer("[y/N]", "n\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, 1, "{seen}");
    assert_eq!(world.pending(&alice()), [second.as_str()], "the first one is signed");
    let Some(mut terminal) = start(&computer, &["sign", "--all"]) else { return };
    terminal.answer("[y/N]", "YES\n");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(world.pending(&alice()), [""; 0]);

    // A revocation and forgetting a project are asked about too.
    computer.download(&world.files.url("/acme/app/1.0/app")).ok();
    let Some(mut terminal) = start(&computer, &["revoke", &first, "--reason", "a bad build"]) else { return };
    terminal.answer("[y/N]", "n\n");
    let (code, seen) = terminal.end();
    assert!(code == 1 && seen.contains("a bad build") && seen.contains("app"), "{code}: {seen}");
    assert!(world.is_complete(&alice(), &first));
    let project = world.id("acme/app");
    for (answer, code) in [("n\n", 1), ("y\n", 0)] {
        let Some(mut terminal) = start(&computer, &["trust", "remove", &project]) else { return };
        terminal.answer("[y/N]", answer);
        assert_eq!(terminal.end().0, code);
        assert_eq!(computer.pins()["projects"][&project].is_object(), code == 1);
    }
}

#[test]
fn a_terminal_gets_colours_unless_the_user_wants_none() {
    let (_world, computer, [index, _]) = unsigned();
    for (no_color, more, is_coloured) in
        [("", &[][..], true), ("1", &[], false), ("", &["--color", "never"], false), ("", &["--json"], false)]
    {
        let args = [&["status", &index], more].concat();
        let Some(terminal) = start_with(&computer, no_color, &args) else { return };
        let seen = terminal.end().1;
        assert_eq!(seen.contains('\u{1b}'), is_coloured, "{no_color:?} {more:?}: {seen:?}");
    }
}

/// `init` asks for what nothing else says, and makes a key where the client looks for one.
#[test]
fn init_asks_for_all_it_needs_and_replaces_nothing() {
    let computer = Computer::offline();
    computer.write("bob.pub", fs::read(computer.key_of("bob").with_extension("pub")).unwrap());
    let home = computer.path("home");
    let init = |args: &[&str]| {
        Terminal::start(&[&["init", "--no-password"], args].concat(), |command| {
            computer.settle(command);
            command.env_remove("COUNTERSIGN_SERVER").env("HOME", &home).env("USER", "dave");
        })
    };
    // An answer that cannot be used is asked for again, and the others are kept.
    let answers: [(&str, &str); 16] = [
        ("Where is the project", "acme/app\n"),
        ("is not the address of a project", ""),
        ("Where is the project", "https://codeberg.org/acme/app\n"),
        ("Which signing server", "sign.example.org\n"),
        ("error:", ""),
        ("Which signing server", "https://127.0.0.1:9\n"),
        ("cannot be reached", ""),
        ("Which signing server", "https://127.0.0.1:9\n"),
        ("Another signer", "bob\n"),
        ("error:", ""),
        ("Another signer", "bob=bob.pub\n"),
        ("Another signer", "carol=bob.pub\n"),
        ("error:", ""),
        ("Another signer", "\n"),
        ("your name in the signers file? [dave]", "bob\n"),
        ("error:", ""),
    ];
    let Some(mut terminal) = init(&[]) else { return };
    answers.iter().for_each(|(question, answer)| terminal.answer(question, answer));
    terminal.answer("your name in the signers file? [dave]", "\n");
    terminal.answer("How many of the 2 signers must sign a release? [2]", "\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    let url = "https://codeberg.org/acme/app/src/branch/main/svc.signers.json";
    for part in
        ["Made your key", "any 2 of 2 keys", "dave (svc-pub:", "git push", url, "release acme/app v1.0"]
    {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    let key = fs::read_to_string(home.join(".ssh/id_ed25519.pub")).unwrap();
    assert!(key.ends_with(" dave\n"), "{key}");
    let signers = String::from_utf8(computer.read("svc.signers.json")).unwrap();
    assert!(signers.contains("https://127.0.0.1:9"), "{signers}");
    for (name, mode) in [(".ssh", 0o40700), (".ssh/id_ed25519", 0o100_600)] {
        assert_eq!(fs::metadata(home.join(name)).unwrap().mode(), mode, "{name}");
    }

    // The end of the input answers nothing.
    fs::remove_file(computer.path("svc.signers.json")).unwrap();
    let mut terminal = init(&[]).unwrap();
    terminal.answer("Where is the project", "\u{4}");
    let (code, seen) = terminal.end();
    assert!(code == 2 && seen.contains("not answered"), "{code}: {seen}");
    computer.write("svc.signers.json", &signers);

    // What is there stays: the file, and the key, which is found from now on.
    let (code, seen) = init(&[]).unwrap().end();
    assert!(code == 1 && seen.contains("svc.signers.json") && !seen.contains('?'), "{code}: {seen}");
    fs::remove_file(computer.path("svc.signers.json")).unwrap();
    let mut terminal =
        init(&["https://codeberg.org/acme/app", "--name", "dave", "--signer", "bob=bob.pub"]).unwrap();
    terminal.answer("How many", "1\n");
    let (code, seen) = terminal.end();
    assert!(
        code == 0 && seen.contains("any 1 of 2 keys") && !seen.contains("Made your key"),
        "{code}: {seen}"
    );
    let mut command = computer.command(&["keygen", "--no-password"]);
    Ran::of(command.env("HOME", &home)).failed(1).says(&["id_ed25519", "exists"]);
    assert_eq!(fs::read_to_string(home.join(".ssh/id_ed25519.pub")).unwrap(), key);
}

#[test]
fn what_is_signed_is_shown_before_a_passphrase_is_asked_for() {
    let world = World::start();
    let computer = Computer::of(&world.server);
    let secret = computer.write("secret", "correct horse");
    computer.write("wrong", "incorrect horse");
    let secret = secret.to_str().unwrap();
    computer.run(&["keygen", "--out", "own", "--password-file", secret]).ok();
    computer.run(&["signers", "new", "--artifact", "me=own.pub", "--threshold", "1", "-o", "s.json"]).ok();
    world.files.put("/acme/app/svc.signers.json", computer.read("s.json"));
    let own = ["--key", "own", "--password-file", secret];
    let register = ["register", &world.files.url("/acme/app/svc.signers.json")];
    // A lost passphrase is a lost key. Before the first signers file is in force, it is replaced in that file.
    let key = key_in(&computer, "own.pub");
    let lose = |args: &[&str], place: &str, old: &str| {
        let hint = format!("countersign signers edit {place} --replace {old}=own-new.pub");
        let args = [args, &["--key", "own", "--password-file", "wrong"]].concat();
        computer.run(&args).failed(1).says(&["cannot be decrypted", &hint]);
    };
    lose(&register, "svc.signers.json", &key);
    computer.run(&[&register[..], &own].concat()).ok();
    lose(&["sign", "--all", "--yes"], "svc.signers.json", "me");
    computer.run(&[&["sign", "--all", "--yes"], &own[..]].concat()).ok();
    let sums = put_release(&world.files, "acme/app/1.0", &[("app", b"content"), ("sub/lib", b"library")]);
    computer.run(&[&["release", "--checksums", &sums], &own[..]].concat()).ok();
    let sign = ["sign", "acme/app", "1.0", "--yes", "--key", "own"];
    let asked = computer.run(&sign).failed(2).says(&["sub/lib", "sha256:", "is encrypted"]);
    let [shown, passphrase] = ["sha256:", "is encrypted"].map(|part| asked.stderr.find(part));
    assert!(shown < passphrase, "{asked:?}");
    lose(&sign[..4], &world.id("acme/app"), "me");
    // What differs is refused before that.
    computer.write("built/app", "Content");
    computer.run(&[&sign[..], &["--files", "built"]].concat()).failed(3).says_nothing_of(&["encrypted"]);
}

/// The key in a `.pub` file, as the client writes it.
fn key_in(computer: &Computer, file: &str) -> String {
    let told = computer.json(&["signers", "new", "--artifact", file, "--threshold", "1"]);
    let file: serde_json::Value = serde_json::from_str(told["signers_file"].as_str().unwrap()).unwrap();
    file["artifact_signers"][0]["signers"][0]["data"]["pubkey"].as_str().unwrap().to_owned()
}
