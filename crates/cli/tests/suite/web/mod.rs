//! The pages for a browser.

mod activity;
mod badges;
mod changes;
mod hostile;
mod lists;
mod pages;
mod requests;
mod team;
mod verify;
