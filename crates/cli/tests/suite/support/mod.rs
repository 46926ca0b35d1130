//! What the suite drives the real program with: a process, a socket, a file server, people with keys.

pub(crate) mod client;
pub(crate) mod environment;
pub(crate) mod events;
pub(crate) mod fake_forge;
pub(crate) mod files;
pub(crate) mod fsck;
pub(crate) mod git;
pub(crate) mod hostile;
pub(crate) mod html;
pub(crate) mod http;
pub(crate) mod keys;
pub(crate) mod listening;
pub(crate) mod log_scene;
pub(crate) mod machine_clock;
pub(crate) mod metrics;
pub(crate) mod mirrors;
pub(crate) mod past;
pub(crate) mod people;
pub(crate) mod receiver;
pub(crate) mod reference;
pub(crate) mod rewriting;
pub(crate) mod running;
pub(crate) mod scripts;
pub(crate) mod second_thoughts;
pub(crate) mod server;
pub(crate) mod signers;
pub(crate) mod terminal;
pub(crate) mod waiting;
pub(crate) mod webhooks;
pub(crate) mod witnesses;
pub(crate) mod world;

pub(crate) use self::{
    events::EventStream,
    files::{Answer, FileServer},
    git::Git,
    http::{Connection, Reply, Request},
    people::{Person, alice, bob, carol, mallory, person},
    running::Running,
    server::{Launch, TestServer},
    signers::{SignersFile, days_ago, seconds_from_now},
    terminal::Terminal,
    world::World,
};
