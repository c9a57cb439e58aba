//! Removing a conversion webhook from the project and from an installed CRD.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubewright_runtime::webhook::certificates::Material;
use kubewright_runtime::{Clock as _, SystemClock};

use crate::kubectl::cluster::Cluster;
use crate::scaffold::Folder;

const CRD: &str = "orders.sales.example.com";
const DELETE: &str = "delete webhook --group sales --version v1 --kind Order --conversion";

/// A project with two versions and a conversion.
fn project() -> Folder {
    let folder = Folder::with_order();
    folder.done("create api --group sales --version v2 --kind Order --controller=false");
    folder.done("create webhook --group sales --version v1 --kind Order --conversion --spoke v2");
    folder
}

/// `make install`.
fn install(cluster: &Cluster, folder: &Folder) -> String {
    let crds = folder.path().join("config/crd");
    format!("{}", cluster.kubectl(&format!("apply --server-side --force-conflicts -k {}", crds.display())))
}

/// A cluster with the CRD, into which the operator has injected its CA.
fn installed(folder: &Folder) -> Cluster {
    let cluster = Cluster::start();
    let applied = install(&cluster, folder);
    assert!(applied.contains("serverside-applied"), "{applied}");
    let names = ["webhook-service.shop-system.svc".to_owned()];
    let bundle = Material::create(&names, SystemClock.now()).expect("a certificate").bundle();
    let injected = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {CRD}}}\n\
         spec: {{conversion: {{webhook: {{clientConfig: {{caBundle: {}}}}}}}}}\n",
        STANDARD.encode(bundle)
    );
    cluster.feed("apply --server-side --field-manager=kubewright-webhook-ca -f -", &injected).output();
    cluster
}

fn conversion(cluster: &Cluster) -> String {
    cluster.kubectl(&format!("get crd {CRD} -o jsonpath={{.spec.conversion}}")).result()
}

#[test]
fn a_conversion_is_removed_with_the_printed_command() {
    let folder = project();
    let cluster = installed(&folder);
    let deleted = folder.run(&format!("{DELETE} --force"));
    assert_eq!(deleted.status, 0, "{deleted}");
    // The field manager of the injection still owns the CA.
    let refused = install(&cluster, &folder);
    assert!(refused.contains("spec.conversion.webhook"), "{refused}");

    let said = format!("{}{}", deleted.stdout, deleted.stderr);
    let patch = said.lines().find_map(|line| line.trim().strip_prefix("kubectl patch ")).expect("a command");
    let patch = patch.replace("-p='", "-p '");
    cluster.kubectl(&format!("patch {patch}")).output();
    let applied = install(&cluster, &folder);
    assert!(applied.contains("serverside-applied"), "{applied}");
    assert_eq!(conversion(&cluster), r#"{"strategy":"None"}"#);
}

#[test]
fn a_conversion_is_removed_from_a_cluster_that_no_longer_needs_it() {
    let folder = project();
    let cluster = installed(&folder);
    let delete = format!("{DELETE} --force --kubeconfig {}", cluster.kubeconfig().display());
    let stored = |versions: &str| {
        let patch = format!(r#"{{"status":{{"storedVersions":[{versions}]}}}}"#);
        cluster.kubectl(&format!("patch crd {CRD} --subresource=status --type=merge -p '{patch}'")).output();
    };
    stored(r#""v2","v1""#);
    let before = folder.files();
    let refused = folder.run(&delete);
    let said = refused.stderr.clone();
    assert_ne!(refused.status, 0, "{refused}");
    assert!(said.contains("objects may be stored in v2, v1"), "{said}");
    assert!(said.contains(&format!("kubewright migrate {CRD}")), "{said}");
    assert_eq!(folder.files(), before, "nothing is written");
    assert!(conversion(&cluster).contains("Webhook"));

    stored(r#""v1""#);
    let deleted = folder.run(&delete);
    assert_eq!(deleted.status, 0, "{deleted}");
    assert_eq!(conversion(&cluster), r#"{"strategy":"None"}"#);
    let applied = install(&cluster, &folder);
    assert!(applied.contains("serverside-applied"), "{applied}");
}
