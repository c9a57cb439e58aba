//! The controllers `csrapproving` and `csrsigning` of kube-controller-manager.
//!
//! Under [`Controllers::Core`](crate::Controllers::Core) both run as part of the write. Certificates are
//! issued by the CA of client certificates, so a client certificate authenticates at this server.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::time;
use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer as _;

use crate::authn::User;
use crate::authz::{Action, ActionOn, Authz};
use crate::certs::ClientCa;
use crate::certs::issue::Template;
use crate::encoding::response;
use crate::fieldmanager::FieldManager;
use crate::registry::conversion::Recorder;
use crate::registry::resource::Resource;
use crate::registry::store::ObjectStore;
use crate::storage::Expect;

/// The name of CertificateSigningRequests in storage.
pub(crate) const STORAGE: &str = "certificates.k8s.io/certificatesigningrequests";

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";

const MANAGER: &str = "kube-controller-manager";
/// Maximum lifetime of certificates: `--cluster-signing-duration`.
const MAX_SECONDS: i64 = 365 * 24 * 3600;
const MIN_SECONDS: i64 = 600;
/// Certificates are valid from this much earlier on, for clocks that are behind.
const BACKDATE: i64 = 300;
/// For shorter lifetimes, backdating does not change the expiry.
const SHORT: i64 = 8 * 3600;
/// Maximum number of retries after a conflict.
const TRIES: usize = 8;

/// The next action of the controllers.
enum Next {
    Nothing,
    /// Update the status through this subresource.
    Write(&'static str, Value),
}

/// Approves and signs CertificateSigningRequests.
pub(crate) struct CertificateSigner {
    objects: Arc<ObjectStore>,
    authz: Arc<Authz>,
    ca: ClientCa,
}

impl CertificateSigner {
    pub(crate) fn new(objects: Arc<ObjectStore>, authz: Arc<Authz>, ca: ClientCa) -> Self {
        Self { objects, authz, ca }
    }

    /// Approves and signs a request, as far as the controllers do.
    pub(crate) fn follow(&self, name: &str) {
        let registry = self.objects.registry();
        let Some(resource) = registry.stored(STORAGE) else { return };
        for _ in 0..TRIES {
            let Some(version) = self.objects.storage().get(STORAGE, name) else { return };
            let live = response::packed(resource, &version);
            let Next::Write(subresource, status) = self.next_of_request(&live) else { return };
            if let Err(error) =
                self.write_status(resource, name, version.revision, &live, subresource, status)
            {
                tracing::warn!(request = name, error, "failed to update CertificateSigningRequest");
                return;
            }
        }
    }

    fn write_status(
        &self,
        resource: &Resource,
        name: &str,
        revision: u64,
        live: &Value,
        subresource: &str,
        status: Value,
    ) -> Result<(), String> {
        let mut new = live.clone();
        new.set_at("status", status);
        let manager = FieldManager::named(MANAGER);
        manager.track(&Recorder::new(&*self.objects.clock, resource), subresource, Some(live), &mut new);
        resource.strategy.canonicalize(&mut new).map_err(|error| error.message)?;
        // A conflict is retried.
        let _ = self.objects.put_without_steps(resource, name, Expect::At(revision), new);
        Ok(())
    }

    fn next_of_request(&self, request: &Value) -> Next {
        let is = |kind: &str| {
            let conditions = request.list_at("status.conditions");
            conditions.iter().any(|condition| condition.str_at("type") == kind)
        };
        if !request.str_at("status.certificate").is_empty() || is("Denied") || is("Failed") {
            return Next::Nothing;
        }
        let signer = request.str_at("spec.signerName");
        if ![CLIENT, KUBELET_CLIENT, KUBELET_SERVING].contains(&signer) {
            return Next::Nothing;
        }
        let Some(der) = der(request.str_at("spec.request")) else { return Next::Nothing };
        let Ok((_, parsed)) = X509CertificationRequest::from_der(&der) else { return Next::Nothing };
        let wanted = Wanted::read(&parsed, request);
        if !is("Approved") {
            return match self.auto_approval(request, &wanted) {
                Some(message) => {
                    Next::Write("approval", self.with_condition(request, "Approved", "AutoApproved", message))
                }
                None => Next::Nothing,
            };
        }
        if let Err(why) = wanted.check(signer) {
            return Next::Write(
                "status",
                self.with_condition(request, "Failed", "SignerValidationFailure", &why),
            );
        }
        match self.issue(request, &parsed, &wanted) {
            Ok(certificate) => {
                let mut status = request.at("status").clone();
                status.set_at("certificate", STANDARD.encode(certificate));
                Next::Write("status", status)
            }
            Err(error) => {
                let name = request.str_at("metadata.name");
                tracing::warn!(%error, request = name, "failed to issue certificate");
                Next::Nothing
            }
        }
    }

