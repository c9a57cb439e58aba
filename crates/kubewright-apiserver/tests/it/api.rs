//! kube's `Api` on the in-process server: all verbs, subresources and kinds of errors.

use anyhow::{Result, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret, ServiceAccount};
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
    VersionMatch,
};
use kube::core::{ObjectMeta, PartialObjectMeta, PartialObjectMetaExt as _, Status};
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;

use crate::world::{alone, config_map, deployment, object, pod};

fn status<T: std::fmt::Debug>(result: kube::Result<T>) -> Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("not an API error: {other:?}"),
    }
}

#[tokio::test]
async fn an_object_is_created_read_replaced_and_deleted() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    let created = maps.create(&PostParams::default(), &config_map("a")).await?;
    assert_eq!(created.namespace().as_deref(), Some("default"));
    assert!(created.uid().is_some() && created.creation_timestamp().is_some());

    let read = maps.get("a").await?;
    assert_eq!(read, created);

    let mut changed = read.clone();
    changed.data = Some([("key".to_owned(), "other".to_owned())].into());
    let replaced = maps.replace("a", &PostParams::default(), &changed).await?;
    assert_ne!(replaced.resource_version(), read.resource_version());
    assert_eq!(maps.get("a").await?.data, changed.data);

    let deleted = maps.delete("a", &DeleteParams::default()).await?;
    let status = deleted.right().expect("an object without finalizers is deleted immediately");
    assert!(status.is_success());
    assert_eq!(status.details.map(|details| details.uid), created.uid());
    assert_eq!(maps.get_opt("a").await?, None);
    Ok(())
}

#[tokio::test]
async fn an_update_that_changes_nothing_keeps_the_resource_version() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    let created = maps.create(&PostParams::default(), &config_map("a")).await?;
    let replaced = maps.replace("a", &PostParams::default(), &created).await?;
    assert_eq!(replaced.resource_version(), created.resource_version());
    Ok(())
}

#[tokio::test]
async fn a_dry_run_returns_the_object_and_changes_nothing() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let shown = maps.create(&dry, &config_map("a")).await?;
    assert!(shown.uid().is_some());
    assert_eq!(maps.get_opt("a").await?, None);

    maps.create(&PostParams::default(), &config_map("a")).await?;
    maps.delete("a", &DeleteParams::default().dry_run()).await?;
    assert!(maps.get_opt("a").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_merge_patch_sets_and_removes() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    maps.create(&PostParams::default(), &config_map("a")).await?;
    let patch = Patch::Merge(json!({"data": {"key": null, "new": "1"}, "metadata": {"labels": {"x": "y"}}}));
    let patched = maps.patch("a", &PatchParams::default(), &patch).await?;
    assert_eq!(patched.data, Some([("new".to_owned(), "1".to_owned())].into()));
    assert_eq!(patched.labels().get("x").map(String::as_str), Some("y"));
    Ok(())
}

#[tokio::test]
async fn a_json_patch_tests_before_it_changes() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    maps.create(&PostParams::default(), &config_map("a")).await?;
    let replace_if = |expected: &str| {
        let operations = json!([
            {"op": "test", "path": "/data/key", "value": expected},
            {"op": "replace", "path": "/data/key", "value": "changed"},
        ]);
        Patch::<()>::Json(object(operations))
    };
    let refused = status(maps.patch("a", &PatchParams::default(), &replace_if("wrong")).await);
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
    let patched = maps.patch("a", &PatchParams::default(), &replace_if("value")).await?;
    assert_eq!(patched.data.unwrap_or_default()["key"], "changed");
    Ok(())
}

#[tokio::test]
async fn a_strategic_patch_merges_lists_by_their_keys() -> Result<()> {
    let deployments: Api<Deployment> = Api::default_namespaced(alone());
    deployments.create(&PostParams::default(), &deployment("web")).await?;
    let patch = Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [
        {"name": "side", "image": "busybox"},
        {"name": "main", "image": "nginx:2"},
    ]}}}}));
    let patched = deployments.patch("web", &PatchParams::default(), &patch).await?;
    assert_eq!(patched.metadata.generation, Some(2));
    let containers = patched.spec.and_then(|spec| spec.template.spec).unwrap_or_default().containers;
    let mut images: Vec<_> = containers.iter().map(|c| (c.name.as_str(), c.image.as_deref())).collect();
    images.sort_unstable();
    assert_eq!(images, [("main", Some("nginx:2")), ("side", Some("busybox"))]);

    let patch = Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [
        {"name": "side", "$patch": "delete"},
    ]}}}}));
    let patched = deployments.patch("web", &PatchParams::default(), &patch).await?;
    assert_eq!(patched.spec.and_then(|spec| spec.template.spec).unwrap_or_default().containers.len(), 1);
    Ok(())
}

