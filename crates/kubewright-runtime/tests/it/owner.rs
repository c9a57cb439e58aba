//! Owner references and the garbage collector of the embedded server.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, PostParams};
use kube::{Client, ResourceExt};
use kubewright_apiserver::{ApiServer, Options};
use kubewright_runtime::eventually;
use kubewright_runtime::owner::{controller_of, is_controlled_by, set_controller_reference};

#[tokio::test(start_paused = true)]
async fn an_owned_object_is_deleted_after_its_owner() {
    let client = Client::new(ApiServer::new(Options { seed: Some(1), ..Options::default() }), "default");
    let owners: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let objects: Api<Secret> = Api::default_namespaced(client);

    let mut owner = ConfigMap::default();
    owner.metadata.name = Some("owner".to_owned());
    let owner = owners.create(&PostParams::default(), &owner).await.unwrap();
    let mut object = Secret::default();
    object.metadata.name = Some("object".to_owned());
    object.metadata.namespace = owner.namespace();
    set_controller_reference(&owner, &mut object).unwrap();
    let object = objects.create(&PostParams::default(), &object).await.unwrap();
    assert!(is_controlled_by(&object, &owner));
    assert_eq!(controller_of(&object).unwrap().block_owner_deletion, Some(true));

    owners.delete("owner", &DeleteParams::background()).await.unwrap();
    let gone = async || match objects.get_opt("object").await.unwrap() {
        None => Ok(()),
        Some(object) => Err(format!("{object:?}")),
    };
    eventually(Duration::from_mins(1), gone).await.unwrap();
}