    /// The message of an automatic approval: kubelets renew their own client certificates, and users with the
    /// permission request them for nodes.
    fn auto_approval(&self, request: &Value, wanted: &Wanted<'_>) -> Option<&'static str> {
        if request.str_at("spec.signerName") != KUBELET_CLIENT || wanted.check(KUBELET_CLIENT).is_err() {
            return None;
        }
        let strings = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let extra = request.map_at("spec.extra").iter();
        let user = User {
            name: request.str_at("spec.username").to_owned(),
            uid: request.str_at("spec.uid").to_owned(),
            groups: strings(request.at("spec.groups")),
            extra: extra.map(|(key, values)| (key.clone(), strings(values))).collect::<BTreeMap<_, _>>(),
        };
        let may = |resource: &str| {
            let on = ActionOn::Resource { group: "certificates.k8s.io", resource, namespace: "", name: "" };
            self.authz.allows(&user, Action { verb: "create", on })
        };
        if user.name == wanted.common_name && may("certificatesigningrequests/selfnodeclient") {
            return Some("Auto approving self kubelet client certificate after SubjectAccessReview.");
        }
        may("certificatesigningrequests/nodeclient")
            .then_some("Auto approving kubelet client certificate after SubjectAccessReview.")
    }

    fn with_condition(&self, request: &Value, kind: &str, reason: &str, message: &str) -> Value {
        let now = time::format_rfc3339(self.objects.clock.now());
        let mut status = request.at("status").clone();
        let mut conditions = status.list_at("conditions").to_vec();
        conditions.push(json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastUpdateTime": now, "lastTransitionTime": now,
        }));
        status.set_at("conditions", conditions);
        status
    }

    fn issue(
        &self,
        request: &Value,
        parsed: &X509CertificationRequest<'_>,
        wanted: &Wanted<'_>,
    ) -> Result<String, crate::certs::CertificateError> {
        let authority = self.ca.get()?;
        let seconds = request.int_at("spec.expirationSeconds").unwrap_or(MAX_SECONDS);
        let seconds = seconds.clamp(MIN_SECONDS, MAX_SECONDS);
        let now = self.objects.clock.now();
        let end = if seconds < SHORT { now + seconds } else { now + seconds - BACKDATE };
        let mut key_usages: Vec<u8> = wanted.usages.iter().filter_map(|usage| key_usage(usage)).collect();
        key_usages.sort_unstable();
        key_usages.dedup();
        let extended: Vec<&[u64]> =
            wanted.usages.iter().filter_map(|usage| extended_key_usage(usage)).collect();
        authority.issue(&Template {
            // Serial numbers must be positive and not empty.
            serial: (u128::from_str_radix(&self.objects.ids.uid().replace('-', ""), 16).unwrap_or(1) >> 1)
                .to_be_bytes(),
            subject: parsed.certification_request_info.subject.as_raw(),
            key: parsed.certification_request_info.subject_pki.raw,
            not_before: now - BACKDATE,
            not_after: end.min(authority.not_after()),
            key_usages: &key_usages,
            extended_key_usages: &extended,
            alternative_names: wanted.alternative_names,
        })
    }
}

fn der(request: &str) -> Option<CertificateSigningRequestDer<'static>> {
    CertificateSigningRequestDer::from_pem_slice(&STANDARD.decode(request).ok()?).ok()
}

/// The content of a CertificateSigningRequest.
struct Wanted<'a> {
    common_name: &'a str,
    organizations: Vec<&'a str>,
    usages: Vec<&'a str>,
    dns: usize,
    ips: usize,
    emails: usize,
    uris: usize,
    /// The value of the subjectAltName extension, in DER.
    alternative_names: Option<&'a [u8]>,
}

