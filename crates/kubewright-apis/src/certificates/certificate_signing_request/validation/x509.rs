//! PKCS#10 requests and X.509 certificates, checked as Go's `crypto/x509` does and with its errors.
//!
//! The structure down to keys and signatures is checked; the contents of names and extensions are not.

use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ED25519,
    RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA384, UnparsedPublicKey,
    VerificationAlgorithm,
};

use super::der::{BIT_STRING, Element, INTEGER, OID, Reader, SEQUENCE};

/// Object identifiers, as DER has them.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ED25519_KEY: &[u8] = &[0x2b, 0x65, 0x70];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const RSA_SIGNATURES: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const ECDSA_SIGNATURES: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];

/// The reason why a request is rejected, if any. The request must be signed with its own key.
pub(super) fn check_request(der: &[u8]) -> Result<(), String> {
    let mut outside = Reader::new(der);
    let request = outside.expect(SEQUENCE, "certificateRequest")?;
    let mut fields = Reader::new(request.content);
    let info = fields.expect(SEQUENCE, "tbsCertificateRequest")?;
    let mut inner = Reader::new(info.content);
    inner.expect(INTEGER, "int")?;
    let subject = inner.any()?;
    let mut key = Reader::new(inner.expect(SEQUENCE, "publicKeyInfo")?.content);
    let (key_kind, curve) = algorithm(&mut key)?;
    let key_bits = bits(key.expect(BIT_STRING, "BitString")?)?;
    inner.any()?;
    let (signed_with, _) = algorithm(&mut fields)?;
    let signature = bits(fields.expect(BIT_STRING, "BitString")?)?;
    if !outside.rest().is_empty() {
        return Err("asn1: syntax error: trailing data".to_owned());
    }
    Reader::new(subject.whole).expect(SEQUENCE, "RDNSequence")?;
    verify(signed_with, key_kind, curve, key_bits, info.whole, signature)
}

/// The OID of an AlgorithmIdentifier, and its parameters if they are an OID.
fn algorithm<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], &'a [u8]), String> {
    let mut fields = Reader::new(reader.expect(SEQUENCE, "AlgorithmIdentifier")?.content);
    let name = fields.expect(OID, "ObjectIdentifier")?.content;
    let parameters = if fields.rest().is_empty() { None } else { Some(fields.any()?) };
    Ok((name, parameters.filter(|found| found.header.tag == OID).map_or(&[], |found| found.content)))
}

/// The bytes of a BIT STRING.
fn bits(element: Element<'_>) -> Result<&[u8], String> {
    match element.content.split_first() {
        None => Err("asn1: syntax error: zero length BIT STRING".to_owned()),
        Some((0, bytes)) => Ok(bytes),
        Some((1..=7, bytes)) if !bytes.is_empty() => Ok(bytes),
        Some(_) => Err("asn1: syntax error: invalid padding bits in BIT STRING".to_owned()),
    }
}

