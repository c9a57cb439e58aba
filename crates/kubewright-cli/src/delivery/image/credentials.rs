//! Registry credentials: those of Docker (`auths`, `credHelpers` and `credsStore` in config.json), then those
//! of podman.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use docker_credential::{CredentialRetrievalError, DockerCredential};
use oci_client::Reference;
use oci_client::secrets::RegistryAuth;

use crate::error::Hint as _;

/// Docker's name of its own registry in config.json.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";
/// The user name that goes with an identity token, as Azure's registry defines it.
const TOKEN_USER: &str = "00000000-0000-0000-0000-000000000000";

/// The credentials for the registry of an image; anonymous if there are none.
pub(crate) fn of(reference: &Reference) -> Result<RegistryAuth> {
    let registry = reference.registry();
    let names: &[&str] = if registry == "docker.io" { &[DOCKER_HUB, "docker.io"] } else { &[registry] };
    if config_file().is_some_and(|file| file.exists()) {
        for name in names {
            if let Some(found) = usable(docker_credential::get_credential(name), registry)? {
                return Ok(found);
            }
        }
    }
    for name in names {
        // Most users have no configuration of podman.
        if let Ok(found) = docker_credential::get_podman_credential(name) {
            return Ok(authentication(found));
        }
    }
    Ok(RegistryAuth::Anonymous)
}

fn config_file() -> Option<PathBuf> {
    let folder = env::var_os("DOCKER_CONFIG")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".docker")));
    Some(folder?.join("config.json"))
}

/// Distinguishes missing credentials from broken configurations.
fn usable(
    found: Result<DockerCredential, CredentialRetrievalError>,
    registry: &str,
) -> Result<Option<RegistryAuth>> {
    use CredentialRetrievalError as Error;
    let problem = match found {
        Ok(found) => return Ok(Some(authentication(found))),
        Err(Error::NoCredentialConfigured) => return Ok(None),
        // The response of credential helpers for an unknown registry.
        Err(Error::HelperFailure { stdout, stderr, .. })
            if [&stdout, &stderr].iter().any(|said| said.contains("credentials not found")) =>
        {
            return Ok(None);
        }
        Err(Error::HelperFailure { helper, stdout, stderr }) => {
            let said = if stderr.trim().is_empty() { stdout } else { stderr };
            anyhow!("{}", said.trim()).context(format!("{helper} failed"))
        }
        Err(Error::HelperCommunicationError) => {
            anyhow!("cannot run the credential helper that config.json names")
        }
        Err(error) => anyhow!("{error}"),
    };
    Err(problem.context(format!("cannot read the credentials for {registry}")))
        .hint("check ~/.docker/config.json (or DOCKER_CONFIG) and run `docker login` again")
}

fn authentication(credential: DockerCredential) -> RegistryAuth {
    match credential {
        DockerCredential::UsernamePassword(user, password) => RegistryAuth::Basic(user, password),
        DockerCredential::IdentityToken(token) => RegistryAuth::Basic(TOKEN_USER.to_owned(), token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_registry_is_anonymous_and_a_broken_helper_is_an_error() {
        let failure = |stdout: &str| {
            let (helper, stderr) = ("docker-credential-pass".to_owned(), String::new());
            Err(CredentialRetrievalError::HelperFailure { helper, stdout: stdout.to_owned(), stderr })
        };
        let found = usable(failure("credentials not found in native keychain\n"), "example.com");
        assert!(matches!(found, Ok(None)));
        let error = usable(failure("gpg: no secret key"), "example.com").unwrap_err();
        let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
        assert_eq!(
            chain,
            [
                "cannot read the credentials for example.com",
                "docker-credential-pass failed",
                "gpg: no secret key"
            ]
        );
    }
}
