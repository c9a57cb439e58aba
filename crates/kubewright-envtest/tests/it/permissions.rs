//! Operators run under their generated role.
//!
//! Every `#[rbac]` attribute of this program is part of every role, as in an operator. So each test uses resources that
//! no other test declares.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, LimitRange, Pod, PodTemplate, Secret, ServiceAccount,
};
use kube::ResourceExt as _;
use kubewright::rbac;
use kubewright_envtest::{Effect, Environment, Mode, Permission, eventually};
use kubewright_runtime::finalizer::{self, Event};
use kubewright_runtime::{
    Context, Key, LeaderElectionOptions, ListOptions, ManagerOptions, Outcome, Patch, Reconciler,
    Result as Reconciled,
};
use serde_json::json;

const LIMIT: Duration = Duration::from_mins(1);

async fn environment() -> Result<Environment> {
    Ok(Environment::builder().mode(Mode::Embedded).seed(1).start().await?)
}

async fn apply(env: &Environment, kind: &str, name: &str) -> Result<Key> {
    env.apply_yaml("default", &format!("{{apiVersion: v1, kind: {kind}, metadata: {{name: {name}}}}}"))
        .await?;
    Ok(Key::namespaced("default", name))
}

/// Labels Secrets without the permission to.
struct SecretLabeller;

impl Reconciler for SecretLabeller {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, cx: &Context) -> Reconciled<Outcome> {
        let patch = Patch::merge(json!({ "metadata": { "labels": { "seen": "true" } } }));
        cx.client().patch(secret, &patch).await?;
        Ok(Outcome::done())
    }
}