#[tokio::test]
async fn the_status_is_written_only_through_its_subresource() -> Result<()> {
    let deployments: Api<Deployment> = Api::default_namespaced(alone());
    deployments.create(&PostParams::default(), &deployment("web")).await?;
    let patch = Patch::Merge(json!({"spec": {"replicas": 9}, "status": {"replicas": 3}}));

    let through_status = deployments.patch_status("web", &PatchParams::default(), &patch).await?;
    assert_eq!(through_status.status.as_ref().and_then(|status| status.replicas), Some(3));
    assert_eq!(through_status.spec.as_ref().and_then(|spec| spec.replicas), Some(1));
    assert_eq!(through_status.metadata.generation, Some(1));

    let patch = Patch::Merge(json!({"spec": {"replicas": 9}, "status": {"replicas": 4}}));
    let through_object = deployments.patch("web", &PatchParams::default(), &patch).await?;
    assert_eq!(through_object.status.as_ref().and_then(|status| status.replicas), Some(3));
    assert_eq!(through_object.spec.as_ref().and_then(|spec| spec.replicas), Some(9));
    assert_eq!(through_object.metadata.generation, Some(2));

    let mut whole = deployments.get_status("web").await?;
    whole.status.get_or_insert_default().observed_generation = Some(2);
    let replaced = deployments.replace_status("web", &PostParams::default(), &whole).await?;
    assert_eq!(replaced.status.and_then(|status| status.observed_generation), Some(2));
    Ok(())
}

#[tokio::test]
async fn a_deployment_is_scaled_through_its_scale() -> Result<()> {
    let deployments: Api<Deployment> = Api::default_namespaced(alone());
    deployments.create(&PostParams::default(), &deployment("web")).await?;
    let scale: Scale = deployments.get_scale("web").await?;
    assert_eq!(scale.spec.as_ref().and_then(|spec| spec.replicas), Some(1));
    assert_eq!(scale.status.as_ref().and_then(|status| status.selector.as_deref()), Some("app=web"));

    let patch = Patch::Merge(json!({"spec": {"replicas": 5}}));
    let scale = deployments.patch_scale("web", &PatchParams::default(), &patch).await?;
    assert_eq!(scale.spec.as_ref().and_then(|spec| spec.replicas), Some(5));
    assert_eq!(deployments.get("web").await?.spec.and_then(|spec| spec.replicas), Some(5));

    let mut stale = scale.clone();
    stale.metadata.resource_version = Some("1".to_owned());
    let refused = status(deployments.replace_scale("web", &PostParams::default(), &stale).await);
    assert!(refused.is_conflict(), "{refused:?}");
    stale.metadata.resource_version = scale.metadata.resource_version;
    stale.spec.get_or_insert_default().replicas = Some(2);
    let scale = deployments.replace_scale("web", &PostParams::default(), &stale).await?;
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(2));
    Ok(())
}

#[tokio::test]
async fn kube_recognizes_every_kind_of_error() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    let missing = status(maps.get("nobody").await);
    assert!(missing.is_not_found());
    assert_eq!(missing.message, "configmaps \"nobody\" not found");

    let created = maps.create(&PostParams::default(), &config_map("a")).await?;
    let exists = status(maps.create(&PostParams::default(), &config_map("a")).await);
    assert!(exists.is_already_exists());
    assert_eq!(exists.message, "configmaps \"a\" already exists");

    let mut changed = created.clone();
    changed.data = None;
    maps.replace("a", &PostParams::default(), &changed).await?;
    changed.immutable = Some(true);
    let stale = status(maps.replace("a", &PostParams::default(), &changed).await);
    assert!(stale.is_conflict());
    assert_eq!(stale.code, 409);

    let invalid = status(maps.create(&PostParams::default(), &config_map("Not a name")).await);
    assert!(invalid.is_invalid());
    let causes = invalid.details.map(|details| details.causes).unwrap_or_default();
    assert_eq!(causes.iter().map(|cause| cause.field.as_str()).collect::<Vec<_>>(), ["metadata.name"]);
    Ok(())
}

#[tokio::test]
async fn a_deletion_checks_its_preconditions() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    let created = maps.create(&PostParams::default(), &config_map("a")).await?;
    let other = Preconditions {
        uid: Some("00000000-0000-4000-8000-000000000000".to_owned()),
        resource_version: None,
    };
    let refused = status(maps.delete("a", &DeleteParams::default().preconditions(other)).await);
    assert!(refused.is_conflict(), "{refused:?}");

    let old = Preconditions { uid: None, resource_version: Some("1".to_owned()) };
    let refused = status(maps.delete("a", &DeleteParams::default().preconditions(old)).await);
    assert!(refused.is_conflict(), "{refused:?}");

    let right = Preconditions { uid: created.uid(), resource_version: created.resource_version() };
    maps.delete("a", &DeleteParams::default().preconditions(right)).await?;
    assert_eq!(maps.get_opt("a").await?, None);
    Ok(())
}

