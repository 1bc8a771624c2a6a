//! A verifier that accepts one server key and nothing else.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

use crate::identity::KeyFingerprint;

/// Text of the error for a server with another key; [`is_key_mismatch`] finds it again.
pub(crate) const KEY_MISMATCH: &str = "the server's key is not the one in the link: a captive portal or another server answers there, or the server's state was made anew";

#[derive(Debug, thiserror::Error)]
#[error("{KEY_MISMATCH}")]
pub(crate) struct KeyMismatch;

/// Accepts the certificate whose key has the pinned fingerprint. Names, dates and issuers do not
/// matter; the handshake's signature does, and is verified with that key.
#[derive(Debug)]
pub(crate) struct PinnedKey {
    pinned: KeyFingerprint,
    provider: Arc<CryptoProvider>,
}

impl PinnedKey {
    pub(crate) fn new(pinned: KeyFingerprint, provider: Arc<CryptoProvider>) -> Self {
        Self { pinned, provider }
    }
}

impl ServerCertVerifier for PinnedKey {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = KeyFingerprint::of_certificate(end_entity)
            .ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
        verify_slices_are_equal(&found.0, &self.pinned.0).map_err(|_| {
            let reason = OtherError(Arc::new(KeyMismatch));
            Error::InvalidCertificate(CertificateError::Other(reason))
        })?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether a TLS error says that the server has another key than the pinned one.
pub(crate) fn is_key_mismatch(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(CertificateError::Other(OtherError(reason)))
            if reason.is::<KeyMismatch>()
    )
}
