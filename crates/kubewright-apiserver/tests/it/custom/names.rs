//! Name conflicts within a group, and concurrent creation, use and deletion of CRDs.

use std::collections::BTreeSet;

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::discovery::Discovery;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{conditions, definition, definitions, dynamic, names, thing, version};
use crate::world::{alone, client, object, server, soon};

fn simple(kind: &str) -> CustomResourceDefinition {
    definition(kind, &[version("v1", true, &json!({"size": {"type": "integer"}}))])
}

/// A CRD whose names may conflict with another.
fn wanting(plural: &str, names: Value) -> CustomResourceDefinition {
    let mut definition = simple("Thing");
    definition.metadata.name = Some(format!("{plural}.example.org"));
    definition.spec.names = object(names);
    definition
}

async fn conditions_of(client: &Client, plural: &str) -> Result<[String; 2]> {
    let found = definitions(client).get(&format!("{plural}.example.org")).await?;
    Ok(["NamesAccepted", "Established"].map(|kind| conditions(&found)[kind].clone()))
}

#[tokio::test]
async fn a_kind_belongs_to_one_crd_until_that_is_deleted() -> Result<()> {
    let client = alone();
    definitions(&client).create(&PostParams::default(), &simple("Thing")).await?;
    let rival = wanting("gadgets", json!({"kind": "Thing", "plural": "gadgets"}));
    definitions(&client).create(&PostParams::default(), &rival).await?;
    assert_eq!(conditions_of(&client, "things").await?, ["True NoConflicts", "True InitialNamesAccepted"]);
    // Of several conflicts the last one is reported.
    assert_eq!(conditions_of(&client, "gadgets").await?, ["False ListKindConflict", "False NotAccepted"]);
    let mut resource = super::resource("Thing", "v1");
    resource.plural = "gadgets".to_owned();
    let gadgets: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let refused = gadgets.list(&ListParams::default()).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 404));

    definitions(&client).delete("things.example.org", &DeleteParams::default()).await?;
    assert_eq!(conditions_of(&client, "gadgets").await?, ["True NoConflicts", "True InitialNamesAccepted"]);
    gadgets.create(&PostParams::default(), &thing("a", &json!({"size": 1}))).await?;
    assert_eq!(names(&gadgets).await?, ["a"]);
    Ok(())
}

