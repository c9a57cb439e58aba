//! The folder `pki` of a data folder: what must stay the same when a server is started again.
//!
//! | file | what it holds |
//! |---|---|
//! | `ca.crt`, `ca.key` | the authority of the server's and its clients' certificates |
//! | `sa.key` | the key that signs service account tokens |
//! | `issuers` | the URLs that tokens were issued under, the current one first |
//!
//! The names are kubeadm's. Keys are readable by their owner only. A file is complete, or it is not there.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::KeyPair;

use crate::certs::Authority;
use crate::tokens::SigningKey;

/// An open folder.
#[derive(Debug, Clone)]
pub(crate) struct Pki(PathBuf);

/// What the folder holds.
pub(crate) struct Contents {
    pub(crate) authority: Authority,
    pub(crate) signing_key: Arc<SigningKey>,
    pub(crate) issuers: Vec<String>,
}

impl Pki {
    /// Opens the folder of a data folder. What is missing is generated.
    pub(crate) fn open(data_dir: &Path) -> io::Result<(Self, Contents)> {
        let pki = Self(data_dir.join("pki"));
        fs::create_dir_all(&pki.0)?;
        let authority = pki.authority()?;
        let key = if let Some(pem) = pki.read("sa.key")? {
            pem
        } else {
            let pem = KeyPair::generate().map_err(io::Error::other)?.serialize_pem();
            pki.write("sa.key", &pem)?;
            pem
        };
        let signing_key =
            SigningKey::from_pem(key.as_bytes()).map_err(|error| pki.invalid("sa.key", error))?;
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

    /// Notes the issuers for the next start.
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
        fs::rename(&temporary, self.0.join(name))
    }

    fn invalid(&self, name: &str, error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
        let path = self.0.join(name);
        let text = format!("{} cannot be used: {error}; delete it to have a new one made", path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_and_the_key_are_the_same_after_a_restart() {
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