impl<'a> Wanted<'a> {
    fn read(parsed: &'a X509CertificationRequest<'a>, request: &'a Value) -> Self {
        let info = &parsed.certification_request_info;
        let mut wanted = Self {
            common_name: info
                .subject
                .iter_common_name()
                .last()
                .and_then(|name| name.as_str().ok())
                .unwrap_or_default(),
            organizations: info.subject.iter_organization().filter_map(|name| name.as_str().ok()).collect(),
            usages: request.list_at("spec.usages").iter().filter_map(Value::as_str).collect(),
            dns: 0,
            ips: 0,
            emails: 0,
            uris: 0,
            alternative_names: None,
        };
        let requested = info.iter_attributes().filter_map(|attribute| match attribute.parsed_attribute() {
            ParsedCriAttribute::ExtensionRequest(requested) => Some(&requested.extensions),
            _ => None,
        });
        for extension in requested.flatten() {
            let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() else {
                continue;
            };
            wanted.alternative_names = Some(extension.value);
            for name in &names.general_names {
                match name {
                    GeneralName::DNSName(_) => wanted.dns += 1,
                    GeneralName::IPAddress(_) => wanted.ips += 1,
                    GeneralName::RFC822Name(_) => wanted.emails += 1,
                    GeneralName::URI(_) => wanted.uris += 1,
                    _ => {}
                }
            }
        }
        wanted
    }

    /// Checks a request against the rules of its signer. Errors are kube-controller-manager's.
    fn check(&self, signer: &str) -> Result<(), String> {
        match signer {
            KUBELET_CLIENT => self.check_kubelet_client(),
            KUBELET_SERVING => self.check_kubelet_serving(),
            _ => self.check_client(),
        }
    }

    fn check_client(&self) -> Result<(), String> {
        let known = ["digital signature", "key encipherment", "client auth"];
        if let Some(usage) = self.usages.iter().find(|usage| !known.contains(usage)) {
            return Err(format!("invalid usage for client certificate: {usage}"));
        }
        if !self.usages.contains(&"client auth") {
            return Err("missing required usage for client certificate: client auth".to_owned());
        }
        Ok(())
    }

    fn check_kubelet_client(&self) -> Result<(), String> {
        let refuse = |why: &str| Err(why.to_owned());
        if self.organizations != ["system:nodes"] {
            return refuse("subject organization is not system:nodes");
        }
        if self.dns > 0 {
            return refuse("DNS subjectAltNames are not allowed");
        }
        if self.emails > 0 {
            return refuse("Email subjectAltNames are not allowed");
        }
        if self.ips > 0 {
            return refuse("IP subjectAltNames are not allowed");
        }
        if self.uris > 0 {
            return refuse("URI subjectAltNames are not allowed");
        }
        if !self.common_name.starts_with("system:node:") {
            return refuse("subject common name does not begin with system:node:");
        }
        self.check_usages("client auth")
    }

    fn check_kubelet_serving(&self) -> Result<(), String> {
        let refuse = |why: &str| Err(why.to_owned());
        if self.organizations != ["system:nodes"] {
            return refuse("subject organization is not system:nodes");
        }
        if self.dns == 0 && self.ips == 0 {
            return refuse("DNS or IP subjectAltName is required");
        }
        if self.emails > 0 {
            return refuse("Email subjectAltNames are not allowed");
        }
        if self.uris > 0 {
            return refuse("URI subjectAltNames are not allowed");
        }
        self.check_usages("server auth")?;
        if !self.common_name.starts_with("system:node:") {
            return refuse("subject common name does not begin with system:node:");
        }
        Ok(())
    }

    /// Exactly digital signature and `purpose`; RSA keys may also have key encipherment.
    fn check_usages(&self, purpose: &str) -> Result<(), String> {
        let mut usages = self.usages.clone();
        usages.sort_unstable();
        usages.dedup();
        let mut all = ["digital signature", "key encipherment", purpose];
        all.sort_unstable();
        let short: Vec<&str> = all.iter().copied().filter(|usage| *usage != "key encipherment").collect();
        if usages == all || usages == short {
            return Ok(());
        }
        Err(format!("usages did not match [{}]", all.join(" ")))
    }
}

/// The bit number of a key usage.
fn key_usage(usage: &str) -> Option<u8> {
    Some(match usage {
        "signing" | "digital signature" => 0,
        "content commitment" => 1,
        "key encipherment" => 2,
        "data encipherment" => 3,
        "key agreement" => 4,
        "cert sign" => 5,
        "crl sign" => 6,
        "encipher only" => 7,
        "decipher only" => 8,
        _ => return None,
    })
}

/// The OID of an extended key usage. The signers allow no others.
fn extended_key_usage(usage: &str) -> Option<&'static [u64]> {
    match usage {
        "server auth" => Some(&[1, 3, 6, 1, 5, 5, 7, 3, 1]),
        "client auth" => Some(&[1, 3, 6, 1, 5, 5, 7, 3, 2]),
        _ => None,
    }
}
