//! FIDO keys in every role, through an agent that emulates the device (D255–D257). No device is needed.

use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering};
use std::{fs, path::PathBuf, process::Command, thread};
use std::{io::Write as _, os::unix::net::UnixListener};

use countersign_core::values::key::{decode_base64, encode_base64};
use countersign_testing::fido::{FidoKey, PRESENT, SignsDigests as _, fido};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{read_request, string};
use crate::support::client::{Computer, Ran, put_release, text};
use crate::support::fsck::fsck;
use crate::support::keys::{has_openssl, installed, run_tool};
use crate::support::{Request, World};

/// The people with FIDO keys, and the seeds of these.
const PEOPLE: [(&str, u8); 3] = [("frieda", 9), ("felix", 10), ("fiona", 11)];

/// An agent that holds all their keys. Someone touches each key whenever it blinks.
struct FidoAgent {
    dir: TempDir,
    touches: Arc<AtomicUsize>,
}

impl FidoAgent {
    /// `flags`: what the keys say of a touch.
    fn start(flags: u8) -> Self {
        let (dir, touches) = (TempDir::new().unwrap(), Arc::new(AtomicUsize::new(0)));
        let listener = UnixListener::bind(dir.path().join("socket")).unwrap();
        let counted = Arc::clone(&touches);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read_request(&mut stream);
                let answer = match request.split_first() {
                    Some((11, [])) => list_keys(),
                    Some((13, rest)) => {
                        let counter = counted.fetch_add(1, Ordering::SeqCst) as u32;
                        sign(rest, flags, counter)
                    }
                    _ => vec![5],
                };
                let _ = stream.write_all(&string(&answer));
            }
        });
        Self { dir, touches }
    }

    /// How many touches there were since the last look.
    fn touches(&self) -> usize {
        self.touches.swap(0, Ordering::SeqCst)
    }

    fn command(&self, computer: &Computer, name: &str, args: &[&str]) -> Command {
        let mut command = computer.command(args);
        command.env("SSH_AUTH_SOCK", self.dir.path().join("socket"));
        command.env("COUNTERSIGN_KEY", line_of(computer, name));
        command
    }

    /// Runs the client with the key of this person, who has to touch it so often.
    #[track_caller]
    fn run_as(&self, computer: &Computer, name: &str, args: &[&str], touches: usize) -> Ran {
        let ran = Ran::of(&mut self.command(computer, name, args)).ok();
        assert_eq!(self.touches(), touches, "{ran:?}");
        let told = ran.stderr.matches("Touch your key to sign.").count();
        assert_eq!(told, touches, "{ran:?}");
        ran
    }
}

fn list_keys() -> Vec<u8> {
    let entry = |(name, seed): (&str, u8)| [string(&fido(seed).blob()), string(name.as_bytes())].concat();
    [vec![12, 0, 0, 0, 3], PEOPLE.map(entry).concat()].concat()
}

fn sign(request: &[u8], flags: u8, counter: u32) -> Vec<u8> {
    let (blob, rest) = split_string(request);
    let (message, _) = split_string(rest);
    let Some((_, seed)) = PEOPLE.into_iter().find(|(_, seed)| fido(*seed).blob() == blob) else {
        return vec![5];
    };
    let signature = fido(seed).sign_message(message, flags, counter).to_bytes();
    let kind = string(b"sk-ssh-ed25519@openssh.com");
    let inner = [kind, string(&signature[..64]), signature[64..].to_vec()].concat();
    [vec![14], string(&inner)].concat()
}

fn split_string(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (length, rest) = bytes.split_first_chunk().expect("a length");
    rest.split_at(u32::from_be_bytes(*length) as usize)
}

fn key_of(name: &str) -> FidoKey {
    let (_, seed) = PEOPLE.into_iter().find(|(known, _)| *known == name).expect("someone with a FIDO key");
    fido(seed)
}

/// The `.pub` file of a FIDO key.
fn line_of(computer: &Computer, name: &str) -> PathBuf {
    computer.write(&format!("{name}.pub"), format!("{}\n", key_of(name).line()))
}

