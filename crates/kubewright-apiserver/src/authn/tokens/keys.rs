//! Keys of service account tokens: one signs, and all configured ones verify.
//!
//! Key formats and key IDs are kube-apiserver's. A key that cannot both sign and verify is rejected when it
//! is loaded, so signing fails only without system randomness.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED,
    ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair as _,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey, VerificationAlgorithm,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use serde_json::{Value, json};
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey as X509PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;
use yasna::Tag;
use yasna::models::ObjectIdentifier;

const RSA: &[u64] = &[1, 2, 840, 113_549, 1, 1, 1];
const EC: &[u64] = &[1, 2, 840, 10_045, 2, 1];
const P256: &[u64] = &[1, 2, 840, 10_045, 3, 1, 7];
const P384: &[u64] = &[1, 3, 132, 0, 34];

/// A key cannot be used for service account tokens.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file is not PEM or contains no key.
    #[error("no key found; a PEM file with an RSA or EC key is required")]
    Pem(#[source] rustls_pki_types::pem::Error),
    /// The key type is not supported.
    #[error("the key is neither RSA with at least 2048 bits nor EC on the curve P-256 or P-384")]
    Unsupported,
    /// The system's random number generator failed.
    #[error("failed to read random bytes from the operating system")]
    Randomness,
}

/// The signature algorithm of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Algorithm {
    Es256,
    Es384,
    Rs256,
}

impl Algorithm {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
        }
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::Es256 => &ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &ECDSA_P384_SHA384_FIXED,
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        }
    }

    fn ecdsa(self) -> Option<&'static EcdsaSigningAlgorithm> {
        match self {
            Self::Es256 => Some(&ECDSA_P256_SHA256_FIXED_SIGNING),
            Self::Es384 => Some(&ECDSA_P384_SHA384_FIXED_SIGNING),
            Self::Rs256 => None,
        }
    }
}

/// A key that signs tokens.
pub struct SigningKey {
    pair: Pair,
    public: PublicKey,
}

enum Pair {
    Ecdsa(Box<EcdsaKeyPair>),
    Rsa(Box<RsaKeyPair>),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SigningKey").field(&self.public.id).finish()
    }
}

impl SigningKey {
    /// Generates an EC key on the curve P-256.
    pub fn generate() -> Result<Self, KeyError> {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| KeyError::Randomness)?;
        Self::from_pkcs8(key.as_ref())
    }

    /// The first private key of a PEM file: PKCS#8, or OpenSSL's formats for RSA and EC keys.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        match PrivateKeyDer::from_pem_slice(pem).map_err(KeyError::Pem)? {
            PrivateKeyDer::Pkcs8(der) => Self::from_pkcs8(der.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(der) => {
                let pair = RsaKeyPair::from_der(der.secret_pkcs1_der()).map_err(|_| KeyError::Unsupported)?;
                Self::rsa(pair)
            }
            PrivateKeyDer::Sec1(der) => Self::from_sec1(der.secret_sec1_der()),
            _ => Err(KeyError::Unsupported),
        }
    }

    fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        for algorithm in [Algorithm::Es256, Algorithm::Es384] {
            if let Some(ecdsa) = algorithm.ecdsa()
                && let Ok(pair) = EcdsaKeyPair::from_pkcs8(ecdsa, der, &SystemRandom::new())
            {
                return Self::ecdsa(pair, algorithm);
            }
        }
        Self::rsa(RsaKeyPair::from_pkcs8(der).map_err(|_| KeyError::Unsupported)?)
    }

    fn from_sec1(der: &[u8]) -> Result<Self, KeyError> {
        let (private, public) = yasna::parse_der(der, |reader| {
            reader.read_sequence(|reader| {
                reader.next().read_u8()?;
                let private = reader.next().read_bytes()?;
                reader.read_optional(|reader| {
                    reader.read_tagged(Tag::context(0), |curve| curve.read_oid().map(drop))
                })?;
                let public = reader
                    .next()
                    .read_tagged(Tag::context(1), |key| key.read_bitvec_bytes().map(|(bytes, _)| bytes))?;
                Ok((private, public))
            })
        })
        .map_err(|_| KeyError::Unsupported)?;
        let algorithm = if private.len() > 32 { Algorithm::Es384 } else { Algorithm::Es256 };
        let ecdsa = algorithm.ecdsa().ok_or(KeyError::Unsupported)?;
        let pair =
            EcdsaKeyPair::from_private_key_and_public_key(ecdsa, &private, &public, &SystemRandom::new())
                .map_err(|_| KeyError::Unsupported)?;
        Self::ecdsa(pair, algorithm)
    }

    fn ecdsa(pair: EcdsaKeyPair, algorithm: Algorithm) -> Result<Self, KeyError> {
        let curve = if algorithm == Algorithm::Es256 { P256 } else { P384 };
        let info = key_info(EC, Some(curve), pair.public_key().as_ref());
        Ok(Self { pair: Pair::Ecdsa(Box::new(pair)), public: PublicKey::from_key_info(&info)? })
    }

    fn rsa(pair: RsaKeyPair) -> Result<Self, KeyError> {
        let info = key_info(RSA, None, pair.public().as_ref());
        Ok(Self { public: PublicKey::from_key_info(&info)?, pair: Pair::Rsa(Box::new(pair)) })
    }

    /// The public key.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ecdsa(pair) => {
                let signature = pair.sign(&random, message).map_err(|_| KeyError::Randomness)?;
                Ok(signature.as_ref().to_vec())
            }
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map_err(|_| KeyError::Randomness)?;
                Ok(signature)
            }
        }
    }
}

