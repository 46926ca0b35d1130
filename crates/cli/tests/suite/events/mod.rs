//! `GET /v1/events`.

mod resumed;
mod served;
mod told;
