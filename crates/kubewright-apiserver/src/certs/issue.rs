//! Issues the certificates of CertificateSigningRequests, for keys that only clients hold.
//!
//! rcgen allows one value per attribute type of a name, but a client certificate has one organization per
//! group. So the certificate is encoded here, with the request's subject unchanged.

use kubewright_apimachinery::time;
use rcgen::SigningKey as _;
use x509_parser::extensions::ParsedExtension;
use yasna::models::ObjectIdentifier;
use yasna::{DERWriterSeq, Tag};

use super::{Authority, CertificateError};

const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
const BASIC_CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const AUTHORITY_KEY: &[u64] = &[2, 5, 29, 35];
const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];

/// The content of a new certificate. Parts taken from the request are DER.
pub(crate) struct Template<'a> {
    pub(crate) serial: [u8; 16],
    pub(crate) subject: &'a [u8],
    /// SubjectPublicKeyInfo.
    pub(crate) key: &'a [u8],
    /// Seconds since the Unix epoch.
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
    /// Bit numbers.
    pub(crate) key_usages: &'a [u8],
    /// Object identifiers.
    pub(crate) extended_key_usages: &'a [&'a [u64]],
    /// The value of the subjectAltName extension.
    pub(crate) alternative_names: Option<&'a [u8]>,
}

impl Authority {
    /// The expiry of the CA certificate, in seconds since the Unix epoch.
    pub(crate) fn not_after(&self) -> i64 {
        x509_parser::parse_x509_certificate(&self.der)
            .map_or(i64::MAX, |(_, own)| own.validity().not_after.timestamp())
    }

    /// Issues a certificate in PEM.
    pub(crate) fn issue(&self, template: &Template<'_>) -> Result<String, CertificateError> {
        let (_, own) = x509_parser::parse_x509_certificate(&self.der)
            .map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
        let key_id = own.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0),
            _ => None,
        });
        let key = self.issuer.key();
        let algorithm = signature_algorithm(key.algorithm())?;
        let info = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_tagged(Tag::context(0), |writer| writer.write_u8(2));
                writer.next().write_bigint_bytes(&template.serial, true);
                writer.next().write_der(&algorithm);
                writer.next().write_der(own.subject().as_raw());
                writer.next().write_sequence(|writer| {
                    writer.next().write_der(&der_time(template.not_before));
                    writer.next().write_der(&der_time(template.not_after));
                });
                writer.next().write_der(template.subject);
                writer.next().write_der(template.key);
                writer.next().write_tagged(Tag::context(3), |writer| {
                    writer.write_sequence(|writer| extensions(writer, template, key_id));
                });
            });
        });
        let signature = key.sign(&info)?;
        let certificate = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_der(&info);
                writer.next().write_der(&algorithm);
                writer.next().write_bitvec_bytes(&signature, signature.len() * 8);
            });
        });
        Ok(pem("CERTIFICATE", &certificate))
    }
}

fn extensions(writer: &mut DERWriterSeq<'_>, template: &Template<'_>, authority_key: Option<&[u8]>) {
    if !template.key_usages.is_empty() {
        let last = template.key_usages.iter().max().copied().unwrap_or_default();
        let mut bits = vec![0_u8; usize::from(last / 8) + 1];
        for bit in template.key_usages {
            bits[usize::from(bit / 8)] |= 0x80 >> (bit % 8);
        }
        let value = yasna::construct_der(|writer| writer.write_bitvec_bytes(&bits, usize::from(last) + 1));
        extension(writer, KEY_USAGE, true, &value);
    }
    if !template.extended_key_usages.is_empty() {
        let value = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                for usage in template.extended_key_usages {
                    writer.next().write_oid(&ObjectIdentifier::from_slice(usage));
                }
            });
        });
        extension(writer, EXTENDED_KEY_USAGE, false, &value);
    }
    extension(writer, BASIC_CONSTRAINTS, true, &yasna::construct_der(|writer| writer.write_sequence(|_| ())));
    if let Some(key) = authority_key {
        let value = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_tagged_implicit(Tag::context(0), |writer| writer.write_bytes(key));
            });
        });
        extension(writer, AUTHORITY_KEY, false, &value);
    }
    if let Some(names) = template.alternative_names {
        // subjectAltName is critical if the subject is empty.
        extension(writer, ALTERNATIVE_NAMES, template.subject == [0x30, 0], names);
    }
}

fn extension(writer: &mut DERWriterSeq<'_>, id: &[u64], critical: bool, value: &[u8]) {
    writer.next().write_sequence(|writer| {
        writer.next().write_oid(&ObjectIdentifier::from_slice(id));
        if critical {
            writer.next().write_bool(true);
        }
        writer.next().write_bytes(value);
    });
}

/// The AlgorithmIdentifier for signatures of a key.
fn signature_algorithm(key: &rcgen::SignatureAlgorithm) -> Result<Vec<u8>, CertificateError> {
    let (id, null): (&[u64], bool) = if *key == rcgen::PKCS_ECDSA_P256_SHA256 {
        (&[1, 2, 840, 10_045, 4, 3, 2], false)
    } else if *key == rcgen::PKCS_ECDSA_P384_SHA384 {
        (&[1, 2, 840, 10_045, 4, 3, 3], false)
    } else if *key == rcgen::PKCS_RSA_SHA256 {
        (&[1, 2, 840, 113_549, 1, 1, 11], true)
    } else if *key == rcgen::PKCS_ED25519 {
        (&[1, 3, 101, 112], false)
    } else {
        return Err(rcgen::Error::UnsupportedSignatureAlgorithm.into());
    };
    Ok(yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_oid(&ObjectIdentifier::from_slice(id));
            if null {
                writer.next().write_null();
            }
        });
    }))
}

/// UTCTime through 2049, GeneralizedTime from 2050 on.
fn der_time(seconds: i64) -> Vec<u8> {
    let digits: String = time::format_rfc3339(seconds).chars().filter(char::is_ascii_digit).collect();
    let (tag, digits) = if *digits >= *"2050" { (0x18, &*digits) } else { (0x17, &digits[2..]) };
    let mut der = vec![tag, u8::try_from(digits.len() + 1).unwrap_or_default()];
    der.extend_from_slice(digits.as_bytes());
    der.push(b'Z');
    der
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in encoded.as_bytes().chunks(64) {
        text.push_str(str::from_utf8(line).unwrap_or_default());
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}
