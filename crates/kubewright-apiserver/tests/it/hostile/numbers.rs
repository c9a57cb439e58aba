//! Numbers at and beyond their limits: in bodies, quantities, options and times.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{MAPS, expect_well, request, send};
use crate::world::server;

const JSON: &str = "application/json";

const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-1",
    "1e0",
    "1.5",
    "1e400",
    "-1e400",
    "1e-400",
    "1E+2",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999999999999",
    "0.00000000000000000000000000000000000000000000000001",
    "1e309",
    "4.9e-324",
];

/// Objects with numbers. A `"@"` is replaced with a number, and an `@` within a string with its digits.
fn posts() -> Vec<(&'static str, Value)> {
    let containers = json!([{"name": "c", "image": "i"}]);
    let job = json!({"template": {"spec": {"restartPolicy": "Never", "containers": containers}}});
    vec![
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": {"generateName": "d-"}, "spec": {
                "replicas": "@",
                "minReadySeconds": "@",
                "progressDeadlineSeconds": "@",
                "revisionHistoryLimit": "@",
                "strategy": {"rollingUpdate": {"maxSurge": "@", "maxUnavailable": "@%"}},
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}},
            }}),
        ),
        (
            "/api/v1/namespaces/default/pods",
            json!({"metadata": {"generateName": "p-"}, "spec": {
                "activeDeadlineSeconds": "@",
                "terminationGracePeriodSeconds": "@",
                "priority": "@",
                "containers": [{
                    "name": "c",
                    "image": "i",
                    "ports": [{"containerPort": "@", "hostPort": "@"}],
                    "resources": {"limits": {"cpu": "@", "memory": "@Mi"}},
                    "livenessProbe": {"httpGet": {"port": "@"}, "periodSeconds": "@", "timeoutSeconds": "@"},
                }],
            }}),
        ),
        (
            "/api/v1/namespaces/default/services",
            json!({"metadata": {"generateName": "s-"}, "spec": {
                "type": "NodePort",
                "ports": [{"port": "@", "nodePort": "@", "targetPort": "@"}],
            }}),
        ),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            json!({"metadata": {"generateName": "j-"}, "spec": {
                "completions": "@",
                "parallelism": "@",
                "backoffLimit": "@",
                "activeDeadlineSeconds": "@",
                "ttlSecondsAfterFinished": "@",
                "template": job["template"],
            }}),
        ),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            json!({"metadata": {"generateName": "c-"}, "spec": {
                "schedule": "@ * * * *",
                "startingDeadlineSeconds": "@",
                "successfulJobsHistoryLimit": "@",
                "jobTemplate": {"spec": job},
            }}),
        ),
        (
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            json!({"metadata": {"generateName": "h-"}, "spec": {
                "minReplicas": "@",
                "maxReplicas": "@",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "metrics": [{"type": "Resource", "resource": {
                    "name": "cpu", "target": {"type": "Utilization", "averageUtilization": "@"},
                }}],
            }}),
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            json!({"metadata": {"generateName": "l-"}, "spec": {"leaseDurationSeconds": "@", "leaseTransitions": "@"}}),
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"metadata": {"generateName": "b-"}, "spec": {"minAvailable": "@%", "selector": {}}}),
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            json!({"metadata": {"generateName": "p-"}, "value": "@"}),
        ),
        (
            "/api/v1/namespaces/default/resourcequotas",
            json!({"metadata": {"generateName": "q-"}, "spec": {"hard": {"cpu": "@", "requests.memory": "@Ki"}}}),
        ),
        (
            "/api/v1/persistentvolumes",
            json!({"metadata": {"generateName": "v-"}, "spec": {
                "capacity": {"storage": "@Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/x"},
            }}),
        ),
        (
            "/api/v1/namespaces/default/events",
            json!({
                "metadata": {"generateName": "e-"},
                "involvedObject": {"namespace": "default"},
                "count": "@",
                "series": {"count": "@"},
            }),
        ),
        (
            MAPS,
            json!({"metadata": {"generateName": "m-", "generation": "@", "deletionGracePeriodSeconds": "@"}}),
        ),
        (
            "/apis/apps/v1/namespaces/default/controllerrevisions",
            json!({"metadata": {"generateName": "r-"}, "revision": "@", "data": {"n": "@"}}),
        ),
    ]
}