fn signers_file(computer: &Computer, more: &[&str]) -> Ran {
    for (name, _) in PEOPLE {
        line_of(computer, name);
    }
    let alice = format!("alice={}", text(&computer.key_of("alice").with_extension("pub")));
    let team =
        ["signers", "new", "--artifact", &alice, "frieda=frieda.pub", "felix=felix.pub", "--threshold", "2"];
    let output =
        ["--master", "fiona=fiona.pub", "--threshold", "master:1", "-o", "svc.signers.json", "--force"];
    fs::remove_file(computer.path("svc.signers.json")).ok();
    computer.run(&[&team, more, &output[..output.len() - 1]].concat()).ok()
}

/// A project of alice, frieda and felix, of whom two sign releases. Fiona is its master.
fn project(agent: &FidoAgent) -> (World, Computer) {
    let world = World::start();
    let computer = Computer::of(&world.server);
    signers_file(&computer, &["--format", "ssh"]);
    world.files.put("/acme/app/svc.signers.json", computer.read("svc.signers.json"));
    let url = world.files.url("/acme/app/svc.signers.json");
    agent.run_as(&computer, "frieda", &["register", &url], 1);
    for name in ["frieda", "felix", "fiona"] {
        // The file and its metadata.
        let review = agent.run_as(&computer, name, &["sign", "--all", "--yes"], 2);
        review.says(&["your key signs 2 times, and wants a touch for each"]);
    }
    computer.run_as("alice", &["sign", "--all", "--yes"]).ok().says(&["complete"]);
    (world, computer)
}

#[test]
fn a_team_with_fido_keys_signs_objects_revokes_and_vetoes() {
    let agent = FidoAgent::start(PRESENT);
    let (mut world, computer) = project(&agent);
    let sums = put_release(&world.files, "acme/app/1.0", &[("app.tar.gz", b"the archive")]);
    agent.run_as(&computer, "felix", &["release", "--checksums", &sums], 1);
    agent.run_as(&computer, "felix", &["pending"], 0).says(&["1.0"]);
    let index = world.index_path("acme/app/1.0");
    let review = agent.run_as(&computer, "frieda", &["sign", &index, "--yes"], 2);
    review.says(&["SHA256SUMS for ssh; your key signs 2 times, and wants a touch for each"]);
    agent.run_as(&computer, "felix", &["object", &index, "--reason", "built twice", "--yes"], 1);
    agent.run_as(&computer, "felix", &["object", &index, "--withdraw", "--yes"], 1);
    computer.run_as("alice", &["sign", &index, "--yes"]).ok().says(&["complete"]);

    let file = computer.write("app.tar.gz", "the archive");
    computer
        .run(&["verify", text(&file), "--yes"])
        .ok()
        .says(&["app.tar.gz: 1.0 of ", "frieda (svc-pub:", "2 of 2 signatures"]);
    let page = world.server.send(&Request::get(format!("/p/{index}"))).text();
    assert!(page.contains("frieda"), "{page}");
    for (tool, is_here) in [("openssl", has_openssl()), ("ssh", installed("ssh-keygen"))] {
        if is_here {
            check_export(&computer, &index, tool);
        }
    }
    let revoke = ["revoke", &index, "--reason", "a bad build", "--yes"];
    agent.run_as(&computer, "frieda", &revoke, 2);
    assert_eq!(computer.run(&["verify", text(&file), "--yes"]).code, 4);

    // New signers, which the master vetoes.
    signers_file(&computer, &[]);
    world.files.put("/acme/app/svc.signers.json", computer.read("svc.signers.json"));
    let url = world.files.url("/acme/app/svc.signers.json");
    agent.run_as(&computer, "felix", &["update", &url], 1);
    let project = world.id("acme/app");
    agent.run_as(&computer, "fiona", &["veto", &project, "--reason", "no one asked", "--yes"], 1);
    // The whole history follows from the rules.
    world.server.stop();
    fsck(&world.server.repository(), &[]).is_clean();
}

