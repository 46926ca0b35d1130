//! Servers, forges and files that lie: to the client, and through it to people.

mod answers;
mod download;
mod files;
mod pins;
mod revocation;
mod revoking;
mod roots;
mod shown;
mod signing;
mod trust;
