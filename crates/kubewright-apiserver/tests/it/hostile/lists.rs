//! Long lists: quadratic algorithms miss the deadline.
//!
//! Bodies are far below the size limit, but large enough that a quadratic number of steps takes too long.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{MAPS, expect_well, request, send};
use crate::world::server;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Length of a list in bytes.
const LENGTH: usize = 512 << 10;

/// An object with a list; `@` is the placeholder for it.
struct Case {
    path: &'static str,
    object: Value,
    element: fn(usize) -> String,
}

impl Case {
    /// The object with a list of this length.
    fn filled(&self, length: usize) -> String {
        let mut list = String::with_capacity(length);
        for at in 0.. {
            let element = (self.element)(at);
            if at > 0 && list.len() + element.len() >= length {
                break;
            }
            if at > 0 {
                list.push(',');
            }
            list.push_str(&element);
        }
        self.object.to_string().replace("\"@\"", &list)
    }
}

fn cases() -> Vec<Case> {
    let named = |at| format!("{{\"name\":\"n{at}\"}}");
    let pod = |field: &str| {
        let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
        spec[field] = json!(["@"]);
        json!({"metadata": {"name": "victim"}, "spec": spec})
    };
    let container = json!({"name": "c", "image": "i", "env": ["@"]});
    vec![
        Case {
            path: MAPS,
            object: json!({"metadata": {"name": "victim", "finalizers": ["@"]}}),
            element: |at| format!("\"x.io/{at}\""),
        },
        Case {
            path: MAPS,
            object: json!({"metadata": {"name": "victim", "ownerReferences": ["@"]}}),
            element: |at| format!("{{\"apiVersion\":\"v1\",\"kind\":\"A\",\"name\":\"a\",\"uid\":\"{at}\"}}"),
        },
        Case {
            path: PODS,
            object: json!({"metadata": {"name": "victim"}, "spec": {"containers": [container]}}),
            element: named,
        },
        Case { path: PODS, object: pod("schedulingGates"), element: named },
        Case {
            path: PODS,
            object: pod("topologySpreadConstraints"),
            element: |at| {
                format!(
                    "{{\"maxSkew\":1,\"topologyKey\":\"k{at}\",\"whenUnsatisfiable\":\"ScheduleAnyway\"}}"
                )
            },
        },
        Case {
            path: "/api/v1/namespaces/default/services",
            object: json!({"metadata": {"name": "victim"}, "spec": {"ports": ["@"]}}),
            element: |at| format!("{{\"name\":\"p{at}\",\"port\":{}}}", 1 + at % 65_535),
        },
        Case {
            path: "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            object: json!({
                "metadata": {"name": "victim"}, "addressType": "IPv4", "endpoints": [], "ports": ["@"],
            }),
            element: |at| format!("{{\"name\":\"p{at}\"}}"),
        },
        Case {
            path: "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            object: json!({"metadata": {"name": "victim"}, "webhooks": ["@"]}),
            element: |at| {
                format!(
                    "{{\"name\":\"a.b.c{at}\",\"clientConfig\":{{\"url\":\"https://x/y\"}},\
                     \"sideEffects\":\"None\",\"admissionReviewVersions\":[\"v1\"]}}"
                )
            },
        },
    ]
}

#[test]
fn long_lists_are_answered_in_time() {
    let server = server();
    for case in cases() {
        let what = case.object.to_string();
        let long = case.filled(LENGTH);
        let fresh = server.fork();
        let answer = send(&fresh, &what, request(Method::POST, case.path, JSON, long.clone()));
        assert!(!answer.status.is_server_error(), "{what}: {}", answer.status);
        let short = request(Method::POST, case.path, JSON, case.filled(0));
        let answer = send(&server, &what, short);
        assert_eq!(answer.status, StatusCode::CREATED, "{what}: {}", answer.json());
        for media in [MERGE, STRATEGIC] {
            let asked = request(Method::PATCH, &format!("{}/victim", case.path), media, long.clone());
            let answer = send(&server.fork(), &what, asked);
            assert!(!answer.status.is_server_error(), "{media} {what}: {}", answer.status);
        }
        if case.path == MAPS || case.path == PODS {
            let one = format!("{}/victim", case.path);
            send(&server, &what, request(Method::PATCH, &one, MERGE, r#"{"metadata":{"finalizers":null}}"#));
            send(&server, &what, request(Method::DELETE, &one, "", ""));
        }
    }
    expect_well(&server);
}

/// Every element is invalid and reported.
#[test]
fn many_errors_are_answered_in_time() {
    let server = server();
    let rules = vec!["{}"; 30_000].join(",");
    let body = format!("{{\"metadata\":{{\"name\":\"r\"}},\"rules\":[{rules}]}}");
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let answer = send(&server, "many empty rules", request(Method::POST, path, JSON, body));
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(answer.json()["details"]["causes"].as_array().map(Vec::len), Some(90_000));
    expect_well(&server);
}
