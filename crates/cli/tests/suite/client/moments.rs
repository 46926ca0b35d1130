//! Changes that land between two requests of a command (D232): what it says is true of one moment, and no server is
//! accused of what only the time between two requests explains (D234).

use std::sync::Arc;

use crate::support::client::{Computer, add_files, put_release};
use crate::support::{
    SignersFile, World, alice, bob, carol, days_ago, hostile::HostileServer, objections::withdraw,
};

/// No command of this suite asks more often.
const MOST_REQUESTS: usize = 2;

/// What a change in between never explains.
const ACCUSATIONS: [&str; 9] = [
    "lies", "broken", "rewrites", "PAST", "HIDES", "CONTRADICTS", "tampered", "not who revoked it", "Invalid",
];

/// Alice, bob and carol, two of whom sign; 1.0 is complete, 2.0 has one signature, and the client asks through a server
/// that can wait for a change.
struct Moment {
    world: Arc<World>,
    between: HostileServer,
}

impl Moment {
    /// The world as it is before each change.
    fn prepare() -> World {
        let world = World::with_project(&signers(10), &[&alice(), &bob(), &carol()]);
        add_files(&world, "acme/app/1.0", &[("app.tar.gz", b"one")], &[&alice(), &bob()]);
        let sums = put_release(&world.files, "acme/app/2.0", &[("app.tar.gz", b"two")]);
        world.register_assets(&alice(), &[&sums]).ok();
        let second = world.index_path("acme/app/2.0");
        world.submit(&bob(), &world.signature_body(&bob(), &second)).ok();
        world
    }

    fn of(prepared: &World) -> Self {
        // A correction or a rotation has put another file there.
        put_release(&prepared.files, "acme/app/2.0", &[("app.tar.gz", b"two")]);
        prepared.publish("acme/app", &signers(10));
        let world = prepared.fork();
        let between = HostileServer::before(&world.server);
        Self { world: Arc::new(world), between }
    }
}

fn signers(days: i64) -> SignersFile {
    SignersFile::of(2, &[&alice(), &bob(), &carol()]).redated(days_ago(days))
}

/// What happens in the world.
#[derive(Debug, Clone, Copy)]
enum Event {
    Revocation,
    Withdrawal,
    LastSignature,
    Correction,
    Rotation,
}

impl Event {
    const ALL: [Self; 5] =
        [Self::Revocation, Self::Withdrawal, Self::LastSignature, Self::Correction, Self::Rotation];

    fn happen(self, world: &World) {
        let [first, second] = ["1.0", "2.0"].map(|version| world.index_path(&format!("acme/app/{version}")));
        match self {
            Self::Revocation => drop(world.revoke(&alice(), &first).ok()),
            Self::Withdrawal => drop(withdraw(world, &bob(), &second).ok()),
            Self::LastSignature => {
                drop(world.submit(&carol(), &world.signature_body(&carol(), &second)).ok());
            }
            Self::Correction => {
                let sums = put_release(&world.files, "acme/app/2.0", &[("app.tar.gz", b"corrected")]);
                drop(world.register_assets(&carol(), &[&sums]).ok());
            }
            Self::Rotation => world.rotate("acme/app", &signers(5), &[&alice(), &bob()]),
        }
    }
}

/// A command, and with which exit codes it can end, whatever happens meanwhile.
struct Command {
    args: Vec<String>,
    by: Option<&'static str>,
    codes: &'static [i32],
}

fn commands(world: &World) -> Vec<Command> {
    let url = world.files.url("/acme/app/1.0/app.tar.gz");
    let [first, second] = ["1.0", "2.0"].map(|version| world.index_path(&format!("acme/app/{version}")));
    let project = world.id("acme/app");
    let command = |by: Option<&'static str>, codes: &'static [i32], args: &[&str]| Command {
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        by,
        codes,
    };
    vec![
        command(None, &[0], &["status", &first]),
        command(None, &[0], &["status", &second]),
        command(None, &[0, 4], &["download", &url, "--force"]),
        command(None, &[0, 4], &["download", &first, "--force"]),
        command(None, &[0, 1, 4], &["download", &project, "--force"]),
        // It is not complete, or complete by now; withdrawn; of other content.
        command(None, &[0, 3], &["download", &second, "--force"]),
        command(None, &[0, 4], &["verify", "one", "--url", &url]),
        command(None, &[0, 4], &["verify", "one", "--release", &first]),
        command(None, &[0, 4], &["bundle", &first, "-o", "app.bundle.json"]),
        command(None, &[0, 4], &["export", &first, "--for", "openssl", "-o", "exported"]),
        // It is complete without alice, was withdrawn, or replaced.
        command(Some("alice"), &[0, 1, 7], &["sign", &second, "--yes"]),
    ]
}

