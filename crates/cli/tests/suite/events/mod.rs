//! `GET /v1/events`.

mod resumed;
mod sent;
mod served;
