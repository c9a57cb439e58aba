//! Unusual paths, queries and headers.

use http::{HeaderName, HeaderValue, Method, Request, StatusCode};

use super::{MAPS, expect_well, request, send};
use crate::world::server;

#[test]
fn unusual_paths_are_found_or_not_found() {
    let server = server();
    let long = format!("/api/v1/namespaces/{}/configmaps", "x".repeat(60_000));
    let many = "/a".repeat(20_000);
    let paths = [
        "/",
        "//",
        "///",
        "/api/",
        "/api//v1",
        "/api/v1//",
        "/api/v1/namespaces//",
        "/api/v1/namespaces//configmaps//",
        "/api/v1/namespaces/default/configmaps/..",
        "/api/v1/namespaces/../configmaps",
        "/api/v1/namespaces/default/configmaps/%2e%2e",
        "/api/v1/namespaces/%00/configmaps",
        "/api/v1/namespaces/%ff%fe/configmaps/%c0%ae",
        "/api/v1/namespaces/default%2fconfigmaps",
        "/api/v1/namespaces/default/configmaps/a%2fb",
        "/api/v1/namespaces/default/configmaps/%",
        "/api/v1/namespaces/default/configmaps/%zz",
        "/api/v1/watch",
        "/api/v1/watch/",
        "/api/v1/watch/namespaces",
        "/api/v1/watch/namespaces/default/configmaps/a/b/c",
        "/api/v1/namespaces/default/configmaps/a/status",
        "/api/v1/namespaces/default/pods/a/exec",
        "/api/v1/namespaces/default/pods/a/proxy/x/y/z",
        "/api/v1/namespaces/default/services/a:b:c/proxy",
        "/apis/",
        "/apis//v1/x",
        "/apis/apps//deployments",
        "/apis/apps/v1/namespaces/default",
        "/apis/APPS/v1/deployments",
        "/openapi/v2",
        "/openapi/v3",
        "/metrics",
        "/debug/pprof",
        "/healthz/bogus",
        "/readyz/../version",
        "/version/",
        "/api/v2/pods",
        "/api/v1/namespaces/default/pods/a/b/c/d/e/f",
        &long,
        &many,
    ];
    for path in paths {
        for method in [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ] {
            let what = format!("{method} {}", &path[..path.len().min(80)]);
            let body = r#"{"metadata":{"name":"x"}}"#;
            let answer = send(&server, &what, request(method.clone(), path, "application/json", body));
            assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
        }
    }
    for method in ["TRACE", "CONNECT", "PROPFIND", "get", "X"] {
        let method = Method::from_bytes(method.as_bytes()).expect("a token");
        let what = format!("{method} {MAPS}");
        let answer = send(&server, &what, request(method, MAPS, "", ""));
        assert!(answer.status.is_client_error(), "{what}: {}", answer.status);
    }
    expect_well(&server);
}

