//! Requests to servers that the operator named: the origin of a mirror, and witnesses. They can have any address.

use std::time::Duration;

use countersign_forge::https::{SetupError, https_client};
use reqwest::{
    Client, ClientBuilder,
    header::{HeaderMap, RETRY_AFTER},
    redirect::Policy,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Follows no redirect, which would be another's choice.
pub(crate) fn direct_client() -> Result<Client, SetupError> {
    direct_client_with(|builder| builder)
}

/// As [`direct_client`], with more settings.
pub(crate) fn direct_client_with(
    adapt: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Result<Client, SetupError> {
    https_client(|builder| {
        adapt(builder.connect_timeout(CONNECT_TIMEOUT).redirect(Policy::none()).referer(false))
    })
}

/// How long the other side wants to be left alone; no longer than `most`.
pub(crate) fn read_retry_after(headers: &HeaderMap, most: Duration) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(most))
}
