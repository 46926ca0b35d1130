//! What the pages are made of, and when a browser may keep them.

mod commands;
mod links;
mod lists;
mod script;
mod tags;
mod visits;