/// Runs a command through the server in between, on a computer of its own. It accuses no one, and asks no more than it
/// must.
#[track_caller]
fn run(moment: &Moment, command: &Command, told: &str) {
    let Command { args, by, codes } = command;
    let computer = Computer::of(&moment.world.server);
    computer.write("one", b"one");
    let before = moment.between.asked().len();
    let server = ["--server".to_owned(), moment.between.url()];
    let args: Vec<&str> = args.iter().chain(&server).map(String::as_str).collect();
    let ran = match by {
        Some(name) => computer.run_as(name, &args),
        None => computer.run(&args),
    };
    let told = format!("{told} {args:?}: {ran:?}");
    assert!(codes.contains(&ran.code), "{told}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    let accusation = ACCUSATIONS.iter().find(|words| said.contains(**words));
    assert!(accusation.is_none(), "{accusation:?}: {told}");
    let requests = moment.between.asked().len() - before;
    assert!(by.is_some() || requests <= MOST_REQUESTS, "{requests} requests: {told}");
}

#[test]
fn a_change_before_a_request_accuses_no_one() {
    let prepared = Moment::prepare();
    for event in Event::ALL {
        // Before the first request of any command: all others see the changed world. The last one signs in it.
        let moment = Moment::of(&prepared);
        let changed = Arc::clone(&moment.world);
        moment.between.before_request(1, move || event.happen(&changed));
        for command in commands(&moment.world) {
            run(&moment, &command, &format!("{event:?} before"));
        }
        // Between the two requests of a signature. A question has one.
        let moment = Moment::of(&prepared);
        let changed = Arc::clone(&moment.world);
        moment.between.before_request(2, move || event.happen(&changed));
        let signing = commands(&moment.world).pop().expect("the last one signs");
        run(&moment, &signing, &format!("{event:?} in the middle of"));
        assert!(moment.between.asked().len() >= 2, "{event:?} has happened");
    }
}

#[test]
fn a_question_is_one_request_and_a_signature_two() {
    let Moment { world, between } = Moment::of(&Moment::prepare());
    let computer = Computer::of(&world.server);
    computer.write("one", b"one");
    for Command { args, by, .. } in commands(&world) {
        // Nothing of it is complete.
        if args[0] == "download" && args[1].contains("/2.0/") {
            continue;
        }
        let before = between.asked().len();
        let server = ["--server".to_owned(), between.url()];
        let args: Vec<&str> = args.iter().chain(&server).map(String::as_str).collect();
        match by {
            Some(name) => computer.run_as(name, &args).ok(),
            None => computer.run(&args).ok(),
        };
        let expected = if by.is_some() { 2 } else { 1 };
        assert_eq!(between.asked().len() - before, expected, "{args:?}");
    }
}

#[test]
fn a_release_that_was_corrected_while_a_signer_looked_at_it_is_looked_at_again() {
    let Moment { world, between } = Moment::of(&Moment::prepare());
    let computer = Computer::of(&world.server);
    let index = world.index_path("acme/app/2.0");
    // Alice signs the corrected one from another computer. That is not the signature which this computer sends.
    let (changed, corrected) = (Arc::clone(&world), index.clone());
    between.before_request(2, move || {
        Event::Correction.happen(&changed);
        changed.sign(&alice(), &corrected).ok();
    });
    let ran = computer.run_as("alice", &["sign", &index, "--yes", "--server", &between.url()]).failed(7);
    ran.says(&[&index, "another file replaced", "nothing was signed"]);
    computer.run_as("alice", &["sign", &index, "--yes", "--server", &between.url()]).ok();
    let signed = world.read_json(&format!("{index}.signatures.json.pending"));
    assert!(signed["entries"][alice().key()].is_object(), "{signed}");
}
