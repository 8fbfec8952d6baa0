//! Decides which certificates of servers a client accepts.
//!
//! A server's certificate that is itself in the file of trusted certificates is accepted if it is for the server's
//! name. Most self-signed certificates need this: they claim to be those of an authority, and rustls refuses such a
//! certificate for a server.

use std::sync::Arc;

use mangrove::{Error, ErrorKind, Result};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

/// The variable that names a file of trusted certificates.
const VARIABLE: &str = "MANGROVE_TLS_CA";

/// The system's trusted certificates on Debian and its derivatives.
const SYSTEM_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The servers that a client trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Servers with certificates from the file that `MANGROVE_TLS_CA` names, or else from the system's.
    Named,
    /// Any server. Only for requests that reveal nothing and whose answers nothing relies on.
    Any,
}

impl Trust {
    /// TLS for a client with this trust. Fails if the file of certificates cannot be read.
    pub fn connector(self) -> Result<TlsConnector> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let named = match self {
            Trust::Named => Some(TrustedCertificates::read(&provider)?),
            Trust::Any => None,
        };
        let verifier = Arc::new(CertificateVerifier { provider: Arc::clone(&provider), named });
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::new(ErrorKind::Io, e.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// The error of a failed handshake, with its cause and the way out.
pub fn explained(error: &std::io::Error) -> Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    let message = match cause {
        Some(rustls::Error::InvalidCertificate(fault)) => refused(fault),
        Some(rustls::Error::InvalidMessage(_)) => "the server speaks no TLS on this port: use ws://".to_owned(),
        _ => format!("no TLS handshake: {error}"),
    };
    Error::new(ErrorKind::Io, message)
}

fn refused(fault: &CertificateError) -> String {
    match fault {
        CertificateError::UnknownIssuer => format!(
            "the server's certificate is not trusted, and no trusted authority has issued it; set {VARIABLE} to a file \
             (PEM) that has the certificate or the authority"
        ),
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "the server's certificate is for {}, not for {}; name the server in --url as its certificate does",
            presented.join(", "),
            expected.to_str()
        ),
        CertificateError::NotValidForName => {
            "the server's certificate is for another name; name the server in --url as its certificate does".to_owned()
        }
        other => format!(
            "the server's certificate is refused: {other}; a certificate in the file that {VARIABLE} names is trusted \
             as it is"
        ),
    }
}

/// Checks the certificate of a server, and the signatures of its handshake.
#[derive(Debug)]
struct CertificateVerifier {
    provider: Arc<CryptoProvider>,
    /// The trusted certificates; `None`: any.
    named: Option<TrustedCertificates>,
}

/// The certificates of a file.
#[derive(Debug)]
struct TrustedCertificates {
    certificates: Vec<CertificateDer<'static>>,
    authorities: Arc<WebPkiServerVerifier>,
}

impl TrustedCertificates {
    fn read(provider: &Arc<CryptoProvider>) -> Result<Self> {
        let (path, is_named) = match std::env::var(VARIABLE) {
            Ok(path) => (path, true),
            Err(_) => (SYSTEM_CERTIFICATES.to_owned(), false),
        };
        let unread = |why: String| {
            Error::new(ErrorKind::Io, format!("{path}: {why}; {VARIABLE} names a file (PEM) of certificates to trust"))
        };
        let all = CertificateDer::pem_file_iter(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let all = all.map_err(|e| unread(e.to_string()))?;
        let mut roots = RootCertStore::empty();
        if roots.add_parsable_certificates(all.iter().cloned()).0 == 0 {
            return Err(unread("there is no certificate in it".to_owned()));
        }
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|e| unread(e.to_string()))?;
        Ok(TrustedCertificates { certificates: if is_named { all } else { Vec::new() }, authorities })
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(TrustedCertificates { certificates, authorities }) = &self.named else {
            return Ok(ServerCertVerified::assertion());
        };
        if certificates.iter().any(|certificate| certificate.as_ref() == end_entity.as_ref()) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        match authorities.verify_server_cert(end_entity, intermediates, name, ocsp_response, now) {
            // A self-signed certificate that is not in the file. Its defects would not help the user; that it is
            // unknown does.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_))) => {
                Err(CertificateError::UnknownIssuer.into())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
