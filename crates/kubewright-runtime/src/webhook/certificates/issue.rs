//! Issues CAs and leaves.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::{Authority, BACKDATED, Leaf, Validity};

/// The subject of every CA. Leaves name it as their issuer.
pub(super) const CA_NAME: &str = "kubewright-webhook-ca";

/// A certificate could not be issued.
#[derive(Debug, thiserror::Error)]
#[error("failed to issue a certificate")]
pub struct IssueError(#[from] rcgen::Error);

impl Authority {
    /// A new CA.
    pub(super) fn issue(lifetime: SignedDuration, now: Timestamp) -> Result<Self, IssueError> {
        let validity = validity(now, lifetime);
        let key = KeyPair::generate()?;
        let certificate = params(validity)?.self_signed(&key)?;
        Ok(Self { certificate: certificate.pem(), key: key.serialize_pem(), validity })
    }

    /// A leaf for these DNS names. It does not outlive the CA.
    pub(super) fn sign(
        &self,
        names: &[String],
        lifetime: SignedDuration,
        now: Timestamp,
    ) -> Result<Leaf, IssueError> {
        let mut validity = validity(now, lifetime);
        validity.until = validity.until.min(self.validity.until);
        let issuer = Issuer::new(params(self.validity)?, KeyPair::from_pem(&self.key)?);
        let mut leaf = CertificateParams::new(names.to_vec())?;
        if let Some(name) = names.first() {
            leaf.distinguished_name.push(DnType::CommonName, name.as_str());
        }
        dated(&mut leaf, validity);
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = leaf.signed_by(&key, &issuer)?;
        Ok(Leaf { certificate: certificate.pem(), key: key.serialize_pem(), validity, names: names.to_vec() })
    }
}

fn params(validity: Validity) -> Result<CertificateParams, IssueError> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.distinguished_name.push(DnType::CommonName, CA_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    dated(&mut params, validity);
    Ok(params)
}

fn dated(params: &mut CertificateParams, validity: Validity) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let seconds = |at: Timestamp| Duration::from_secs(u64::try_from(at.as_second()).unwrap_or_default());
    params.not_before = epoch + seconds(validity.from);
    params.not_after = epoch + seconds(validity.until);
}

fn validity(now: Timestamp, lifetime: SignedDuration) -> Validity {
    Validity {
        from: now.saturating_sub(BACKDATED).unwrap_or(now),
        until: now.saturating_add(lifetime).unwrap_or(now),
    }
}
