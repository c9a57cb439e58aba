//! Credentials of Docker's configuration, with a registry that requires a login.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;

use super::registry::Registry;
use super::{Package, binary};
use crate::run::{Run, run};

/// Pushes with a Docker configuration. Credential helpers are looked up in the package.
fn push(registry: &Registry, package: &Package, config: &str) -> Run {
    let folder = package.path("docker");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("config.json"), config).expect("a file");
    let tag = registry.image("shop:v1");
    let line = format!("image build --binary {} --tag {tag} --output push", binary().display());
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", package.path("bin").display());
    run(package.command(&line).env("DOCKER_CONFIG", &folder).env("PATH", path))
}

/// A credential helper, by the protocol of Docker: the registry on standard input, JSON on standard output.
fn helper(package: &Package, name: &str, registry: &str) {
    let folder = package.path("bin");
    fs::create_dir_all(&folder).expect("a folder");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = get ] || exit 2\nread -r server\n\
         if [ \"$server\" = {registry} ]; then echo '{{\"Username\": \"ci\", \"Secret\": \"secret\"}}'\n\
         else echo 'credentials not found in native keychain'; exit 1; fi\n"
    );
    let file = folder.join(format!("docker-credential-{name}"));
    fs::write(&file, script).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode");
}

#[test]
fn credentials_come_from_auths_helpers_and_stores() {
    let (registry, package) = (Registry::with_login(), Package::new());
    let encoded = base64::engine::general_purpose::STANDARD.encode("ci:secret");
    let auths = format!(r#"{{"auths": {{"{}": {{"auth": "{encoded}"}}}}}}"#, registry.address);
    let pushed = push(&registry, &package, &auths);
    assert_eq!(pushed.status, 0, "{pushed}");

    helper(&package, "test", &registry.address);
    let helpers = format!(r#"{{"credHelpers": {{"{}": "test"}}}}"#, registry.address);
    let store = r#"{"credsStore": "test"}"#;
    for config in [helpers.as_str(), store] {
        let pushed = push(&registry, &package, config);
        assert_eq!(pushed.status, 0, "{config}: {pushed}");
    }
}

#[test]
fn missing_and_wrong_credentials_are_reported() {
    let (registry, package) = (Registry::with_login(), Package::new());
    helper(&package, "test", "another.example.com");
    let wrong = base64::engine::general_purpose::STANDARD.encode("ci:wrong");
    let wrong = format!(r#"{{"auths": {{"{}": {{"auth": "{wrong}"}}}}}}"#, registry.address);
    for config in ["{}", r#"{"credsStore": "test"}"#, &wrong] {
        let refused = push(&registry, &package, config);
        assert_eq!(refused.status, 1, "{config}: {refused}");
        let advice = format!("hint: run `docker login {}`", registry.address);
        assert!(refused.stderr.contains(&advice), "{config}: {refused}");
    }
    let broken = push(&registry, &package, r#"{"credsStore": "missing"}"#);
    assert!(broken.stderr.contains("cannot run the credential helper that config.json names"), "{broken}");
}