/// The stock tool accepts the export of a mixed team, and no changed one.
#[track_caller]
fn check_export(computer: &Computer, index: &str, tool: &str) {
    if tool == "ssh" {
        // Alice has signed for ssh, too: the signers file asks.
        let allowed = computer.run(&["export", index, "--for", tool, "-o", tool]).ok();
        let text = String::from_utf8(computer.read("ssh/allowed_signers")).unwrap();
        assert!(
            text.contains(" sk-ssh-ed25519@openssh.com ") && text.contains(" ssh-ed25519 "),
            "{allowed:?}"
        );
    } else {
        computer.run(&["export", index, "--for", tool, "-o", tool]).ok();
        assert_eq!(computer.read("openssl/signatures/signer-2.signed").len(), 69);
        assert_eq!(computer.read("openssl/signatures/signer-2.sig").len(), 64);
    }
    let script = computer.path(&format!("{tool}/verify.sh"));
    let verify = || Ran::of(Command::new("sh").arg(&script).arg(computer.path("")));
    verify().ok().says(&["Group 1: 2 signed, 2 needed.", "VERIFIED: "]);
    if installed("shellcheck") {
        assert_eq!(run_tool(Command::new("shellcheck").args(["-s", "sh"]).arg(&script)), "");
    }
    if tool == "openssl" {
        let name = "openssl/signatures/signer-2.signed";
        let framed = computer.read(name);
        // The application, the flags, the counter, and what was signed.
        for (byte, bit) in [(0, 1), (32, 1), (36, 1), (68, 1)] {
            let mut changed = framed.clone();
            changed[byte] ^= bit;
            computer.write(name, changed);
            assert_eq!(verify().code, 1, "byte {byte}");
        }
        computer.write(name, [&framed[..], b"x"].concat());
        assert_eq!(verify().code, 1);
        computer.write(name, framed);
        verify().ok();
    }
}

/// Someone touches the key for each release. The exported script checks the touch, as of signers.
#[test]
fn a_builder_with_a_fido_key_states_what_was_built() {
    let agent = FidoAgent::start(PRESENT);
    let world = World::start();
    let computer = Computer::of(&world.server);
    let builder = format!("frieda={}", text(&line_of(&computer, "frieda")));
    let alice = format!("alice={}", text(&computer.key_of("alice").with_extension("pub")));
    let team = ["signers", "new", "--artifact", &alice, "--threshold", "1", "--builder", &builder];
    let wanted = ["--threshold", "builder:1", "--require-rebuilds", "-o", "svc.signers.json"];
    computer.run(&[&team[..], &wanted].concat()).ok();
    world.files.put("/acme/app/svc.signers.json", computer.read("svc.signers.json"));
    let url = world.files.url("/acme/app/svc.signers.json");
    computer.run_as("alice", &["register", &url]).ok();
    agent.run_as(&computer, "frieda", &["sign", "--all", "--yes"], 2);
    computer.run_as("alice", &["sign", "--all", "--yes"]).ok();
    let sums = put_release(&world.files, "acme/app/1.0", &[("app.tar.gz", b"the archive")]);
    computer.run_as("alice", &["release", "--checksums", &sums]).ok();
    let index = world.index_path("acme/app/1.0");
    computer.write("dist/app.tar.gz", "the archive");
    let rebuild = ["rebuild", &index, "--files", "dist", "--source", &"0123".repeat(10), "--yes"];
    agent.run_as(&computer, "frieda", &rebuild, 1);
    computer.run_as("alice", &["sign", &index, "--yes"]).ok().says(&["complete"]);
    if !has_openssl() {
        return;
    }
    computer.run(&["export", &index, "--for", "openssl", "-o", "openssl"]).ok();
    let script = computer.path("openssl/verify.sh");
    let verify = || Ran::of(Command::new("sh").arg(&script).arg(computer.path("dist")));
    verify().ok().says(&["builder-1 has signed.", "Reproduced: enough builders", "VERIFIED: "]);
    if installed("shellcheck") {
        assert_eq!(run_tool(Command::new("shellcheck").args(["-s", "sh"]).arg(&script)), "");
    }
    let name = "openssl/signatures/builder-1.signed";
    let mut framed = computer.read(name);
    framed[32] ^= 1;
    computer.write(name, framed);
    assert_eq!(verify().says(&["builder-1.signed is not about rebuilds/builder-1.json"]).code, 1);
}