#[tokio::test]
async fn a_finalizer_delays_deletion() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    let mut held = config_map("a");
    held.metadata.finalizers = Some(vec!["example.org/hold".to_owned()]);
    maps.create(&PostParams::default(), &held).await?;
    let deleted = maps.delete("a", &DeleteParams::default()).await?;
    let still = deleted.left().expect("the object still exists");
    assert!(still.metadata.deletion_timestamp.is_some());

    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("a", &PatchParams::default(), &patch).await?;
    assert_eq!(maps.get_opt("a").await?, None);
    Ok(())
}

#[tokio::test]
async fn dependents_are_deleted_by_propagation_policy() -> Result<()> {
    let client = alone();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for policy in [PropagationPolicy::Background, PropagationPolicy::Foreground, PropagationPolicy::Orphan] {
        let owner = maps.create(&PostParams::default(), &config_map("owner")).await?;
        let mut dependent = config_map("dependent");
        dependent.owner_references_mut().extend(owner.controller_owner_ref(&()));
        maps.create(&PostParams::default(), &dependent).await?;

        let orphans = policy == PropagationPolicy::Orphan;
        let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        maps.delete("owner", &params).await?;
        assert_eq!(maps.get_opt("owner").await?, None);
        let left = maps.get_opt("dependent").await?;
        assert_eq!(left.is_some(), orphans);
        assert_eq!(left.map(|map| map.owner_references().len()), orphans.then_some(0));
    }
    Ok(())
}

#[tokio::test]
async fn pages_of_a_list_are_consistent() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    for i in 0..25 {
        maps.create(&PostParams::default(), &config_map(&format!("m{i:02}"))).await?;
    }
    let mut params = ListParams::default().limit(10);
    let mut names = Vec::new();
    let mut versions = Vec::new();
    loop {
        let page = maps.list(&params).await?;
        names.extend(page.items.iter().map(ConfigMap::name_any));
        versions.push(page.metadata.resource_version.clone());
        let remaining = page.metadata.remaining_item_count;
        let Some(token) = page.metadata.continue_.filter(|token| !token.is_empty()) else {
            assert_eq!(remaining, None);
            break;
        };
        assert_eq!(remaining, Some(25 - i64::try_from(names.len())?));
        params = params.continue_token(&token);
        // Changes between two pages are not visible.
        maps.delete("m24", &DeleteParams::default()).await.ok();
        maps.create(&PostParams::default(), &config_map(&format!("n{}", names.len()))).await?;
    }
    assert_eq!(names, (0..25).map(|i| format!("m{i:02}")).collect::<Vec<_>>());
    versions.dedup();
    assert_eq!(versions.len(), 1);
    Ok(())
}

#[tokio::test]
async fn selectors_filter_a_list() -> Result<()> {
    let client = alone();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for (name, tier) in [("a", "web"), ("b", "web"), ("c", "db")] {
        let mut created = pod(name);
        created.labels_mut().insert("tier".to_owned(), tier.to_owned());
        pods.create(&PostParams::default(), &created).await?;
    }
    let names = async |params: ListParams| -> Result<Vec<String>> {
        Ok(pods.list(&params).await?.items.iter().map(Pod::name_any).collect())
    };
    assert_eq!(names(ListParams::default().labels("tier in (web),tier!=db")).await?, ["a", "b"]);
    assert_eq!(names(ListParams::default().labels("!tier")).await?, [""; 0]);
    assert_eq!(names(ListParams::default().fields("metadata.name=c")).await?, ["c"]);
    assert_eq!(names(ListParams::default().fields("status.phase=Pending").labels("tier=db")).await?, ["c"]);
    let refused = status(pods.list(&ListParams::default().fields("spec.bogus=1")).await);
    assert_eq!((refused.code, refused.reason.as_str()), (400, "BadRequest"));

    let version = pods.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    pods.create(&PostParams::default(), &pod("d")).await?;
    let at = ListParams::default().at(&version).matching(VersionMatch::Exact);
    assert_eq!(names(at).await?, ["a", "b", "c"]);
    assert_eq!(names(ListParams::default().match_any()).await?, ["a", "b", "c", "d"]);
    Ok(())
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    for (name, label) in [("a", "1"), ("b", "1"), ("c", "2")] {
        let mut map = config_map(name);
        map.labels_mut().insert("x".to_owned(), label.to_owned());
        maps.create(&PostParams::default(), &map).await?;
    }
    let Some(deleted) =
        maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels("x=1")).await?.left()
    else {
        bail!("deletecollection returns its objects");
    };
    assert_eq!(deleted.items.len(), 2);
    let left = maps.list(&ListParams::default()).await?;
    assert_eq!(left.items.iter().map(ConfigMap::name_any).collect::<Vec<_>>(), ["c"]);
    Ok(())
}

