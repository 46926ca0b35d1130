//! TLS for servers without a proxy. Certificate and key come from files; the operator can have them read again.

use std::{net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use countersign_cluster::tls::MachineTime;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::Error as PemError, pem::PemObject as _};
use rustls::{ServerConfig, crypto::ring::default_provider, version::TLS12, version::TLS13};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::follow::background::BoxedError;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The files of a certificate and its key, both as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's own certificate first, then those that lead to a root.
    pub cert: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Error)]
#[error("{text}")]
pub struct TlsError {
    text: String,
    /// The file that is wrong.
    pub path: PathBuf,
    source: Option<BoxedError>,
}

#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    config: ArcSwap<ServerConfig>,
}

impl Tls {
    pub fn read(files: TlsFiles) -> Result<Self, TlsError> {
        let config = ArcSwap::from(read_config(&files)?);
        Ok(Self { files, config })
    }

    /// Reads both files again, for new connections. On an error the old certificate stays.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.config.store(read_config(&self.files)?);
        Ok(())
    }

    pub(crate) async fn accept(&self, stream: TcpStream, peer: IpAddr) -> Option<TlsStream<TcpStream>> {
        let handshake = TlsAcceptor::from(self.config.load_full()).accept(stream);
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) if is_not_tls(&error) => {
                tracing::debug!(%peer, "a client did not speak TLS: this port is https only");
            }
            Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
        }
        None
    }
}

fn read_config(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let TlsFiles { cert, key } = files;
    let (shown_cert, shown_key) = (cert.display(), key.display());
    let unreadable = |what, path: &PathBuf, error: PemError| {
        let text = format!("cannot read the {what} file {}. It must be readable PEM", path.display());
        TlsError { text, path: path.clone(), source: Some(error.into()) }
    };
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| unreadable("certificate", cert, error))?;
    if chain.is_empty() {
        let text = format!(
            "the certificate file {shown_cert} has no certificate. It must be PEM with lines `-----BEGIN CERTIFICATE-----`"
        );
        return Err(TlsError { text, path: cert.clone(), source: None });
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("key", key, error))?;
    let unusable = |error: rustls::Error| {
        let text = format!(
            "the certificate in {shown_cert} cannot be used with the key in {shown_key}. Do they belong together?"
        );
        TlsError { text, path: cert.clone(), source: Some(error.into()) }
    };
    let builder = ServerConfig::builder_with_details(Arc::new(default_provider()), Arc::new(MachineTime));
    let builder = builder.with_protocol_versions(&[&TLS13, &TLS12]).map_err(unusable)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, secret).map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn is_not_tls(error: &std::io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(error, Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)))
}
