//! Keys and certificates of the server and its clients.

pub(crate) mod issue;
pub(crate) mod pki;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _, SanType,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Creating or loading a certificate failed.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// Certificate generation failed.
    #[error("failed to generate a certificate")]
    Make(#[from] rcgen::Error),
    /// The certificate cannot be parsed.
    #[error("the certificate is not valid PEM")]
    Read(#[source] rustls_pki_types::pem::Error),
    /// The certificate and the key do not match.
    #[error("the certificate and the key do not match")]
    OtherKey,
    /// A client certificate has too many groups.
    #[error("a client certificate can have at most two groups, not {0}; use a token instead")]
    TooManyGroups(usize),
}

/// The OID of organizationName. rcgen allows one value per attribute type; a custom OID allows a second one.
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

/// A certificate authority for server and client certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
    pem: String,
}

/// The CA of client certificates of a server and its forks, created on first use.
#[derive(Clone, Default)]
pub(crate) struct ClientCa(Arc<OnceLock<Arc<Authority>>>);

impl ClientCa {
    /// Uses this CA, unless one was created before.
    pub(crate) fn set(&self, authority: Authority) {
        self.0.get_or_init(|| Arc::new(authority));
    }

    pub(crate) fn get(&self) -> Result<Arc<Authority>, CertificateError> {
        if let Some(authority) = self.0.get() {
            return Ok(authority.clone());
        }
        let authority = Arc::new(Authority::new()?);
        Ok(self.0.get_or_init(|| authority).clone())
    }
}

/// A certificate and its key.
pub struct Identity {
    /// The certificate in PEM.
    pub cert_pem: String,
    /// The key in PEM.
    pub key_pem: String,
    /// The certificate in DER.
    pub cert: CertificateDer<'static>,
    /// The key in DER.
    pub key: PrivateKeyDer<'static>,
}

impl Authority {
    /// Creates a certificate authority.
    pub fn new() -> Result<Self, CertificateError> {
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.distinguished_name.push(DnType::CommonName, "kubewright");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let cert = params.self_signed(&key)?;
        Ok(Self { der: cert.der().clone(), pem: cert.pem(), issuer: Issuer::new(params, key) })
    }

    /// Loads a certificate authority from PEM.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, CertificateError> {
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(CertificateError::Read)?;
        let key = KeyPair::from_pem(key)?;
        let (_, parsed) =
            x509_parser::parse_x509_certificate(&der).map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(CertificateError::OtherKey);
        }
        let issuer = Issuer::from_ca_cert_der(&der, key)?;
        Ok(Self { der: der.clone(), pem: certificate.to_owned(), issuer })
    }

    /// The CA's key in PEM.
    pub(crate) fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// The CA certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The CA certificate in DER.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// Issues a serving certificate for these addresses.
    pub fn server(&self, addresses: &[IpAddr]) -> Result<Identity, CertificateError> {
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(str::to_owned).to_vec())?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.subject_alt_names.extend(addresses.iter().map(|address| SanType::IpAddress(*address)));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// Issues a client certificate for a user with at most two groups.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Identity, CertificateError> {
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        if groups.len() > 2 {
            return Err(CertificateError::TooManyGroups(groups.len()));
        }
        for (group, name) in
            groups.iter().zip([DnType::OrganizationName, DnType::CustomDnType(ORGANIZATION.to_vec())])
        {
            params.distinguished_name.push(name, *group);
        }
        params.distinguished_name.push(DnType::CommonName, user);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Identity, CertificateError> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let cert = params.signed_by(&key, &self.issuer)?;
        Ok(Identity {
            cert_pem: cert.pem(),
            key_pem: key.serialize_pem(),
            cert: cert.der().clone(),
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        })
    }
}