#[tokio::test]
async fn metadata_alone_is_read_listed_and_patched() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    let created = maps.create(&PostParams::default(), &config_map("a")).await?;
    let meta = maps.get_metadata("a").await?;
    assert_eq!(meta.uid(), created.uid());
    assert_eq!(meta.types.as_ref().map(|types| types.kind.as_str()), Some("PartialObjectMetadata"));

    let listed = maps.list_metadata(&ListParams::default()).await?;
    assert_eq!(listed.items.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>(), ["a"]);

    let labels = Some([("x".to_owned(), "y".to_owned())].into());
    let wanted: PartialObjectMeta<ConfigMap> =
        ObjectMeta { labels, ..ObjectMeta::default() }.into_request_partial();
    let patched = maps.patch_metadata("a", &PatchParams::default(), &Patch::Merge(&wanted)).await?;
    assert_eq!(patched.labels().get("x").map(String::as_str), Some("y"));
    assert_eq!(maps.get("a").await?.data, created.data);
    Ok(())
}

#[tokio::test]
async fn the_entry_api_inserts_or_modifies() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    for round in 1..=3 {
        let text = round.to_string();
        let mut entry = maps
            .entry("counter")
            .await?
            .and_modify(|map| {
                map.data.get_or_insert_default().insert("round".to_owned(), text.clone());
            })
            .or_insert(|| config_map("counter"));
        entry.commit(&PostParams::default()).await?;
    }
    assert_eq!(maps.get("counter").await?.data.unwrap_or_default()["round"], "3");
    Ok(())
}

#[tokio::test]
async fn concurrent_entries_of_one_object_conflict() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    maps.create(&PostParams::default(), &config_map("a")).await?;
    let change = |map: &mut ConfigMap| map.data = Some([("key".to_owned(), "mine".to_owned())].into());
    let mut first = maps.entry("a").await?.and_modify(change).or_insert(|| config_map("a"));
    let mut second = maps.entry("a").await?.and_modify(|map| map.data = None).or_insert(|| config_map("a"));
    first.commit(&PostParams::default()).await?;
    let refused = second.commit(&PostParams::default()).await;
    assert!(refused.is_err());
    assert_eq!(maps.get("a").await?.data.unwrap_or_default()["key"], "mine");
    Ok(())
}

#[tokio::test]
async fn cluster_scoped_objects_and_their_subresources_are_served() -> Result<()> {
    let client = alone();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &object(json!({"metadata": {"name": "team"}}))).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "team");
    maps.create(&PostParams::default(), &config_map("a")).await?;
    namespaces.delete("team", &DeleteParams::default()).await?;
    assert!(namespaces.get_opt("team").await?.is_none());
    assert!(maps.get_opt("a").await?.is_none());

    let nodes: Api<Node> = Api::all(client.clone());
    nodes.create(&PostParams::default(), &object(json!({"metadata": {"name": "n1"}}))).await?;
    let cordoned = nodes.cordon("n1").await?;
    assert_eq!(cordoned.spec.and_then(|spec| spec.unschedulable), Some(true));
    let uncordoned = nodes.uncordon("n1").await?;
    assert_eq!(uncordoned.spec.and_then(|spec| spec.unschedulable), None);
    Ok(())
}

#[tokio::test]
async fn pods_are_evicted_and_deployments_restarted() -> Result<()> {
    let client = alone();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod("a")).await?;
    let answer = pods.evict("a", &kube::api::EvictParams::default()).await?;
    assert!(answer.is_success());
    assert!(pods.get_opt("a").await?.is_none(), "an unscheduled pod is deleted immediately");

    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&PostParams::default(), &deployment("web")).await?;
    let restarted = deployments.restart("web").await?;
    assert_eq!(restarted.metadata.generation, Some(2));

    let accounts: Api<ServiceAccount> = Api::default_namespaced(client);
    accounts.create(&PostParams::default(), &object(json!({"metadata": {"name": "robot"}}))).await?;
    let request = object(json!({"spec": {"audiences": []}}));
    let token = accounts.create_token_request("robot", &PostParams::default(), &request).await?;
    assert!(token.status.is_some_and(|status| status.token.is_some()));
    Ok(())
}

#[tokio::test]
async fn string_data_of_a_secret_is_returned_as_data() -> Result<()> {
    let secrets: Api<Secret> = Api::default_namespaced(alone());
    let secret: Secret = object(json!({"metadata": {"name": "s"}, "stringData": {"user": "admin"}}));
    let created = secrets.create(&PostParams::default(), &secret).await?;
    assert_eq!(created.data.unwrap_or_default()["user"].0, b"admin");
    assert_eq!(created.string_data, None);
    assert_eq!(created.type_.as_deref(), Some("Opaque"));
    Ok(())
}
