//! Generated CRDs are applied by kubectl without warnings.

use crate::kubectl::cluster::Cluster;

/// The content of a kubewright-manifests snapshot.
macro_rules! generated {
    ($name:literal) => {
        body(include_str!(concat!("../../../../../kubewright-manifests/testdata/crds/", $name, ".snap")))
    };
}

fn body(snapshot: &'static str) -> &'static str {
    let after = snapshot.strip_prefix("---\n").and_then(|text| text.split_once("\n---\n"));
    after.expect("a snapshot has a head").1
}

#[test]
fn the_crd_of_the_tutorial_works() {
    let cluster = Cluster::start();
    let created = cluster.feed("apply -f -", generated!("markdown_view")).result();
    assert_eq!(
        created,
        "customresourcedefinition.apiextensions.k8s.io/markdownviews.view.zoetrope.github.io created\n"
    );
    let view = "apiVersion: view.zoetrope.github.io/v1\nkind: MarkdownView\nmetadata: {name: one}\n\
                spec: {markdowns: {a.md: hello}}\n";
    cluster.feed("apply -f -", view).result();
    let columns = cluster.kubectl("get markdownviews --no-headers").result();
    assert_eq!(columns.split_whitespace().collect::<Vec<_>>(), ["one", "1"]);
    let refused = cluster.feed("apply -f -", &view.replace("{a.md: hello}", "{}")).failure();
    assert!(
        refused.contains("spec.markdowns: Invalid value: 0: spec.markdowns in body should have at least 1"),
        "{refused}"
    );
}

#[test]
fn the_cron_job_crd_of_the_book_works() {
    let cluster = Cluster::start();
    cluster.feed("apply -f -", generated!("cronjob_without_descriptions")).result();
    let name = cluster.kubectl("get crd -o name").result();
    let name = name.trim().rsplit('/').next().expect("there is one").to_owned();
    let group = name.split_once('.').expect("it has a group").1;
    let job = format!(
        "apiVersion: {group}/v1\nkind: CronJob\nmetadata: {{name: one}}\nspec: {{schedule: '*/1 * * * *', \
         jobTemplate: {{spec: {{template: {{spec: {{restartPolicy: OnFailure, \
         containers: [{{name: hello, image: busybox}}]}}}}}}}}}}"
    );
    cluster.feed("apply --server-side -f -", &job).result();
    // Containers are merged by name, as in a Pod.
    let other = job.replace("name: hello, image: busybox", "name: other, image: alpine");
    cluster.feed("apply --server-side --field-manager other -f -", &other).result();
    let containers =
        "get cronjobs.v1.GROUP one -o jsonpath={.spec.jobTemplate.spec.template.spec.containers[*].name}";
    assert_eq!(cluster.kubectl(&containers.replace("GROUP", group)).result(), "hello other");
}

#[test]
fn a_crd_with_every_marker_is_applied() {
    let cluster = Cluster::start();
    let created = cluster.feed("apply -f -", generated!("everything")).result();
    assert!(created.ends_with(" created\n"), "{created}");
}