#[test]
fn a_key_that_no_one_touched_signs_nothing() {
    let agent = FidoAgent::start(0);
    let world = World::start();
    let computer = Computer::of(&world.server);
    let ran = Ran::of(&mut agent.command(&computer, "frieda", &["ping"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.says(&["its signature is wrong"]);
}

#[test]
fn the_server_judges_signatures_of_fido_keys_as_they_are_sent() {
    let agent = FidoAgent::start(PRESENT);
    let (world, computer) = project(&agent);
    let sums = put_release(&world.files, "acme/app/1.0", &[("app.tar.gz", b"the archive")]);
    computer.run_as("alice", &["release", "--checksums", &sums]).ok();
    let index = world.index_path("acme/app/1.0");
    let digest = countersign_core::values::digest::Sha512::of(&world.read(&index));
    let frieda = key_of("frieda");
    let right = frieda.sign(&digest).to_bytes();
    let submit = |signature: &[u8]| {
        let body = json!({
            "file_path": index,
            "public_key": frieda.public_key().to_base64(),
            "signatures": { &index: encode_base64(signature) },
        });
        world.submit(&crate::support::mallory(), &body)
    };
    let message = countersign_core::values::key::KeyFormat::Fido.message(&digest);
    let untouched = frieda.sign_message(&message, 0, 7).to_bytes();
    for (what, signature) in [
        ("cut to 64 bytes", right[..64].to_vec()),
        ("cut", right[..68].to_vec()),
        ("longer", [&right[..], &[0]].concat()),
        ("untouched", untouched),
        ("another counter", [&right[..68], &[right[68] ^ 1]].concat()),
        ("the digest itself", frieda.sign_message(digest.as_bytes(), PRESENT, 7).to_bytes()),
    ] {
        assert_eq!(submit(&signature).status, 400, "{what}");
    }
    submit(&right).ok();
    let stored: Value = world.read_json(&format!("{index}.signatures.json.pending"));
    let entry = &stored["entries"][frieda.public_key().to_string()];
    assert_eq!(decode_base64(entry["signature"].as_str().unwrap()), Some(right));
}

#[test]
fn signers_files_say_which_keys_are_fido_keys_and_what_these_cannot_sign() {
    let computer = Computer::offline();
    signers_file(&computer, &["--format", "ssh,minisign"]);
    let warning = "FIDO keys cannot sign for minisign: 1 of the 3 keys in a group that needs 2 can";
    let checked = computer.run(&["signers", "check", "svc.signers.json"]).ok().says(&[warning]);
    checked
        .says(&["FIDO keys, which sign only if someone touches them: ", "fiona"])
        .says_nothing_of(&["for ssh:"]);
    let text = String::from_utf8(computer.read("svc.signers.json")).unwrap();
    assert_eq!(text.matches("\"format\": \"sk-ssh-ed25519\"").count(), 3, "{text}");
    // A key in its place can be of the other kind.
    let bob = format!("frieda={}", computer.key_of("bob").with_extension("pub").display());
    let edit = ["signers", "edit", "svc.signers.json", "--replace", &bob, "-o", "next.json", "--yes"];
    computer.run(&edit).ok();
    let text = String::from_utf8(computer.read("next.json")).unwrap();
    assert_eq!(text.matches("\"format\": \"sk-ssh-ed25519\"").count(), 2, "{text}");
    let agent = FidoAgent::start(PRESENT);
    // A key that someone has to touch signs no checkpoint.
    computer.write("server.toml", "[log]\norigin = \"sign.example.org/log\"\nkey_file = \"frieda.pub\"\n");
    let serve = ["serve", "--dev", "--check", "--data-dir", "data", "--config", "server.toml"];
    let ran = Ran::of(&mut agent.command(&computer, "frieda", &serve));
    assert_ne!(ran.code, 0, "{ran:?}");
    ran.says(&["FIDO key, which someone would have to touch for each checkpoint"]);
}