/// Runs a labeller until its patch was forbidden or has succeeded.
async fn label_a_secret(env: &Environment) -> Result<kubewright_envtest::Running> {
    let manager = env.manager("labeller")?;
    manager.controller(SecretLabeller).register()?;
    let running = env.run(manager);
    let key = apply(env, "Secret", "a").await?;
    eventually(LIMIT, async || {
        let secret = env.runtime_client().get::<Secret>(&key).await?;
        let refused = env.faults().operator().count(|request| request.code == Some(403));
        ensure!(refused > 0 || secret.labels().contains_key("seen"), "nothing has happened yet");
        Ok(())
    })
    .await?;
    Ok(running)
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = r#"#[rbac(groups = "", resources = "secrets", verbs = "patch")]"#)]
async fn a_missing_permission_fails_the_test_and_names_the_attribute() {
    let env = environment().await.unwrap();
    let running = label_a_secret(&env).await.unwrap();
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_expected_missing_permission_can_be_taken() -> Result<()> {
    let env = environment().await?;
    let running = label_a_secret(&env).await?;
    assert_eq!(env.forbidden_permissions(), [Permission::new("", "secrets", "patch")]);
    assert_eq!(env.forbidden_permissions(), []);
    running.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_administrator_has_all_permissions() -> Result<()> {
    let env = Environment::builder().mode(Mode::Embedded).as_admin().start().await?;
    let running = label_a_secret(&env).await?;
    assert_eq!(env.faults().operator().count(|request| request.user != "admin"), 0);
    running.stop().await?;
    Ok(())
}

/// Adds a finalizer to LimitRanges.
struct Finalized;

impl Reconciler for Finalized {
    type Object = LimitRange;

    async fn reconcile(&self, object: &LimitRange, cx: &Context) -> Reconciled<Outcome> {
        finalizer::run(cx.client(), object, "example.com/cleanup", async |event| match event {
            Event::Apply(_) | Event::Cleanup(_) => Ok(()),
        })
        .await?;
        Ok(Outcome::done())
    }
}

#[tokio::test(start_paused = true)]
async fn a_declared_finalizer_can_be_added_and_removed() -> Result<()> {
    let env = environment().await?;
    let manager = env.manager("finalized")?;
    manager.controller(Finalized).finalizer("example.com/cleanup").register()?;
    let running = env.run(manager);
    let key = apply(&env, "LimitRange", "a").await?;
    let client = env.runtime_client();
    let object = eventually(LIMIT, async || {
        let object = client.get::<LimitRange>(&key).await?;
        ensure!(!object.finalizers().is_empty(), "no finalizer yet");
        Ok(object)
    })
    .await?;
    client.delete(&*object).await?;
    eventually(LIMIT, async || {
        ensure!(client.get_opt::<LimitRange>(&key).await?.is_none(), "still there");
        Ok(())
    })
    .await?;
    let unused: Vec<String> = env.unused_permissions().iter().map(ToString::to_string).collect();
    assert!(!unused.iter().any(|it| it.contains("limitranges")), "{unused:?}");
    running.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "register the controller with .finalizer(")]
async fn the_error_for_an_undeclared_finalizer_says_how_to_declare_it() {
    let env = environment().await.unwrap();
    let manager = env.manager("finalized").unwrap();
    manager.controller(Finalized).register().unwrap();
    let running = env.run(manager);
    apply(&env, "LimitRange", "a").await.unwrap();
    let refused = async || match env.faults().operator().count(|request| request.code == Some(403)) {
        0 => Err("nothing was refused"),
        _ => Ok(()),
    };
    eventually(LIMIT, refused).await.unwrap();
    running.stop().await.unwrap();
}

/// Creates a PodTemplate for each ServiceAccount, and never deletes it.
struct Templates;

#[rbac(groups = "", resources = "podtemplates", verbs = "create, delete")]
impl Reconciler for Templates {
    type Object = ServiceAccount;

    async fn reconcile(&self, account: &ServiceAccount, cx: &Context) -> Reconciled<Outcome> {
        let made: PodTemplate = serde_json::from_value(json!({
            "metadata": { "name": account.name_any(), "namespace": account.namespace() },
            "template": { "spec": { "containers": [{ "name": "a", "image": "a" }] } },
        }))?;
        match cx.client().create(&made).await {
            Ok(_) => Ok(Outcome::done()),
            Err(error) if error.is_already_exists() => Ok(Outcome::done()),
            Err(error) => Err(error.into()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unused_permission_is_reported() -> Result<()> {
    let env = environment().await?;
    let manager = env.manager("templates")?;
    manager.controller(Templates).reads::<Endpoints>().register()?;
    let running = env.run(manager);
    let key = apply(&env, "ServiceAccount", "a").await?;
    let made = async || env.runtime_client().get::<PodTemplate>(&key).await.map(drop);
    eventually(LIMIT, made).await?;
    let unused: Vec<String> = env.unused_permissions().iter().map(ToString::to_string).collect();
    let ours: Vec<&String> = unused.iter().filter(|it| it.contains("podtemplates")).collect();
    assert_eq!(ours.len(), 1, "{unused:?}");
    let told = "delete podtemplates: not used; declared by #[rbac] at crates/kubewright-envtest/tests/it/permissions.rs:";
    assert!(ours[0].starts_with(told), "{ours:?}");
    // The kinds that the registrations read are used.
    assert!(
        !unused.iter().any(|it| it.contains("serviceaccounts") || it.contains("endpoints")),
        "{unused:?}"
    );
    running.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_operator_runs_as_its_service_account_and_the_test_as_administrator() -> Result<()> {
    let env = environment().await?;
    let options = ManagerOptions {
        leader_election: Some(LeaderElectionOptions {
            namespace: Some("default".to_owned()),
            ..LeaderElectionOptions::new("templates")
        }),
        ..ManagerOptions::new("templates")
    };
    let manager = env.manager_with(options)?;
    manager.controller(Templates).register()?;
    let running = env.run(manager);
    let client = env.runtime_client();
    let lease = Key::namespaced("default", "templates");
    eventually(LIMIT, async || client.get::<Lease>(&lease).await.map(drop)).await?;
    let request = env.faults().operator().requests();
    let user = "system:serviceaccount:templates-system:templates-controller-manager";
    assert!(!request.is_empty() && request.iter().all(|request| request.user == user), "{request:?}");
    assert!(env.faults().requests().iter().any(|request| request.user == "admin"));
    running.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_namespaced_role_suffices_for_a_namespaced_manager() -> Result<()> {
    let env = environment().await?;
    let namespace = env.namespace().await?;
    let manager = env.manager_with(ManagerOptions::new("templates").namespaces([&namespace]))?;
    manager.controller(Templates).register()?;
    let running = env.run(manager);
    let yaml = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}";
    env.apply_yaml(&namespace, yaml).await?;
    let key = Key::namespaced(&namespace, "a");
    let made = async || env.runtime_client().get::<PodTemplate>(&key).await.map(drop);
    eventually(LIMIT, made).await?;
    running.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn faults_of_the_operator_do_not_affect_the_test() -> Result<()> {
    let env = environment().await?;
    let manager = env.manager("templates")?;
    manager.controller(Templates).register()?;
    env.faults().operator().every(Effect::internal_error(), |_| true);
    let running = env.run(manager);
    // The setup of the operator is not affected.
    apply(&env, "ServiceAccount", "a").await?;
    let failed = async || match env.faults().operator().count(|request| request.code == Some(500)) {
        0 => Err("nothing failed"),
        _ => Ok(()),
    };
    eventually(LIMIT, failed).await?;
    assert_eq!(env.faults().count(|request| !request.is_operator && request.fault.is_some()), 0);
    env.faults().heal();
    let key = Key::namespaced("default", "a");
    eventually(LIMIT, async || env.runtime_client().get::<PodTemplate>(&key).await.map(drop)).await?;
    running.stop().await?;
    Ok(())
}

/// Counts the Pods in an index by ConfigMap.
struct Counter;

const BY_MAP: &str = "map";

#[rbac(groups = "", resources = "configmaps", verbs = "patch")]
impl Reconciler for Counter {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> Reconciled<Outcome> {
        let pods = cx.client().list::<Pod>(&ListOptions::all().field(BY_MAP, map.name_any())).await?;
        let patch = Patch::merge(json!({ "data": { "pods": pods.len().to_string() } }));
        cx.client().patch(map, &patch).await?;
        Ok(Outcome::done())
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_reconcile_can_use_registered_indexes() -> Result<()> {
    let env = environment().await?;
    let manager = env.manager("counter")?;
    // Registering an index caches its kind and derives the permissions.
    manager.cache().index::<Pod>(BY_MAP, |pod| pod.labels().get(BY_MAP).cloned().into_iter().collect())?;
    manager.controller(Counter).register()?;
    let key = apply(&env, "ConfigMap", "a").await?;
    for count in 0..3 {
        manager.reconcile_once(&Counter, &key).await.unwrap();
        let map = env.runtime_client().get::<ConfigMap>(&key).await?;
        assert_eq!(map.data.as_ref().and_then(|data| data.get("pods")), Some(&count.to_string()));
        // The next reconcile sees this write of the test.
        env.apply_yaml(
            "default",
            &format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{name: pod-{count}, labels: {{map: a}}}}, \
                 spec: {{containers: [{{name: a, image: a}}]}}}}"
            ),
        )
        .await?;
    }
    assert!(env.faults().operator().requests().iter().any(|request| request.user != "admin"));
    Ok(())
}
