//! Certificates for `127.0.0.1` and `localhost` with their keys, as PEM. No program but a test may trust them.

/// A certificate and its key.
pub type CertificatePair = [&'static str; 2];

pub const FIRST: CertificatePair =
    [include_str!("../certificates/first.cert.pem"), include_str!("../certificates/first.key.pem")];
pub const SECOND: CertificatePair =
    [include_str!("../certificates/second.cert.pem"), include_str!("../certificates/second.key.pem")];
