//! The pages for a browser.

mod activity;
mod badges;
mod hostile;
mod pages;
mod requests;
mod verify;
