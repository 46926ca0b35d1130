//! How https is set up, for every client of this program.

use reqwest::{Certificate, Client, ClientBuilder};
use thiserror::Error;

#[derive(Debug, Error)]
#[error("outgoing https cannot be set up")]
pub struct SetupError {
    source: reqwest::Error,
}

/// A client with the root certificates of the system, or the built-in ones where it has none. `adapt` makes all other
/// settings; it may be called twice.
pub fn https_client(adapt: impl Fn(ClientBuilder) -> ClientBuilder) -> Result<Client, SetupError> {
    // Fails where another provider was installed for the process already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || adapt(Client::builder().user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION"))));
    // Fails where the system has no CA certificates; then those of the browsers, built in, serve as well.
    if let Ok(client) = builder().build() {
        return Ok(client);
    }
    let certificates = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    let certificates = certificates.map(|der| Certificate::from_der(der)).collect::<Result<Vec<_>, _>>();
    certificates
        .and_then(|certificates| builder().tls_certs_only(certificates).build())
        .map_err(|source| SetupError { source })
}
