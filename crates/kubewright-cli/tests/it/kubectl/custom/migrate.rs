//! `kubewright migrate` after the storage version changed.

use super::{DEFINITION, with_guide};
use crate::run::{command, run};

#[test]
fn objects_are_rewritten_in_the_storage_version_and_the_old_version_can_be_removed() {
    let cluster = with_guide();
    let migrate = |arguments: &str| {
        let line = format!("migrate {arguments} --kubeconfig {}", cluster.kubeconfig().display());
        let ended = run(&mut command(&line));
        format!("{}{}status {}", ended.stdout, ended.stderr, ended.status)
    };
    insta::assert_snapshot!(migrate("--dry-run"), @r"
    note: nothing to migrate: every CRD lists only its storage version
    status 0
    ");
    let swapped = DEFINITION
        .replace("storage: true", "storage: now-false")
        .replace("storage: false", "storage: true")
        .replace("storage: now-false", "storage: false");
    cluster.feed("replace -f -", &swapped);
    insta::assert_snapshot!(migrate("--dry-run"), @r"
    markdownviews.view.example.com: stored versions v1, v1beta1; storage version v1beta1
    status 0
    ");
    insta::assert_snapshot!(migrate("markdownviews.view.example.com"), @r"
    markdownviews.view.example.com: 1 objects migrated to v1beta1
    note: markdownviews.view.example.com: 1 objects
    status 0
    ");
    insta::assert_snapshot!(cluster.session("
        get crd markdownviews.view.example.com -o jsonpath={.status.storedVersions},{.metadata.annotations}
        get mdv guide -o jsonpath={.spec.host}
    "), @r#"
    $ kubectl get crd markdownviews.view.example.com -o jsonpath={.status.storedVersions},{.metadata.annotations}
    ["v1beta1"],
    $ kubectl get mdv guide -o jsonpath={.spec.host}
    docs.example.com
    "#);
    insta::assert_snapshot!(migrate("--all"), @r"
    note: nothing to migrate: every CRD lists only its storage version
    status 0
    ");
    insta::assert_snapshot!(migrate("orders.example.com"), @r"
    error: CRD orders.example.com not found
      hint: list CRDs with `kubectl get crds`
    status 1
    ");
}
