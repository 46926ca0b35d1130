//! Keeps clocks before 1970 away from hyper (D50). Hyper notes the current date in each thread that serves a
//! connection, although `answer` writes its own, and panics before 1970. Once it has noted a date, it does not note
//! another when the clock is set back.

use std::{cell::Cell, convert::Infallible, pin::pin};

use axum::response::Response;
use futures_util::FutureExt as _;
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;

use crate::date::http_date;

/// Makes hyper note a date in this thread, if it can. Returns whether it has one.
pub(super) fn note_date() -> bool {
    thread_local! {
        static IS_NOTED: Cell<bool> = const { Cell::new(false) };
    }
    if !IS_NOTED.get() && http_date().is_some() {
        let service =
            service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(Response::new(String::new())) });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(tokio::io::empty()), service);
        // Hyper reads the clock before it finds that there is no request.
        let _ = pin!(connection).now_or_never();
        IS_NOTED.set(true);
    }
    IS_NOTED.get()
}
