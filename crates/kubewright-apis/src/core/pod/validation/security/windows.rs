//! Validation of Windows security options.

use serde_json::Value;

use crate::core::pod::validation::checks;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

const MAX_CREDENTIAL_SPEC_KIB: usize = 64;
const MAX_DOMAIN: usize = 256;
const MAX_USER: usize = 104;

/// Validates `windowsOptions` of a pod or container.
pub(super) fn options(options: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(name) = options.at("gmsaCredentialSpecName").as_str() {
        checks::dns_subdomain(name, &path.child("gmsaCredentialSpecName"), errors);
    }
    if let Some(spec) = options.at("gmsaCredentialSpec").as_str() {
        let path = path.child("gmsaCredentialSpec");
        if spec.is_empty() {
            errors.push(FieldError::invalid(&path, spec, "gmsaCredentialSpec cannot be an empty string"));
        } else if spec.len() > MAX_CREDENTIAL_SPEC_KIB * 1024 {
            let detail = format!("gmsaCredentialSpec size must be under {MAX_CREDENTIAL_SPEC_KIB} KiB");
            errors.push(FieldError::invalid(&path, spec, detail));
        }
    }
    if let Some(user) = options.at("runAsUserName").as_str() {
        for detail in user_name(user) {
            errors.push(FieldError::invalid(&path.child("runAsUserName"), user, detail));
        }
    }
}

/// Validates HostProcess: either all containers or none, and only in the host network.
pub(in crate::core::pod::validation) fn host_process(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let of_pod = spec.at("securityContext.windowsOptions.hostProcess").as_bool();
    let (mut count, mut of_host) = (0, 0);
    for (container, path) in checks::containers(spec, path) {
        count += 1;
        let own = container.at("securityContext.windowsOptions.hostProcess").as_bool();
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let path = path.child("securityContext").child("windowsOptions").child("hostProcess");
            let detail =
                format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            errors.push(FieldError::invalid(&path, own, detail));
        }
        of_host += usize::from(own.or(of_pod).unwrap_or_default());
    }
    if of_host == 0 {
        return;
    }
    if of_host != count {
        let detail =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(FieldError::invalid(path, "", detail));
    }
    if !spec.bool_at("hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(&path.child("hostNetwork"), false, detail));
    }
}

/// Validates `USER` or `DOMAIN\USER`.
fn user_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string".to_owned()];
    }
    if name.contains(|c: char| c.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters".to_owned()];
    }
    let parts: Vec<&str> = name.split('\\').collect();
    let (domain, user) = match parts[..] {
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => return vec!["runAsUserName cannot contain more than one backslash".to_owned()],
    };
    let mut details = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= MAX_DOMAIN) {
        details.push(format!("runAsUserName's Domain length must be under {MAX_DOMAIN} characters"));
    }
    if domain.is_some_and(|domain| !is_net_bios(domain) && !is_dns(domain)) {
        details.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format".to_owned());
    }
    if user.is_empty() {
        details.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > MAX_USER {
        details.push(format!("runAsUserName's User length must not be longer than {MAX_USER} characters"));
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        details.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        let detail = r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#;
        details.push(detail.to_owned());
    }
    details
}

fn is_net_bios(domain: &str) -> bool {
    (1..=15).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])
}

fn is_dns(domain: &str) -> bool {
    domain.split('.').all(|label| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_name_may_have_a_domain() {
        for name in ["ContainerUser", r"NT AUTHORITY\SYSTEM", r"example.com\a-b"] {
            assert_eq!(user_name(name), Vec::<String>::new(), "{name}");
        }
        for name in ["", "a\nb", r"a\b\c", r"a\", " .", "a:b", r".a\b"] {
            assert_eq!(user_name(name).len(), 1, "{name:?}: {:?}", user_name(name));
        }
    }
}
