//! Answers to what is no request (D30, D47). Hyper answers it with a status and no body. `Stream` leaves that answer out,
//! and when hyper has ended with an error, the server sends its own.

use axum::{body::to_bytes, response::IntoResponse as _, response::Response};
use countersign_api::error_code::ErrorCode;
use tokio::{io, io::AsyncRead, io::AsyncReadExt as _, io::AsyncWrite, io::AsyncWriteExt as _};

use crate::{http::error::ApiError, http::request::new_request_id, serve::answer::complete};

/// The largest head of a request. An unfinished head takes no more memory, and hyper reads no more at a time.
pub(crate) const MAX_HEAD_BYTES: usize = 32 * 1024;
/// How much the server still reads from a refused client. Closing a connection with unread bytes would reset it, and
/// the client would not see the answer.
const MAX_DRAINED: u64 = 1024 * 1024;

/// What to tell a client whose bytes are no request; `None` if the connection ended for another reason.
pub(crate) fn find_refusal(error: &hyper::Error) -> Option<ApiError> {
    if error.is_parse_too_large() {
        let message = format!(
            "the head of the request is too large: it may have {MAX_HEAD_BYTES} bytes and 100 header fields"
        );
        return Some(ApiError::new(ErrorCode::HeadTooLarge, message));
    }
    error.is_parse().then(|| ApiError::malformed("this is not a valid HTTP/1.1 request"))
}

/// Sends the last answer of a connection. `Patience` bounds how long that can take.
pub(crate) async fn send_refusal(mut stream: impl AsyncRead + AsyncWrite + Unpin, refusal: ApiError) {
    let id = new_request_id();
    tracing::debug!(
        id,
        status = refusal.code.status(),
        reason = refusal.message,
        "refused what is no request"
    );
    let mut response = refusal.into_response();
    complete(&mut response, id);
    let sent = async {
        stream.write_all(&write_last(response).await?).await?;
        stream.shutdown().await?;
        io::copy(&mut stream.take(MAX_DRAINED), &mut io::sink()).await
    };
    if let Err(error) = sent.await {
        tracing::debug!(%error, "a client did not take its refusal");
    }
}

/// The bytes of an answer that ends its connection.
async fn write_last(response: Response) -> io::Result<Vec<u8>> {
    let (head, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.map_err(io::Error::other)?;
    let (status, length) = (head.status, body.len());
    let mut written =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n").into_bytes();
    for (name, value) in &head.headers {
        written.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    Ok([&*written, b"\r\n", &body].concat())
}
