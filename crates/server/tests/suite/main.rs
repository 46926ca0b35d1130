#![allow(clippy::unwrap_used, reason = "a test")]

mod answers;
mod background;
mod caps;
mod corpus;
mod disk_space;
mod due;
mod events;
mod journal;
mod limits;
mod listen;
mod model;
mod observe;
mod overview;
mod overview_lists;
mod reference;
mod support;
mod upstream;
mod web;
mod webhooks;
