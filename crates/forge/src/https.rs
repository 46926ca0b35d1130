//! Sets up https, for every client of this program.

use std::{error::Error as StdError, io};

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

/// Why there is no https connection, where TLS is the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsProblem {
    /// What answers at this port does not speak TLS.
    NotTls,
    UnknownIssuer,
    Expired,
    NotValidYet,
    OtherName,
    /// A certificate authority's own certificate, as `openssl req -x509` makes one.
    AuthorityAsServer,
    /// Another error, in the library's words.
    Other(String),
}

/// Looks for TLS among an error and its causes.
pub fn find_tls_problem(error: &(dyn StdError + 'static)) -> Option<TlsProblem> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Some(classify(error));
        }
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        // An I/O error names the causes of what it wraps, not what it wraps.
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn classify(error: &rustls::Error) -> TlsProblem {
    use rustls::{CertificateError as C, Error as E, InvalidMessage as M};
    match error {
        E::InvalidMessage(M::InvalidContentType | M::UnknownProtocolVersion) => TlsProblem::NotTls,
        // The others: an authority of that name is known, and has another key.
        E::InvalidCertificate(
            C::UnknownIssuer
            | C::BadSignature
            | C::UnsupportedSignatureAlgorithmContext { .. }
            | C::UnsupportedSignatureAlgorithmForPublicKeyContext { .. },
        ) => TlsProblem::UnknownIssuer,
        E::InvalidCertificate(C::Expired | C::ExpiredContext { .. }) => TlsProblem::Expired,
        E::InvalidCertificate(C::NotValidYet | C::NotValidYetContext { .. }) => TlsProblem::NotValidYet,
        E::InvalidCertificate(C::NotValidForName | C::NotValidForNameContext { .. }) => TlsProblem::OtherName,
        // The library has no name for it here.
        E::InvalidCertificate(C::Other(other)) if other.to_string().contains("CaUsedAsEndEntity") => {
            TlsProblem::AuthorityAsServer
        }
        error => TlsProblem::Other(error.to_string()),
    }
}
