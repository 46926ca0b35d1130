//! The tests of forge, in folders by what they are about.

#![allow(clippy::unwrap_used, reason = "a test")]

mod checksums;
mod fetch;
mod forges;
mod guard;
mod http_urls;
mod messages;
mod release;
mod support;
mod urls;