#[test]
fn numbers_at_their_limits_are_stored_or_rejected() {
    let server = server();
    let longest = "9".repeat(100_000);
    let fraction = format!("0.{longest}");
    let all = NUMBERS.iter().copied().chain([longest.as_str(), fraction.as_str()]);
    let posts = posts();
    for number in all {
        for (path, template) in &posts {
            let body = template.to_string().replace("\"@\"", number).replace('@', number);
            let what = format!("POST {path} with {}", &number[..number.len().min(60)]);
            let answer = send(&server, &what, request(Method::POST, path, JSON, body));
            assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
            if !answer.status.is_success() {
                answer.expect_refusal(&what);
            }
        }
    }
    // Stored objects can be returned in every form, including ages in tables.
    for (path, _) in &posts {
        for accept in [JSON, "application/json;as=Table;v=v1;g=meta.k8s.io"] {
            let mut asked = request(Method::GET, path, "", "");
            asked.headers_mut().insert(http::header::ACCEPT, accept.parse().expect("a header"));
            assert_eq!(send(&server, path, asked).status, StatusCode::OK, "{path} as {accept}");
        }
    }
    expect_well(&server);
}

#[test]
fn a_generation_at_its_maximum_causes_no_error() {
    let server = server();
    for (path, body) in posts() {
        let mut body = body.to_string().replace("\"@\"", "1").replace('@', "1");
        body = body.replace("\"generation\":1", "\"bogus\":1");
        let metadata = format!(
            "\"metadata\":{{\"generation\":{},\"finalizers\":[\"x.io/y\"],\"name\":\"last\",",
            i64::MAX
        );
        let body = body.replacen("\"metadata\":{", &metadata, 1);
        send(&server, path, request(Method::POST, path, JSON, body));
        let one = format!("{path}/last");
        let changes = [
            r#"{"metadata":{"labels":{"a":"b"}}}"#,
            r#"{"spec":{"replicas":2,"suspend":true,"paused":true,"minReadySeconds":0,"maxReplicas":7}}"#,
            r#"{"value":2,"data":{"n":2},"spec":{"holderIdentity":"x"}}"#,
        ];
        for change in changes {
            let what = format!("PATCH {one} with {change}");
            let answer =
                send(&server, &what, request(Method::PATCH, &one, "application/merge-patch+json", change));
            assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
        }
        for _ in 0..2 {
            let what = format!("DELETE {one}");
            let answer = send(&server, &what, request(Method::DELETE, &one, "", ""));
            assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
        }
    }
    expect_well(&server);
}

