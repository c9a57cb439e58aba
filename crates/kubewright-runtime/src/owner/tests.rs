//! Tests of owner references, against the rules of the garbage collector.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use kube::core::TypeMeta;
use proptest::prelude::*;

use super::*;

fn named<K: Object + Default>(namespace: Option<&str>, name: &str) -> K {
    let mut object = K::default();
    object.meta_mut().namespace = namespace.map(str::to_owned);
    object.meta_mut().name = Some(name.to_owned());
    object
}

fn created<K: Object + Default>(namespace: Option<&str>, name: &str) -> K {
    let mut object: K = named(namespace, name);
    object.meta_mut().uid = Some(format!("uid of {name}"));
    object
}

fn references(object: &impl Referable) -> Vec<OwnerReference> {
    owner_references(object).to_vec()
}

#[test]
fn a_controller_reference_names_the_owner_and_blocks_its_deletion() {
    let owner: Deployment = created(Some("default"), "web");
    let mut object: ConfigMap = named(Some("default"), "page");
    set_controller_reference(&owner, &mut object).unwrap();
    let expected = OwnerReference {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        name: "web".to_owned(),
        uid: "uid of web".to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    assert_eq!(references(&object), [expected]);
    assert!(is_controlled_by(&object, &owner));
    assert!(has_owner_reference(&owner, &object));
}

#[test]
fn a_second_controller_is_rejected_and_both_are_named() {
    let first: Deployment = created(Some("default"), "web");
    let second: Pod = created(Some("default"), "other");
    let mut object: ConfigMap = named(Some("default"), "page");
    set_controller_reference(&first, &mut object).unwrap();
    let error = set_controller_reference(&second, &mut object).unwrap_err();
    insta::assert_snapshot!(error, @"ConfigMap default/page is already controlled by Deployment web and cannot also be controlled by Pod default/other; give the object another name, or use set_owner_reference");
    assert_eq!(controller_of(&object).unwrap().name, "web");
    // It may still be added as an owner.
    set_owner_reference(&second, &mut object, OwnerOptions::default()).unwrap();
    assert_eq!(references(&object).len(), 2);
    assert_eq!(references(&object)[1].controller, None);
    assert_eq!(references(&object)[1].block_owner_deletion, None);
}

#[test]
fn the_reference_to_a_recreated_owner_or_new_version_is_updated_in_place() {
    let owner: Deployment = created(Some("default"), "web");
    let mut object: ConfigMap = named(Some("default"), "page");
    set_controller_reference(&owner, &mut object).unwrap();
    set_owner_reference(&created::<Pod>(Some("default"), "p"), &mut object, OwnerOptions::default()).unwrap();
    object.metadata.owner_references.as_mut().unwrap()[0].api_version = "apps/v1beta1".to_owned();

    let mut again = owner.clone();
    again.metadata.uid = Some("new".to_owned());
    assert!(!is_controlled_by(&object, &again));
    set_controller_reference(&again, &mut object).unwrap();
    assert_eq!(references(&object).len(), 2);
    let first = &references(&object)[0];
    assert_eq!((first.api_version.as_str(), first.uid.as_str()), ("apps/v1", "new"));
    assert!(is_controlled_by(&object, &again));
}

#[test]
fn setting_a_plain_reference_keeps_the_controller_reference() {
    let owner: Deployment = created(Some("default"), "web");
    let mut object: ConfigMap = named(Some("default"), "page");
    set_controller_reference(&owner, &mut object).unwrap();
    set_owner_reference(&owner, &mut object, OwnerOptions::default()).unwrap();
    assert!(is_controlled_by(&object, &owner));
    assert_eq!(references(&object)[0].block_owner_deletion, Some(true));
    set_owner_reference(&owner, &mut object, OwnerOptions::default().block_owner_deletion(false)).unwrap();
    assert_eq!(references(&object)[0].block_owner_deletion, Some(false));
}

#[test]
fn owners_follow_the_namespace_rules() {
    let owner: Deployment = created(Some("default"), "web");
    let refused = |object: &mut dyn FnMut(&Deployment) -> Result<(), OwnerError>| object(&owner).unwrap_err();

    let error =
        refused(&mut |owner| set_controller_reference(owner, &mut named::<ConfigMap>(Some("other"), "page")));
    insta::assert_snapshot!(error, @"Deployment default/web cannot own ConfigMap other/page: cross-namespace owner references are not allowed. To reconcile for an object in another namespace, use watches() with a label or an annotation");
    let error = refused(&mut |owner| set_controller_reference(owner, &mut named::<Namespace>(None, "page")));
    insta::assert_snapshot!(error, @"Deployment default/web cannot own Namespace page: a namespaced owner cannot own a cluster-scoped object. Use a finalizer on the owner to delete the object");
    let error = refused(&mut |owner| set_controller_reference(owner, &mut named::<ConfigMap>(None, "page")));
    insta::assert_snapshot!(error, @r#"ConfigMap page has no namespace: set it to "default", the namespace of its owner"#);

    // A cluster-scoped owner owns objects in any namespace.
    let node: Node = created(None, "node-1");
    set_controller_reference(&node, &mut named::<ConfigMap>(Some("other"), "page")).unwrap();
    set_controller_reference(&node, &mut named::<Namespace>(None, "other")).unwrap();
}

#[test]
fn an_owner_that_was_not_created_is_rejected() {
    let mut object: ConfigMap = named(Some("default"), "page");
    let mut refused = |owner: &Deployment| set_controller_reference(owner, &mut object).unwrap_err();
    insta::assert_snapshot!(refused(&named(Some("default"), "web")), @"Deployment default/web has no uid: create the owner first, and use the object that the server returned");
    insta::assert_snapshot!(refused(&created(None, "web")), @"Deployment web has no namespace: create the owner first, and use the object that the server returned");
    insta::assert_snapshot!(refused(&Deployment::default()), @"Deployment <unnamed> has no name: create the owner first, and use the object that the server returned");
    assert_eq!(object.metadata.owner_references, None);
}

#[test]
fn dynamic_objects_can_own_and_be_owned() {
    let resource = ApiResource::erase::<Deployment>(&());
    let mut owner = DynamicObject::new("web", &resource).within("default");
    owner.metadata.uid = Some("1".to_owned());
    let mut object = DynamicObject::new("page", &ApiResource::erase::<ConfigMap>(&())).within("default");
    set_controller_reference(&owner, &mut object).unwrap();
    assert_eq!(controller_of(&object).unwrap().api_version, "apps/v1");

    // Without a namespace, only the server knows whether the kind is namespaced. Rejected, as in controllerutil.
    object.metadata.namespace = None;
    let error = set_controller_reference(&owner, &mut object).unwrap_err();
    assert!(matches!(error, OwnerError::ClusterScoped { .. }), "{error}");

    owner.types = Some(TypeMeta::default());
    let error = set_controller_reference(&owner, &mut object).unwrap_err();
    insta::assert_snapshot!(error, @"object default/web cannot be an owner: it has no apiVersion and kind");
}

#[test]
fn a_reference_is_removed_by_group_kind_and_name() {
    let owner: Deployment = created(Some("default"), "web");
    let mut object: ConfigMap = named(Some("default"), "page");
    assert!(!remove_owner_reference(&owner, &mut object));
    set_controller_reference(&owner, &mut object).unwrap();
    assert!(!remove_owner_reference(&created::<Pod>(Some("default"), "web"), &mut object));
    assert!(remove_owner_reference(&named::<Deployment>(Some("default"), "web"), &mut object));
    assert_eq!(object.metadata.owner_references, None);
    assert_eq!(controller_of(&object), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// In any order of operations there is at most one controller, and one reference per owner.
    #[test]
    fn there_is_one_reference_per_owner_and_at_most_one_controller(
        steps in proptest::collection::vec((0..3_usize, 0..3_u8), 0..20),
    ) {
        let owners: Vec<Pod> = ["a", "b", "c"].map(|name| created(Some("default"), name)).into();
        let mut object: ConfigMap = named(Some("default"), "page");
        for (index, action) in steps {
            let owner = &owners[index];
            let owned = match action {
                0 => set_controller_reference(owner, &mut object).is_ok(),
                1 => set_owner_reference(owner, &mut object, OwnerOptions::default()).is_ok(),
                _ => {
                    remove_owner_reference(owner, &mut object);
                    false
                }
            };
            prop_assert!(!owned || has_owner_reference(owner, &object));
            prop_assert!(action != 2 || !has_owner_reference(owner, &object));
            let references = references(&object);
            let controllers = references.iter().filter(|reference| reference.controller == Some(true)).count();
            prop_assert!(controllers <= 1);
            let mut names: Vec<_> = references.iter().map(|reference| &reference.name).collect();
            names.sort();
            names.dedup();
            prop_assert_eq!(names.len(), references.len());
        }
    }
}