#[test]
fn unusual_queries_are_rejected_or_ignored() {
    let server = server();
    let brackets = "(".repeat(50_000);
    let commas = ",".repeat(50_000);
    let values = format!("a in ({})", vec!["b"; 20_000].join(",")).replace(' ', "%20");
    let pairs = vec!["labelSelector=a"; 10_000].join("&");
    let fields = vec!["metadata.name%3Da"; 10_000].join(",");
    let queries = [
        "&&&==&".to_owned(),
        "labelSelector".to_owned(),
        "labelSelector=%ff%fe%00".to_owned(),
        "labelSelector=a%00b".to_owned(),
        format!("labelSelector={brackets}"),
        format!("labelSelector=a%20in%20{brackets}"),
        format!("labelSelector={commas}"),
        format!("labelSelector={values}"),
        pairs,
        "labelSelector=%F0%9F%98%80%3D%F0%9F%98%80".to_owned(),
        "labelSelector=!!!!a".to_owned(),
        "labelSelector=a%3E99999999999999999999999".to_owned(),
        format!("fieldSelector={fields}"),
        "fieldSelector=metadata.name%3D%5C%5C%5C".to_owned(),
        "fieldSelector=%5C".to_owned(),
        "fieldSelector=%3D%3D%3D%3D".to_owned(),
        "continue=AAAA".to_owned(),
        "continue=%00".to_owned(),
        "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vLi4vIn0".to_owned(),
        "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTg0NDY3NDQwNzM3MDk1NTE2MTYsInN0YXJ0IjoiXHUwMDAwIn0"
            .to_owned(),
        "limit=&continue=&resourceVersion=&resourceVersionMatch=".to_owned(),
        "watch=maybe&allowWatchBookmarks=perhaps".to_owned(),
        "watch=1&watch=0".to_owned(),
        "fieldManager=%00&fieldValidation=%00&dryRun=%00".to_owned(),
        "pretty=1&includeObject=bogus".to_owned(),
    ];
    for query in &queries {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let what = format!("{method} with ?{}", &query[..query.len().min(80)]);
            let path = format!("/api/v1/namespaces/kube-public/configmaps?{query}");
            // The URI type has its own limit; longer ones never reach the server.
            let Ok(asked) = Request::builder()
                .method(&method)
                .uri(&path)
                .body("{\"metadata\":{\"generateName\":\"x-\"}}")
            else {
                continue;
            };
            let answer = send(&server, &what, asked);
            assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
            if !answer.status.is_success() {
                answer.expect_refusal(&what);
            }
        }
    }
    expect_well(&server);
}

#[test]
fn unusual_headers_are_rejected_or_ignored() {
    let server = server();
    let many_accepts = vec!["application/json;as=Table;v=v9;g=meta.k8s.io"; 5_000].join(",");
    let headers = [
        ("accept", "".as_bytes()),
        ("accept", b"\xff\xfe"),
        ("accept", b",,,;;;q=,"),
        ("accept", b"application/json;as=Table;v=v1;g=meta.k8s.io;as=PartialObjectMetadata"),
        ("accept", b"application/json;q=\"0"),
        ("accept", b"application/json;q=99999999999999999999"),
        ("accept", b"application/json;as=Bogus;v=v1;g=meta.k8s.io"),
        ("accept", many_accepts.as_bytes()),
        ("accept-encoding", b"gzip;q=1.0,\xff"),
        ("authorization", b"Bearer"),
        ("authorization", b"Bearer "),
        ("authorization", b"bearer x"),
        ("authorization", b"Bearer \xff\xff"),
        ("authorization", b"Basic eDp5"),
        ("content-length", b"-1"),
        ("content-length", b"99999999999999999999"),
        ("content-type", b"\xff"),
        ("user-agent", b"\x09\xff"),
        ("impersonate-user", b"\xff"),
        ("x-forwarded-for", b"::"),
        ("if-none-match", b"W/\"\xff\""),
    ];
    for (name, value) in headers {
        for (method, path) in [
            (Method::GET, MAPS),
            (Method::GET, "/apis"),
            (Method::POST, MAPS),
            (Method::DELETE, "/api/v1/namespaces/default/configmaps/x"),
        ] {
            let what = format!(
                "{method} {path} with {name}: {:?}",
                String::from_utf8_lossy(&value[..value.len().min(60)])
            );
            let mut asked = request(method, path, "", r#"{"metadata":{"generateName":"x-"}}"#);
            let name = HeaderName::from_static(name);
            asked.headers_mut().insert(name, HeaderValue::from_bytes(value).expect("a header"));
            let answer = send(&server, &what, asked);
            assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
        }
    }
    expect_well(&server);
}

#[test]
fn a_bearer_token_that_is_not_text_does_not_authenticate() {
    let server = server();
    let mut asked = request(Method::GET, "/api/v1/secrets", "", "");
    let value = HeaderValue::from_bytes(b"Bearer \xff\xff").expect("a header");
    asked.headers_mut().insert(http::header::AUTHORIZATION, value);
    assert_eq!(send(&server, "a broken token", asked).status, StatusCode::UNAUTHORIZED);
}
