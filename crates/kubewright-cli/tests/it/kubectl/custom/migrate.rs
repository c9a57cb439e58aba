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
    insta::assert_snapshot!(migrate("--dry-run"), @"");
    let swapped = DEFINITION
        .replace("storage: true", "storage: now-false")
        .replace("storage: false", "storage: true")
        .replace("storage: now-false", "storage: false");
    cluster.feed("replace -f -", &swapped);
    insta::assert_snapshot!(migrate("--dry-run"), @"");
    insta::assert_snapshot!(migrate("markdownviews.view.example.com"), @"");
    insta::assert_snapshot!(cluster.session("
        get crd markdownviews.view.example.com -o jsonpath={.status.storedVersions},{.metadata.annotations}
        get mdv guide -o jsonpath={.spec.host}
    "), @"");
    insta::assert_snapshot!(migrate("--all"), @"");
    insta::assert_snapshot!(migrate("orders.example.com"), @"");
}
