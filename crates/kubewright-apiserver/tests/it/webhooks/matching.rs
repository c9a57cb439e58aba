//! Which requests a webhook is called for.

use serde_json::{Value, json};

use super::hook::{Hook, review};
use super::{CONFIG_MAPS, configure, create_config_map, send};
use crate::world::server;

const NAMESPACES: &str = "/api/v1/namespaces";

async fn denying() -> Hook {
    Hook::start(|_, request| Some(review(request, json!({"allowed": false})))).await
}

fn rules(scope: &str) -> Value {
    json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["configmaps", "namespaces"], "scope": scope}])
}

#[tokio::test]
async fn the_scope_of_a_rule_limits_it() {
    let hook = denying().await;
    for (scope, of_config_map, of_namespace) in
        [("*", 400, 400), ("Namespaced", 400, 201), ("Cluster", 201, 400)]
    {
        let server = server();
        configure(&server, "Validating", "v", hook.client("/"), json!({"rules": rules(scope)})).await;
        assert_eq!(create_config_map(&server, "a").await.0, of_config_map, "{scope}");
        let namespace = json!({"metadata": {"name": "n"}});
        assert_eq!(send(&server, "POST", NAMESPACES, &namespace).await.0, of_namespace, "{scope}");
    }
}

#[tokio::test]
async fn a_namespace_selector_uses_the_labels_of_the_namespace() {
    let hook = denying().await;
    let server = server();
    let guarded = json!({"metadata": {"name": "guarded", "labels": {"guard": "yes"}}});
    assert_eq!(send(&server, "POST", NAMESPACES, &guarded).await.0, 201);
    let more = json!({"namespaceSelector": {"matchLabels": {"guard": "yes"}}, "rules": rules("*")});
    configure(&server, "Validating", "v", hook.client("/"), more).await;
    assert_eq!(create_config_map(&server, "a").await.0, 201);
    let object = json!({"metadata": {"name": "a"}});
    let path = CONFIG_MAPS.replace("default", "guarded");
    assert_eq!(send(&server, "POST", &path, &object).await.0, 400);
    // A new Namespace is selected by its own labels.
    for (labels, expected) in [(json!({}), 201), (json!({"guard": "yes"}), 400)] {
        let namespace = json!({"metadata": {"name": "new", "labels": labels}});
        assert_eq!(send(&server, "POST", NAMESPACES, &namespace).await.0, expected, "{labels}");
    }
    // A label change takes effect with the next request.
    let unguarded = json!({"metadata": {"labels": {"guard": null}}});
    assert_eq!(send(&server, "PATCH", &format!("{NAMESPACES}/guarded"), &unguarded).await.0, 200);
    assert_eq!(send(&server, "POST", &path, &object).await.0, 201);
}
