//! The pages for a browser.

mod activity;
mod badges;
mod hostile;
mod lists;
mod pages;
mod requests;
mod verify;
