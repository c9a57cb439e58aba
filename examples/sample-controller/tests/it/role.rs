//! Both controllers need exactly the permissions of the generated role.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kubewright_envtest::{Permissions, eventually};
use sample_controller::api::v1alpha1::Bar;

use crate::operator::{LIMIT, Operator, Version};

/// The user as which the controller without a manager runs.
pub(crate) const USER: &str = "system:serviceaccount:sample-controller-system:by-hand";
const ROLE: &str = include_str!("../../config/rbac/role.yaml");

fn role() -> Result<ClusterRole> {
    serde_saphyr::from_str(ROLE).context("config/rbac/role.yaml is not a ClusterRole")
}

/// The permissions of config/rbac/role.yaml.
pub(crate) fn generated() -> Result<Permissions> {
    let rules = role()?.rules.unwrap_or_default();
    Ok(rules.into_iter().fold(Permissions::none(), Permissions::rule))
}

/// Does everything that a Bar can do: create, scale, rename, delete.
async fn exercise(operator: &Operator) -> Result<()> {
    operator.becomes("Available").await?;
    operator.change(|bar| bar.spec.replicas = 2).await?;
    eventually(LIMIT, async || {
        let status = operator.status().await?;
        anyhow::ensure!(status.available_replicas == 2, "{status:?}");
        Ok(())
    })
    .await?;
    operator.change(|bar| "renamed".clone_into(&mut bar.spec.deployment_name)).await?;
    operator.has_deployment("example-bar", false).await?;
    operator.event("Deleted").await?;
    let key = operator.key("bar-sample");
    operator.client().delete_key::<Bar>(&key, &kubewright::Delete::new()).await?;
    eventually(LIMIT, async || {
        let left = operator.client().get_opt::<Bar>(&key).await?;
        anyhow::ensure!(left.is_none(), "{left:?}");
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn the_generated_role_has_exactly_the_needed_permissions() -> Result<()> {
    let operator = Operator::with_sample(Version::Manager).await?;
    exercise(&operator).await?;
    if operator.env.capabilities().generated_role {
        let requests = operator.env.faults().operator().requests();
        assert!(requests.iter().all(|it| it.user.starts_with("system:serviceaccount:")), "{requests:?}");
        assert_eq!(operator.env.forbidden_permissions(), []);
        assert_eq!(operator.env.unused_permissions(), []);
    }
    operator.stop().await
}

#[tokio::test]
async fn the_controller_by_hand_needs_the_same_role() -> Result<()> {
    let operator = Operator::with_sample(Version::ByHand).await?;
    exercise(&operator).await?;
    if operator.env.capabilities().generated_role {
        let requests = operator.env.faults().requests();
        let own = requests.iter().filter(|it| it.user == USER);
        let mut used = BTreeSet::new();
        for call in own {
            assert_ne!(call.code, Some(403), "{call:?}");
            let resource = match call.subresource.as_str() {
                "" => call.resource.clone(),
                part => format!("{}/{part}", call.resource),
            };
            used.insert((call.group.clone(), resource, call.verb.to_owned()));
        }
        let granted = permissions()?;
        // A streaming list is a watch, and the status is patched. The others are needed only at times: a read after a
        // conflict, a repeated event, and an owner reference on a cluster that checks the finalizers of owners.
        let optional = |(_, resource, verb): &(String, String, String)| {
            let derived = [("events", "patch"), ("bars/finalizers", "update"), ("bars/status", "update")];
            matches!(verb.as_str(), "get" | "list") || derived.contains(&(resource.as_str(), verb.as_str()))
        };
        let unused: Vec<_> = granted.difference(&used).filter(|it| !optional(it)).collect();
        assert!(unused.is_empty(), "unused: {unused:?}");
        assert!(used.is_subset(&granted), "not granted: {:?}", used.difference(&granted));
    }
    operator.stop().await
}

/// Group, resource and verb of each permission of the role.
fn permissions() -> Result<BTreeSet<(String, String, String)>> {
    let mut all = BTreeSet::new();
    for rule in role()?.rules.unwrap_or_default() {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    all.insert((group.clone(), resource.clone(), verb.clone()));
                }
            }
        }
    }
    Ok(all)
}
