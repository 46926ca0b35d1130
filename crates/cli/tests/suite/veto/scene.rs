//! A team with admins, masters and a delay, and a clock that the test sets.

use std::cell::Cell;

use serde_json::{Value, json};

use crate::support::client::{Computer, Ran};
use crate::support::objections::{veto_body, veto_document};
use crate::support::{
    Person, Reply, Request, SignersFile, World, days_ago, machine_clock::MachineClock, people::new_nonce,
    person, seconds_from_now,
};

pub(crate) const HOUR: i64 = 3_600;
pub(crate) const DELAY: i64 = 48 * HOUR;
pub(crate) const APP: &str = "acme/app";

pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) clock: MachineClock,
    ahead: Cell<i64>,
}

/// Alice signs releases, Bob and Carol administrate, and any two of Mia, Max and Moe are masters.
pub(crate) fn team(days: i64) -> SignersFile {
    SignersFile::dated(days_ago(days))
        .artifact(1, &[&person("alice")])
        .admin(2, &[&person("bob"), &person("carol")])
        .master(2, &[&person("mia"), &person("max"), &person("moe")])
        .with("rotation_delay_hours", json!(48))
}

/// What thieves of the admin keys would like: everything, at once, and for good.
pub(crate) fn takeover() -> SignersFile {
    SignersFile::dated(days_ago(3)).artifact(1, &[&person("mallory")])
}

impl Scene {
    /// `None` where there is no clock to set.
    pub(crate) fn new() -> Option<Self> {
        let clock = MachineClock::new()?;
        let world = World::start_with(|launch, _| clock.give_to(launch.arg("--dev")));
        let people = ["alice", "bob", "carol", "mia", "max", "moe"].map(person);
        world.activate(APP, &team(10), &people.each_ref());
        Some(Self { world, clock, ahead: Cell::new(0) })
    }

    /// So many seconds after the beginning.
    pub(crate) fn set(&self, seconds: i64) {
        self.ahead.set(seconds);
        self.clock.set(seconds);
    }

    pub(crate) fn send_as(&self, person: &Person, request: Request) -> Reply {
        let signed = person.sign_at(request, seconds_from_now(self.ahead.get()), &new_nonce());
        self.world.server.send(&signed)
    }

    pub(crate) fn post_as(&self, person: &Person, route: &str, body: &Value) -> Reply {
        self.send_as(person, Request::post(route, body))
    }

    pub(crate) fn propose(&self, name: &str, file: &SignersFile) -> Reply {
        let url = self.world.publish(APP, file);
        let body = json!({ "signers_file_url": url, "public_key": person(name).body_key() });
        self.post_as(&person(name), "/v1/update_signers", &body)
    }

    pub(crate) fn pending(&self) -> String {
        self.world.pending_path(APP)
    }

    pub(crate) fn sign(&self, name: &str) -> Reply {
        let body = self.world.signature_body(&person(name), &self.pending());
        self.post_as(&person(name), "/v1/signatures", &body)
    }

    /// Bob proposed this file, and both admins and all who are added agreed to it.
    #[track_caller]
    pub(crate) fn agree(&self, file: &SignersFile, added: &[&str]) -> Value {
        self.propose("bob", file).ok();
        for name in added {
            self.sign(name).ok();
        }
        self.sign("bob").ok();
        let answer = self.sign("carol").ok();
        assert_eq!(answer["is_complete"], json!(true));
        assert!(answer["waits_until"].is_string(), "{answer}");
        answer
    }

    pub(crate) fn veto_document(&self, reason: &str) -> String {
        veto_document(&self.world, APP, reason, seconds_from_now(self.ahead.get()))
    }

    pub(crate) fn veto(&self, name: &str, document: &str) -> Reply {
        let master = person(name);
        let body = veto_body(&master, &self.pending(), document);
        self.post_as(&master, "/v1/veto", &body)
    }

    /// The signers in force, as everyone is told.
    pub(crate) fn signers(&self) -> Vec<u8> {
        self.world.server.get(&format!("/v1/get_signers/{}", self.world.id(APP))).body
    }

    pub(crate) fn computer(&self) -> Computer {
        Computer::of(&self.world.server)
    }

    /// The client of a person, whose clock goes with the server's.
    pub(crate) fn run_as(&self, computer: &Computer, name: &str, args: &[&str]) -> Ran {
        let mut command = computer.command(args);
        self.clock.lend_to(&mut command);
        Ran::of(command.env("COUNTERSIGN_KEY", computer.key_of(name)))
    }
}