/// A key that verifies tokens.
#[derive(Debug, Clone)]
pub struct PublicKey {
    pub(crate) algorithm: Algorithm,
    /// Derived from the key as kube-apiserver does.
    pub(crate) id: String,
    key: Vec<u8>,
    pub(crate) jwk: Value,
}

impl PublicKey {
    /// All keys of a PEM file: public keys, certificates, and the public keys of private keys.
    pub fn all_from_pem(pem: &[u8]) -> Result<Vec<Self>, KeyError> {
        let mut keys = Vec::new();
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
            let (kind, der) = section.map_err(KeyError::Pem)?;
            match kind {
                SectionKind::PublicKey => keys.push(Self::from_key_info(&der)?),
                SectionKind::Certificate => {
                    let (_, certificate) =
                        x509_parser::parse_x509_certificate(&der).map_err(|_| KeyError::Unsupported)?;
                    keys.push(Self::from_key_info(certificate.public_key().raw)?);
                }
                SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey => {
                    keys.push(SigningKey::from_pem(pem)?.public);
                }
                _ => {}
            }
        }
        if keys.is_empty() {
            return Err(KeyError::Pem(rustls_pki_types::pem::Error::NoItemsFound));
        }
        Ok(keys)
    }

    fn from_key_info(der: &[u8]) -> Result<Self, KeyError> {
        let (_, info) = SubjectPublicKeyInfo::from_der(der).map_err(|_| KeyError::Unsupported)?;
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, der));
        let key = info.subject_public_key.data.to_vec();
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (algorithm, mut jwk) = match info.parsed() {
            Ok(X509PublicKey::RSA(rsa)) => {
                let unsigned =
                    |bytes: &[u8]| text(&bytes[bytes.iter().take_while(|byte| **byte == 0).count()..]);
                let jwk = json!({"kty": "RSA", "n": unsigned(rsa.modulus), "e": unsigned(rsa.exponent)});
                (Algorithm::Rs256, jwk)
            }
            Ok(X509PublicKey::EC(_)) => {
                let (algorithm, curve) = match key.len() {
                    65 => (Algorithm::Es256, "P-256"),
                    97 => (Algorithm::Es384, "P-384"),
                    _ => return Err(KeyError::Unsupported),
                };
                let (x, y) = key[1..].split_at(key.len() / 2);
                (algorithm, json!({"kty": "EC", "crv": curve, "x": text(x), "y": text(y)}))
            }
            _ => return Err(KeyError::Unsupported),
        };
        jwk["use"] = "sig".into();
        jwk["kid"] = id.as_str().into();
        jwk["alg"] = algorithm.name().into();
        Ok(Self { algorithm, id, key, jwk })
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(self.algorithm.verification(), &self.key).verify(message, signature).is_ok()
    }
}

/// A SubjectPublicKeyInfo.
fn key_info(algorithm: &[u64], curve: Option<&[u64]>, key: &[u8]) -> Vec<u8> {
    yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_sequence(|writer| {
                writer.next().write_oid(&ObjectIdentifier::from_slice(algorithm));
                match curve {
                    Some(curve) => writer.next().write_oid(&ObjectIdentifier::from_slice(curve)),
                    None => writer.next().write_null(),
                }
            });
            writer.next().write_bitvec_bytes(key, key.len() * 8);
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_verifies_only_its_own_signatures() {
        let key = SigningKey::generate().unwrap();
        let signature = key.sign(b"message").unwrap();
        assert!(key.public().verifies(b"message", &signature));
        assert!(!key.public().verifies(b"massage", &signature));
        assert!(!SigningKey::generate().unwrap().public().verifies(b"message", &signature));
    }

    /// A key in the forms that openssl writes: traditional, PKCS#8 and public. The keys are used by this test only. Calling
    /// openssl here would let the child inherit the locks of other tests.
    macro_rules! key {
        ($name:literal) => {
            [
                include_bytes!(concat!("testdata/", $name, ".pem")).as_slice(),
                include_bytes!(concat!("testdata/", $name, "-pkcs8.pem")).as_slice(),
                include_bytes!(concat!("testdata/", $name, "-public.pem")).as_slice(),
            ]
        };
    }

    #[test]
    fn openssl_keys_are_loaded_with_the_id_of_their_public_key() {
        for [traditional, pkcs8, public] in [key!("rsa"), key!("p256"), key!("p384")] {
            let key = SigningKey::from_pem(traditional).unwrap();
            let signature = key.sign(b"message").unwrap();
            assert_eq!(SigningKey::from_pem(pkcs8).unwrap().public().id, key.public().id);
            for source in [traditional, pkcs8, public] {
                let public = PublicKey::all_from_pem(source).unwrap();
                assert_eq!(public.len(), 1);
                assert!(public[0].verifies(b"message", &signature));
                assert_eq!(public[0].id, key.public().id);
            }
        }
        let [rsa, ..] = key!("rsa");
        assert_eq!(SigningKey::from_pem(rsa).unwrap().public().jwk["e"], "AQAB");
    }

    #[test]
    fn a_file_without_a_key_is_rejected() {
        assert!(matches!(SigningKey::from_pem(b"nothing"), Err(KeyError::Pem(_))));
        assert!(matches!(PublicKey::all_from_pem(b""), Err(KeyError::Pem(_))));
    }
}
