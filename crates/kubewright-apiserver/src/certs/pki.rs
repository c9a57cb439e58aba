//! The `pki` directory below the data directory: keys and certificates that must survive a restart.
//!
//! | file | content |
//! |---|---|
//! | `ca.crt`, `ca.key` | the CA of the server's and its clients' certificates |
//! | `sa.key` | the key that signs service account tokens |
//! | `issuers` | the issuer URLs of tokens, the current one first |
//!
//! The file names are kubeadm's. Only the owner can read the keys. Files are written atomically.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::KeyPair;

use crate::authn::tokens::SigningKey;
use crate::certs::Authority;
use crate::storage::log::sync_dir;

/// An open directory.
#[derive(Debug, Clone)]
pub(crate) struct Pki(PathBuf);

/// The content of the directory.
pub(crate) struct Contents {
    pub(crate) authority: Authority,
    pub(crate) signing_key: Arc<SigningKey>,
    pub(crate) issuers: Vec<String>,
}

impl Pki {
    /// Opens the directory below a data directory. Generates missing files.
    pub(crate) fn open(data_dir: &Path) -> io::Result<(Self, Contents)> {
        let pki = Self(data_dir.join("pki"));
        fs::create_dir_all(&pki.0)?;
        sync_dir(data_dir)?;
        let authority = pki.authority()?;
        let pem = if let Some(pem) = pki.read("sa.key")? {
            pem
        } else {
            let key = KeyPair::generate().map_err(io::Error::other)?.serialize_pem();
            pki.write("sa.key", &key)?;
            key
        };
        let signing_key =
            SigningKey::from_pem(pem.as_bytes()).map_err(|error| pki.invalid("sa.key", error))?;
        let issuers = pki.read("issuers")?.unwrap_or_default().lines().map(str::to_owned).collect();
        Ok((pki, Contents { authority, signing_key: Arc::new(signing_key), issuers }))
    }

    fn authority(&self) -> io::Result<Authority> {
        if let (Some(certificate), Some(key)) = (self.read("ca.crt")?, self.read("ca.key")?) {
            return Authority::from_pem(&certificate, &key).map_err(|error| self.invalid("ca.crt", error));
        }
        let authority = Authority::new().map_err(io::Error::other)?;
        self.write("ca.key", &authority.key_pem())?;
        self.write("ca.crt", authority.pem())?;
        Ok(authority)
    }

    /// Stores the issuers for the next start.
    pub(crate) fn keep_issuers(&self, issuers: &[String]) -> io::Result<()> {
        self.write("issuers", &(issuers.join("\n") + "\n"))
    }

    fn read(&self, name: &str) -> io::Result<Option<String>> {
        match fs::read_to_string(self.0.join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let temporary = self.0.join(format!("{name}.tmp"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, self.0.join(name))?;
        sync_dir(&self.0)
    }

    fn invalid(&self, name: &str, error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
        let path = self.0.join(name);
        let text = format!("{} cannot be used: {error}; delete it to generate a new one", path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ca_and_the_signing_key_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let (pki, first) = Pki::open(folder.path()).unwrap();
        pki.keep_issuers(&["https://a/".to_owned(), "https://b/".to_owned()]).unwrap();
        let (_, second) = Pki::open(folder.path()).unwrap();
        assert_eq!(first.authority.pem(), second.authority.pem());
        assert_eq!(first.signing_key.public().id, second.signing_key.public().id);
        assert_eq!(second.issuers, ["https://a/", "https://b/"]);
    }

    #[test]
    fn a_damaged_key_is_reported_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        Pki::open(folder.path()).unwrap();
        fs::write(folder.path().join("pki/sa.key"), "nonsense").unwrap();
        let Err(error) = Pki::open(folder.path()) else { panic!("the key was accepted") };
        assert!(error.to_string().contains("pki/sa.key cannot be used"), "{error}");
    }
}