#[test]
fn times_at_their_limits_are_stored_or_rejected() {
    let server = server();
    let times = [
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "9999-12-31T23:59:59.999999999Z",
        "9999-12-31T23:59:60Z",
        "2026-02-30T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:00+99:99",
        "2026-01-01T00:00:00-23:59",
        "99999-01-01T00:00:00Z",
        "-001-01-01T00:00:00Z",
        "",
        "x",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "２０２６-01-01T00:00:00Z",
    ];
    for time in times {
        let posts = [
            (
                "/apis/coordination.k8s.io/v1/namespaces/default/leases",
                json!({"metadata": {"generateName": "l-"}, "spec": {"renewTime": time, "acquireTime": time}}),
            ),
            (
                "/api/v1/namespaces/default/events",
                json!({"metadata": {"generateName": "e-"}, "involvedObject": {"namespace": "default"}, "firstTimestamp": time, "lastTimestamp": time, "eventTime": time}),
            ),
            (
                MAPS,
                json!({"metadata": {"generateName": "m-", "creationTimestamp": time, "deletionTimestamp": time}}),
            ),
            (
                "/api/v1/namespaces/default/pods",
                json!({"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}, "status": {"startTime": time}}),
            ),
        ];
        for (path, body) in posts {
            let what = format!("POST {path} with {time}");
            let answer = send(&server, &what, request(Method::POST, path, JSON, body.to_string()));
            assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
            if !answer.status.is_success() {
                answer.expect_refusal(&what);
            }
        }
        let job = json!({"metadata": {"name": "job"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
        let jobs = "/apis/batch/v1/namespaces/default/jobs";
        send(&server, "a job", request(Method::POST, jobs, JSON, job.to_string()));
        let status =
            json!({"status": {"startTime": "0001-01-01T00:00:01Z", "completionTime": time, "active": 1}});
        let what = format!("the status of a job with {time}");
        let asked = request(
            Method::PATCH,
            "/apis/batch/v1/namespaces/default/jobs/job/status",
            "application/merge-patch+json",
            status.to_string(),
        );
        let answer = send(&server, &what, asked);
        assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
        for path in [jobs, "/api/v1/events", MAPS, "/apis/coordination.k8s.io/v1/leases", "/api/v1/pods"] {
            let mut asked = request(Method::GET, path, "", "");
            let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
            asked.headers_mut().insert(http::header::ACCEPT, accept.parse().expect("a header"));
            assert_eq!(send(&server, path, asked).status, StatusCode::OK, "{path} after {time}");
        }
    }
    expect_well(&server);
}

#[test]
fn options_beyond_their_limits_are_applied_or_rejected() {
    let server = server();
    let pods = "/api/v1/namespaces/default/pods";
    for (at, number) in NUMBERS.iter().enumerate() {
        let number = number.replace('+', "%2B");
        for query in [
            format!("limit={number}"),
            format!("timeoutSeconds={number}"),
            format!("watch=1&timeoutSeconds={number}"),
            format!("resourceVersion={number}"),
            format!("watch=1&resourceVersion={number}"),
            format!("resourceVersion={number}&resourceVersionMatch=Exact"),
            format!("resourceVersion={number}&resourceVersionMatch=NotOlderThan"),
            format!("limit={number}&continue={number}"),
            format!("watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&resourceVersion={number}"),
        ] {
            let what = format!("GET {pods}?{query}");
            let answer = send(&server, &what, request(Method::GET, &format!("{pods}?{query}"), "", ""));
            // 504 asks the client to retry; upstream returns 500 for an invalid resourceVersion.
            let known = [StatusCode::GATEWAY_TIMEOUT, StatusCode::INTERNAL_SERVER_ERROR];
            assert!(
                !answer.status.is_server_error() || known.contains(&answer.status),
                "{what}: {}",
                answer.status
            );
            if !answer.status.is_success() {
                assert_eq!(answer.json()["kind"], "Status", "{what}");
            }
        }
        // A pod on a node has a grace period.
        let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
        let pod = json!({"metadata": {"name": format!("p{at}")}, "spec": spec}).to_string();
        send(&server, "a pod", request(Method::POST, pods, JSON, pod));
        let one = format!("{pods}/p{at}");
        let what = format!("DELETE with gracePeriodSeconds={number}");
        let answer = send(
            &server,
            &what,
            request(Method::DELETE, &format!("{one}?gracePeriodSeconds={number}"), "", ""),
        );
        assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
        assert_ne!(answer.status, StatusCode::NOT_FOUND, "{what}");
        let body = format!("{{\"gracePeriodSeconds\":{}}}", number.replace("%2B", "+"));
        let answer = send(&server, &what, request(Method::DELETE, &one, JSON, body));
        assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
    }
    expect_well(&server);
}

#[test]
fn quantities_beyond_their_limits_are_stored_or_rejected() {
    let server = server();
    let long = "9".repeat(50_000);
    let quantities = [
        "1e2147483647",
        "1e-2147483648",
        "1e99999999999999999999",
        "1E18446744073709551616",
        "9223372036854775807E",
        "9223372036854775807Ei",
        "-9223372036854775808Ei",
        "0.000000000000000000000000000000001",
        "1n",
        "1u",
        "1.m",
        ".5",
        ".",
        "",
        "+",
        "-",
        "1 ",
        " 1",
        "1k1",
        "1e",
        "1ee1",
        "1e+",
        "1Zi",
        "１",
        "0x10",
        "Infinity",
        "NaN",
        "1e3Ki",
        "--1",
        long.as_str(),
    ];
    for quantity in quantities {
        let body = json!({"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {
            "requests": {"cpu": quantity, "memory": quantity, "ephemeral-storage": quantity},
            "limits": {"cpu": quantity, "memory": quantity, "example.org/x": quantity},
        }}]}});
        let what = format!("a pod with {}", quantity.chars().take(60).collect::<String>());
        let path = "/api/v1/namespaces/default/pods";
        let answer = send(&server, &what, request(Method::POST, path, JSON, body.to_string()));
        assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
        let quota = json!({"metadata": {"generateName": "q-"}, "spec": {"hard": {"cpu": quantity}}});
        let path = "/api/v1/namespaces/default/resourcequotas";
        let answer = send(&server, &what, request(Method::POST, path, JSON, quota.to_string()));
        assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
    }
    expect_well(&server);
}
