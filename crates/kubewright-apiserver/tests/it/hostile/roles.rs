//! ClusterRoles that aggregate each other.

use http::{Method, StatusCode};
use kubewright_apiserver::{ApiServer, Options};
use serde_json::json;

use super::{expect_well, request, send};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

#[test]
fn a_ring_of_aggregated_roles_settles() {
    let server = ApiServer::new(Options::default());
    let count = 60;
    let rule =
        |number: usize| json!({"apiGroups": [""], "resources": [format!("r{number}")], "verbs": ["get"]});
    for number in 0..count {
        // Each role selects its successor, and the rule of its own source.
        let selectors = json!([
            {"matchLabels": {"ring": format!("{}", (number + 1) % count)}},
            {"matchLabels": {"source": format!("{number}")}},
        ]);
        let aggregated = json!({
            "metadata": {"name": format!("ring-{number:03}"), "labels": {"ring": format!("{number}")}},
            "aggregationRule": {"clusterRoleSelectors": selectors},
        });
        let source = json!({
            "metadata": {"name": format!("source-{number:03}"), "labels": {"source": format!("{number}")}},
            "rules": [rule(number)],
        });
        for role in [source, aggregated] {
            let post = request(Method::POST, ROLES, "application/json", role.to_string());
            assert_eq!(send(&server, "a role", post).status, StatusCode::CREATED);
        }
    }
    let read = request(Method::GET, &format!("{ROLES}/ring-000"), "", String::new());
    let role = send(&server, "a role of the ring", read).json();
    let rules = role["rules"].as_array().map_or(0, Vec::len);
    assert_eq!(rules, count, "every role of the ring has the rules of all sources");
    expect_well(&server);
}