#[tokio::test]
async fn a_released_short_name_is_accepted_for_another_crd() -> Result<()> {
    let client = alone();
    let first = wanting("things", json!({"kind": "Thing", "plural": "things", "shortNames": ["t"]}));
    definitions(&client).create(&PostParams::default(), &first).await?;
    let second = wanting("trees", json!({"kind": "Tree", "plural": "trees", "shortNames": ["t"]}));
    definitions(&client).create(&PostParams::default(), &second).await?;
    assert_eq!(conditions_of(&client, "trees").await?, ["False ShortNamesConflict", "False NotAccepted"]);
    let patch = Patch::Merge(json!({"spec": {"names": {"shortNames": ["th"]}}}));
    definitions(&client).patch("things.example.org", &PatchParams::default(), &patch).await?;
    assert_eq!(conditions_of(&client, "things").await?, ["True NoConflicts", "True InitialNamesAccepted"]);
    assert_eq!(conditions_of(&client, "trees").await?, ["True NoConflicts", "True InitialNamesAccepted"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrently_created_crds_are_all_served() -> Result<()> {
    const MANY: usize = 40;
    let server = server();
    let mut tasks = JoinSet::new();
    for at in 0..MANY {
        let client = client(&server);
        tasks.spawn(async move {
            let kind = format!("Thing{at}");
            definitions(&client).create(&PostParams::default(), &simple(&kind)).await?;
            // Each resource is served when its create returns, independently of the others.
            let things = dynamic(&client, &kind, "v1");
            let first = DynamicObject::new("a", &super::resource(&kind, "v1"));
            let first = first.data(json!({"spec": {"size": at}}));
            let created = things.create(&PostParams::default(), &first).await?;
            anyhow::ensure!(created.data["spec"] == json!({"size": at}), "{:?}", created.data);
            anyhow::Ok(())
        });
    }
    while let Some(done) = soon("a definition", tasks.join_next()).await {
        done??;
    }
    let discovery = Discovery::new(client(&server)).filter(&["example.org"]).run().await?;
    let group = discovery.get("example.org").expect("the group is discovered");
    let kinds: BTreeSet<String> =
        group.recommended_resources().into_iter().map(|(resource, _)| resource.kind).collect();
    assert_eq!(kinds.len(), MANY);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_several_conflicting_crds_is_accepted_and_then_the_next() -> Result<()> {
    const RIVALS: usize = 8;
    let server = server();
    let mut tasks = JoinSet::new();
    for at in 0..RIVALS {
        let client = client(&server);
        tasks.spawn(async move {
            let plural = format!("things{at}");
            let rival = wanting(&plural, json!({"kind": "Thing", "plural": plural}));
            definitions(&client).create(&PostParams::default(), &rival).await
        });
    }
    while let Some(done) = soon("a definition", tasks.join_next()).await {
        done??;
    }
    let definitions = definitions(&client(&server));
    for left in (1..=RIVALS).rev() {
        let all = definitions.list(&ListParams::default()).await?.items;
        assert_eq!(all.len(), left);
        let is_served = |definition: &&CustomResourceDefinition| {
            conditions(definition)["Established"].starts_with("True")
        };
        let served: Vec<_> = all.iter().filter(is_served).map(ResourceExt::name_any).collect();
        assert_eq!(served.len(), 1, "{served:?}");
        definitions.delete(&served[0], &DeleteParams::default()).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn objects_can_be_written_while_their_crd_changes() -> Result<()> {
    const EACH: usize = 40;
    let server = server();
    let client_of = |_: usize| client(&server);
    definitions(&client_of(0)).create(&PostParams::default(), &simple("Thing")).await?;
    let mut tasks = JoinSet::new();
    for at in 0..4 {
        let client = client_of(at);
        tasks.spawn(async move {
            let things = dynamic(&client, "Thing", "v1");
            for round in 0..EACH {
                let name = format!("t{at}-{round}");
                things.create(&PostParams::default(), &thing(&name, &json!({"size": round}))).await?;
                let patch = Patch::Merge(json!({"spec": {"size": round + 1}}));
                things.patch(&name, &PatchParams::default(), &patch).await?;
            }
            anyhow::Ok(())
        });
    }
    let client = client_of(4);
    tasks.spawn(async move {
        for round in 0..EACH {
            let fields = json!({"size": {"type": "integer"}, format!("f{round}"): {"type": "string"}});
            let patch = Patch::Merge(json!({"spec": {"versions": [version("v1", true, &fields)]}}));
            definitions(&client).patch("things.example.org", &PatchParams::default(), &patch).await?;
        }
        anyhow::Ok(())
    });
    while let Some(done) = soon("a writer", tasks.join_next()).await {
        done??;
    }
    let things = dynamic(&client_of(0), "Thing", "v1").list(&ListParams::default()).await?.items;
    assert_eq!(things.len(), 4 * EACH);
    let right = |thing: &DynamicObject| {
        let round: u64 =
            thing.name_any().rsplit_once('-').and_then(|(_, round)| round.parse().ok()).unwrap_or(0);
        thing.data["spec"]["size"] == round + 1
    };
    assert!(things.iter().all(right));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn objects_created_while_their_crd_is_deleted_are_deleted_too() -> Result<()> {
    for _ in 0..20 {
        let server = server();
        let first = client(&server);
        definitions(&first).create(&PostParams::default(), &simple("Thing")).await?;
        let mut tasks = JoinSet::new();
        for at in 0..4 {
            let client = client(&server);
            tasks.spawn(async move {
                let things = dynamic(&client, "Thing", "v1");
                for round in 0.. {
                    let new = thing(&format!("t{at}-{round}"), &json!({"size": 1}));
                    match things.create(&PostParams::default(), &new).await {
                        Ok(_) => {}
                        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => break,
                        Err(error) => return Err(error.into()),
                    }
                }
                anyhow::Ok(())
            });
        }
        tokio::task::yield_now().await;
        definitions(&first).delete("things.example.org", &DeleteParams::default()).await?;
        while let Some(done) = soon("a writer", tasks.join_next()).await {
            done??;
        }
        assert!(names(&definitions(&first)).await?.is_empty());
        definitions(&first).create(&PostParams::default(), &simple("Thing")).await?;
        assert!(names(&dynamic(&first, "Thing", "v1")).await?.is_empty());
    }
    Ok(())
}
