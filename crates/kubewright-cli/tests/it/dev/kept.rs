//! State between runs, and failing operators.

use std::net::TcpListener;

use super::project;
use super::running::{Dev, line};
use crate::run::run;

#[test]
fn the_cluster_is_kept_and_locked_and_crashes_are_reported() {
    const NAME: &str = "dev-kept";
    let folder = project(NAME);
    let path = folder.path();

    let mut first = Dev::start(&path, NAME, "--fresh --once --timeout 8m");
    first.says("samples 1 object applied in ");
    let ended = first.wait();
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("sample Page default/page-sample: Ready\n"), "{}", ended.stdout);
    assert_eq!(first.operators(), Vec::<String>::new());

    // The second run keeps the first one's cluster, and does not apply the samples.
    let mut second = Dev::start(&path, NAME, "");
    let cluster = second.says("kept from the last run");
    let pods = second.says("pods simulated: ");
    assert!(pods.contains("no image is pulled and no container runs"), "{pods}");
    let page = second.says("page http://127.0.0.1:");
    second.says("building dev-kept; the first build of the last run took ");
    second.says("ready the operator is running");
    second.kubectl("get pages/page-sample");
    second.kubectl("create namespace kept");

    let refused = run(&mut line(&path, "--fresh"));
    assert_eq!(refused.status, 1, "{refused}");
    assert!(refused.stderr.starts_with("error: another `kubewright dev` (process "), "{refused}");
    assert!(refused.stderr.contains("hint: stop it first"), "{refused}");

    let ended = second.end("TERM");
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(!ended.stdout.contains("samples "), "{}", ended.stdout);
    let kept = ended.stdout.lines().find(|line| line.contains("stopped the cluster is kept in "));
    let resume = "dev-kept; `kubewright dev` continues with it, `--fresh` starts a new one";
    assert!(kept.is_some_and(|line| line.ends_with(resume)), "{}", ended.stdout);
    assert_eq!(second.operators(), Vec::<String>::new());

    // A failing operator is restarted repeatedly, with the reason.
    let mut third = Dev::start(&path, NAME, "--operator-arg=--nonsense");
    // The addresses stay the same.
    let address = |line: &str| line.split_whitespace().find(|word| word.contains("://")).map(str::to_owned);
    assert_eq!(address(&third.says("kept from the last run")), address(&cluster));
    assert_eq!(address(&third.says("page http://127.0.0.1:")), address(&page));
    third.says("the operator exited (exit status: 2)");
    let told = third.says("2 times; restarting in 2.0 s");
    assert!(told.contains(": error: unexpected argument '--nonsense' found"), "{told}");
    third.kubectl("get namespaces kept");
    assert_eq!(third.end("INT").status, Some(0));

    let failed = run(&mut line(&path, "--quiet --once --timeout 5s --operator-arg=--nonsense"));
    assert_eq!(
        (failed.status, failed.stdout.contains("ready the operator is running")),
        (1, false),
        "{failed}"
    );
    assert!(failed.stderr.contains("error: samples not ready 5.0 s after the build\n"), "{failed}");
    assert!(failed.stderr.contains("the operator exited (exit status: 2)"), "{failed}");

    // A taken port is an error before the old cluster is removed.
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = taken.local_addr().expect("it has an address").port();
    for flag in ["port", "page-port"] {
        let failed = run(&mut line(&path, &format!("--fresh --{flag} {port}")));
        assert!(failed.stderr.contains(&format!("hint: choose another --{flag}, ")), "{failed}");
    }
    let mut kept = Dev::start(&path, NAME, "");
    kept.says("ready the operator is running");
    kept.kubectl("get namespaces kept");
    assert_eq!(kept.end("INT").status, Some(0));

    // A fresh cluster has none of the old objects.
    let mut fresh = Dev::start(&path, NAME, "--fresh --samples=false");
    fresh.says("ready the operator is running");
    assert_eq!(fresh.kubectl("get pages -o name"), "");
    let namespaces = fresh.kubectl("get namespaces -o name");
    assert!(!namespaces.lines().any(|line| line == "namespace/kept"), "{namespaces}");
    // The terminal is closed.
    assert_eq!(fresh.end("HUP").status, Some(0));
    assert_eq!(fresh.operators(), Vec::<String>::new());
}
