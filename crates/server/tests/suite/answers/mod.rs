//! What every answer has, and how large ones and pages get their turn.

mod date;
mod panics;
mod reads;
mod rendering;
mod request_ids;
mod routes;
mod sending;
