//! The server's key pair and the self-signed certificate that carries its public half.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;

/// SHA-256 of the server's SubjectPublicKeyInfo: what a client pins.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyFingerprint(pub [u8; 32]);

impl fmt::Debug for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl KeyFingerprint {
    /// Fingerprint of the key in a certificate; `None` if it is not a certificate.
    pub(crate) fn of_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        let spki = parsed.subject_public_key_info();
        digest(&SHA256, spki.as_ref()).as_ref().try_into().ok().map(Self)
    }
}

/// Key and certificate of a server. `Debug` shows the fingerprint only.
pub struct ServerKey {
    pkcs8: Vec<u8>,
    certificate: CertificateDer<'static>,
    fingerprint: KeyFingerprint,
}

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerKey({})", self.fingerprint)
    }
}

impl Clone for ServerKey {
    fn clone(&self) -> Self {
        Self {
            pkcs8: self.pkcs8.clone(),
            certificate: self.certificate.clone(),
            fingerprint: self.fingerprint,
        }
    }
}

/// The server's key could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum ServerKeyError {
    /// Key generation or signing failed.
    #[error("cannot make the server's key: {0}")]
    Generate(#[from] rcgen::Error),
    /// The certificate cannot be read.
    #[error(
        "the server's certificate is damaged; remove `server.key` and `server.crt` together, clients then need new links"
    )]
    Certificate,
    /// The key cannot be read, or is not the certificate's.
    #[error(
        "`server.key` does not hold the private key of `server.crt` in a form that this program reads (PKCS#8); if a newer version wrote it, update this one, else remove both, clients then need new links"
    )]
    Key,
}

impl ServerKey {
    /// Makes an ECDSA P-256 key and a certificate signed by itself.
    pub(crate) fn generate() -> Result<Self, ServerKeyError> {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate =
            CertificateParams::new(vec![crate::tls::SERVER_NAME.to_owned()])?.self_signed(&pair)?;
        Self::from_parts(pair.serialize_der(), certificate.der().to_vec())
    }

    /// Takes the PKCS#8 key and the DER certificate of the state directory.
    pub(crate) fn from_parts(pkcs8: Vec<u8>, certificate: Vec<u8>) -> Result<Self, ServerKeyError> {
        let certificate = CertificateDer::from(certificate);
        let fingerprint =
            KeyFingerprint::of_certificate(&certificate).ok_or(ServerKeyError::Certificate)?;
        let key = Self { pkcs8, certificate, fingerprint };
        CertifiedKey::from_der(
            vec![key.certificate.clone()],
            key.private_key(),
            &rustls::crypto::aws_lc_rs::default_provider(),
        )
        .map_err(|_| ServerKeyError::Key)?;
        Ok(key)
    }

    /// What clients pin.
    pub fn fingerprint(&self) -> KeyFingerprint {
        self.fingerprint
    }

    pub(crate) fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    pub(crate) fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.pkcs8.clone()))
    }
}
