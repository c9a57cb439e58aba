//! The files of the image besides the operator: CA certificates, the user, and shared libraries.
//!
//! The certificates are Mozilla's, compiled into this program, so that the digest does not depend on the
//! certificates of the build machine.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

use super::layer::Files;
use super::libraries::{self, Elf};
use super::platform::Platform;
use crate::error::Hint as _;

/// The user and group of the operator, as in distroless images and kubebuilder's.
pub(crate) const USER: u32 = 65532;
/// The path of the operator, which config/manager/manager.yaml calls.
pub(crate) const ENTRYPOINT: &str = "/manager";
/// Where rustls, Go and OpenSSL look for certificates.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The base layer. `extra` are PEM files with further CA certificates.
pub(crate) fn base(binary: &Elf, platform: Platform, extra: &[impl AsRef<Path>]) -> Result<Files> {
    let mut files = Files::default();
    files.add(CERTIFICATES, 0o644, certificates(extra)?);
    files.add(
        "/etc/passwd",
        0o644,
        format!("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/:/sbin/nologin\n"),
    );
    files.add("/etc/group", 0o644, format!("root:x:0:\nnonroot:x:{USER}:\n"));
    // glibc and musl agree on this order; without the file, older glibc versions ignore /etc/hosts.
    files.add("/etc/nsswitch.conf", 0o644, "hosts: files dns\n");
    files.add_directory("/tmp", 0o1777);
    if binary.is_dynamic() {
        for (path, data) in libraries::of(binary, platform)? {
            files.add(&path, 0o755, data);
        }
    }
    Ok(files)
}

/// The layer of the operator, the only one that changes with its code.
pub(crate) fn operator(binary: Vec<u8>) -> Files {
    let mut files = Files::default();
    files.add(ENTRYPOINT, 0o755, binary);
    files
}

/// Mozilla's certificates and those of files, as PEM.
fn certificates(extra: &[impl AsRef<Path>]) -> Result<String> {
    let mut text = String::new();
    for certificate in TLS_SERVER_ROOT_CERTS {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate);
        let mut left = encoded.as_str();
        while !left.is_empty() {
            let (line, rest) = left.split_at(left.len().min(64));
            text.extend([line, "\n"]);
            left = rest;
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    for file in extra {
        let file = file.as_ref();
        let pem = fs::read_to_string(file)
            .with_context(|| format!("cannot read the CA certificates in {}", file.display()))?;
        if !pem.contains("-----BEGIN CERTIFICATE-----") {
            return bail_not_pem(file);
        }
        text.extend([pem.trim_end(), "\n"]);
    }
    Ok(text)
}

fn bail_not_pem(file: &Path) -> Result<String> {
    let failed = || -> Result<String> { bail!("{} has no PEM certificate", file.display()) };
    failed().hint("convert it: `openssl x509 -inform der -in FILE -out FILE.pem`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_of_files_are_appended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----";
        fs::write(&file, pem).unwrap();
        let text = certificates(&[&file]).unwrap();
        assert!(text.matches("BEGIN CERTIFICATE").count() > 100);
        assert!(text.ends_with(&format!("{pem}\n")));
        assert!(text.lines().all(|line| line.len() <= 64));
        fs::write(&file, "no").unwrap();
        let error = certificates(&[&file]).unwrap_err().to_string();
        assert!(error.ends_with("ca.pem has no PEM certificate"), "{error}");
    }
}