fn verify(
    signed_with: &[u8],
    key_kind: &[u8],
    curve: &[u8],
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> Result<(), String> {
    let (wanted, name, failure) = if signed_with.starts_with(RSA_SIGNATURES) {
        (RSA, "RSA", "crypto/rsa: verification error")
    } else if signed_with.starts_with(ECDSA_SIGNATURES) {
        (ECDSA, "ECDSA", "x509: ECDSA verification failure")
    } else if signed_with == ED25519_KEY {
        (ED25519_KEY, "Ed25519", "x509: Ed25519 verification failure")
    } else {
        return Err("x509: cannot verify signature: algorithm unimplemented".to_owned());
    };
    let go_type = match key_kind {
        RSA => "*rsa.PublicKey",
        ECDSA => "*ecdsa.PublicKey",
        ED25519_KEY => "ed25519.PublicKey",
        _ => return Err("x509: cannot verify signature: algorithm unimplemented".to_owned()),
    };
    if key_kind != wanted {
        return Err(format!(
            "x509: signature algorithm specifies an {name} public key, but have public key of type {go_type}"
        ));
    }
    let last = signed_with.last().copied().unwrap_or_default();
    let algorithm: &dyn VerificationAlgorithm = match (name, last, curve) {
        ("RSA", 4, _) => {
            return Err("x509: cannot verify signature: insecure algorithm MD5-RSA".to_owned());
        }
        ("RSA", 5, _) => &RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
        ("RSA", 11, _) => &RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
        ("RSA", 12, _) => &RSA_PKCS1_2048_8192_SHA384,
        ("RSA", 13, _) => &RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
        ("ECDSA", 2, P256) => &ECDSA_P256_SHA256_ASN1,
        ("ECDSA", 3, P256) => &ECDSA_P256_SHA384_ASN1,
        ("ECDSA", 2, P384) => &ECDSA_P384_SHA256_ASN1,
        ("ECDSA", 3, P384) => &ECDSA_P384_SHA384_ASN1,
        ("Ed25519", _, _) => &ED25519,
        // Other curves, digests and PSS are not implemented here, so such a request is taken at its word.
        _ => return Ok(()),
    };
    UnparsedPublicKey::new(algorithm, key).verify(message, signature).map_err(|_| failure.to_owned())
}

/// Why bytes are not certificates, or nothing.
pub(super) fn check_certificates(mut der: &[u8]) -> Result<(), String> {
    while !der.is_empty() {
        der = check_certificate(der)?;
    }
    Ok(())
}

/// Checks the first certificate. Returns what follows it.
fn check_certificate(der: &[u8]) -> Result<&[u8], String> {
    let malformed = |what: &'static str| move |_: String| format!("x509: malformed {what}");
    let mut outside = Reader::new(der);
    let certificate = outside.expect(SEQUENCE, "").map_err(malformed("certificate"))?;
    let mut fields = Reader::new(certificate.content);
    let info = fields.expect(SEQUENCE, "").map_err(malformed("tbs certificate"))?;
    let mut inner = Reader::new(info.content);

    let mut element = inner.any().map_err(malformed("serial number"))?;
    let mut version = 1;
    if element.header.class == 2 && element.header.tag == 0 {
        let number = Reader::new(element.content).expect(INTEGER, "").map_err(malformed("version"))?;
        version = match number.content {
            [byte @ 0..=2] => byte + 1,
            _ => return Err("x509: invalid version".to_owned()),
        };
        element = inner.any().map_err(malformed("serial number"))?;
    }
    if element.header.class != 0 || element.header.tag != INTEGER || element.content.is_empty() {
        return Err("x509: malformed serial number".to_owned());
    }
    if element.content[0] & 0x80 != 0 {
        return Err("x509: negative serial number".to_owned());
    }
    let signed_with = inner.expect(SEQUENCE, "").map_err(malformed("signature algorithm identifier"))?;
    let outer = fields.expect(SEQUENCE, "").map_err(malformed("algorithm identifier"))?;
    if signed_with.whole != outer.whole {
        return Err("x509: inner and outer signature algorithm identifiers don't match".to_owned());
    }
    inner.expect(SEQUENCE, "").map_err(malformed("issuer"))?;
    let mut validity = Reader::new(inner.expect(SEQUENCE, "").map_err(malformed("validity"))?.content);
    for _ in 0..2 {
        let time = validity.any().map_err(malformed("validity"))?;
        if !matches!(time.header.tag, 23 | 24) {
            return Err("x509: unsupported time format".to_owned());
        }
    }
    inner.expect(SEQUENCE, "").map_err(malformed("issuer"))?;
    let key = inner.expect(SEQUENCE, "").map_err(malformed("spki"))?;
    let mut key = Reader::new(key.content);
    key.expect(SEQUENCE, "").map_err(malformed("public key algorithm identifier"))?;
    key.expect(BIT_STRING, "").map_err(malformed("subjectPublicKey"))?;
    while version > 1 && !inner.rest().is_empty() {
        let optional = inner.any().map_err(malformed("extensions"))?;
        if optional.header.class == 2 && optional.header.tag == 3 {
            Reader::new(optional.content).expect(SEQUENCE, "").map_err(malformed("extensions"))?;
        }
    }
    fields.expect(BIT_STRING, "").map_err(malformed("signature"))?;
    Ok(outside.rest())
}
