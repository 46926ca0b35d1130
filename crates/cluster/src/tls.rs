//! TLS to the database, over the rustls that the program has.

use std::{future::Future, io, path::Path, path::PathBuf, pin::Pin, sync::Arc, task::Context, task::Poll};

use countersign_store::machine::clock::since_1970;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, crypto::ring::default_provider, time_provider::TimeProvider};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{Socket, tls::ChannelBinding, tls::MakeTlsConnect, tls::TlsConnect, tls::TlsStream};
use tokio_rustls::TlsConnector;

#[derive(Debug, Error)]
pub enum DatabaseTlsError {
    #[error("cannot read the certificates in {path} (sslrootcert). It must be readable PEM")]
    Read { path: PathBuf, source: PemError },
    #[error("{path} (sslrootcert) has no certificate that can be an authority")]
    NoCertificate { path: PathBuf },
    #[error("TLS to the database cannot be set up")]
    Setup(#[from] rustls::Error),
}

/// Makes the TLS connections of one database.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseTls(Arc<ClientConfig>);

impl DatabaseTls {
    pub(crate) fn new(root_file: Option<&Path>) -> Result<Self, DatabaseTlsError> {
        let roots = root_file.map_or_else(|| Ok(system_roots()), read_roots)?;
        let builder = ClientConfig::builder_with_details(Arc::new(default_provider()), Arc::new(MachineTime));
        let builder = builder.with_protocol_versions(&[&TLS13, &TLS12])?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

/// The roots of the system or of `SSL_CERT_FILE`; if there are none, the built-in ones.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    }
    roots
}

fn read_roots(path: &Path) -> Result<RootCertStore, DatabaseTlsError> {
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates =
        certificates.map_err(|source| DatabaseTlsError::Read { path: path.to_owned(), source })?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        return Err(DatabaseTlsError::NoCertificate { path: path.to_owned() });
    }
    Ok(roots)
}

impl MakeTlsConnect<Socket> for DatabaseTls {
    type Stream = EncryptedStream;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, InvalidDnsNameError> {
        let name = ServerName::try_from(host)?.to_owned();
        Ok(Handshake { config: Arc::clone(&self.0), name })
    }
}

#[derive(Debug)]
pub(crate) struct Handshake {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = EncryptedStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedStream>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        let handshake = TlsConnector::from(self.config).connect(self.name, stream);
        Box::pin(async { handshake.await.map(EncryptedStream) })
    }
}

#[derive(Debug)]
pub(crate) struct EncryptedStream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for EncryptedStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for EncryptedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for EncryptedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

// The clock for TLS, to the database and of servers alike.

/// The default provider panics if the clock is before 1970.
#[derive(Debug)]
pub struct MachineTime;

impl TimeProvider for MachineTime {
    fn current_time(&self) -> Option<UnixTime> {
        since_1970().map(UnixTime::since_unix_epoch)
    }
}
