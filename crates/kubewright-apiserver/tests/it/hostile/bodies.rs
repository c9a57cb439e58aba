//! Bodies that are too deep, too large, or invalid.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body::Frame;

use super::{MAPS, expect_well, request, send};
use crate::world::{server, soon};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

/// All ways to send a body: method, path and media type.
const WAYS: &[(Method, &str, &str)] = &[
    (Method::POST, MAPS, JSON),
    (Method::POST, MAPS, YAML),
    (Method::POST, "/apis/apps/v1/namespaces/default/controllerrevisions", JSON),
    (Method::POST, "/apis/apps/v1/namespaces/default/controllerrevisions", YAML),
    (Method::POST, "/api/v1/namespaces/default/pods", JSON),
    (Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews", JSON),
    (Method::PUT, "/api/v1/namespaces/default/configmaps/victim", JSON),
    (Method::PUT, "/api/v1/namespaces/default/configmaps/victim", YAML),
    (Method::PUT, "/api/v1/namespaces/default/status", JSON),
    (Method::PATCH, "/api/v1/namespaces/default/configmaps/victim", "application/json-patch+json"),
    (Method::PATCH, "/api/v1/namespaces/default/configmaps/victim", "application/merge-patch+json"),
    (Method::PATCH, "/api/v1/namespaces/default/configmaps/victim", "application/strategic-merge-patch+json"),
    (
        Method::PATCH,
        "/api/v1/namespaces/default/configmaps/victim?fieldManager=x",
        "application/apply-patch+yaml",
    ),
    (Method::DELETE, "/api/v1/namespaces/default/configmaps/nobody", JSON),
    (Method::DELETE, "/api/v1/namespaces/default/configmaps/nobody", YAML),
    (Method::DELETE, "/api/v1/namespaces/kube-public/configmaps", JSON),
];

fn with_victim() -> kubewright_apiserver::ApiServer {
    let server = server();
    let body = r#"{"metadata":{"name":"victim"},"data":{"key":"value"}}"#;
    let answer = send(&server, "the victim", request(Method::POST, MAPS, JSON, body));
    assert_eq!(answer.status, StatusCode::CREATED);
    server
}

#[test]
fn deep_bodies_are_rejected() {
    let server = with_victim();
    for depth in [401, 10_000, 100_000, 1_000_000] {
        let arrays = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let open = "[".repeat(depth);
        let objects = format!("{}1{}", "{\"a\":".repeat(depth.min(400_000)), "}".repeat(depth.min(400_000)));
        let in_a_field = format!("{{\"metadata\":{{\"name\":\"x\"}},\"data\":{arrays}}}");
        let in_a_patch = format!("[{{\"op\":\"add\",\"path\":\"/data\",\"value\":{arrays}}}]");
        for (method, path, media) in WAYS {
            for body in [&arrays, &open, &objects, &in_a_field, &in_a_patch] {
                let start = &body[..30];
                let what = format!("{method} {path} {media} with {depth} levels of {start}");
                send(&server, &what, request(method.clone(), path, media, body.clone()))
                    .expect_refusal(&what);
            }
        }
    }
    expect_well(&server);
}

#[test]
fn an_object_of_maximum_depth_works_in_every_form() {
    let server = server();
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    // The object itself is one more level.
    let depth = 399;
    let data = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let body = format!("{{\"metadata\":{{\"name\":\"deep\"}},\"revision\":1,\"data\":{data}}}");
    let answer = send(&server, "a deep object", request(Method::POST, path, JSON, body));
    assert_eq!(answer.status, StatusCode::CREATED, "{}", String::from_utf8_lossy(&answer.body[..200]));
    let one = format!("{path}/deep");
    let reads = [one.clone(), path.to_owned(), format!("{path}?watch=1"), format!("{path}?limit=1")];
    for read in reads {
        for accept in [JSON, YAML, "application/json;as=Table;v=v1;g=meta.k8s.io"] {
            let mut asked = request(Method::GET, &read, "", "");
            asked.headers_mut().insert(http::header::ACCEPT, accept.parse().expect("a header"));
            let answer = send(&server, &read, asked);
            // Watches do not support YAML.
            if answer.status == StatusCode::NOT_ACCEPTABLE {
                assert_eq!((accept, read.contains("watch")), (YAML, true), "{read}");
                continue;
            }
            assert_eq!(answer.status, StatusCode::OK, "{read} as {accept}");
            let text = String::from_utf8_lossy(&answer.body);
            assert!(text.contains("deep"), "{read} as {accept} is {text:.200}");
        }
    }
    let patch = request(Method::PATCH, &one, "application/merge-patch+json", format!("{{\"data\":{data}}}"));
    assert_eq!(send(&server, "a deep patch", patch).status, StatusCode::OK);
    let answer = send(&server, "its end", request(Method::DELETE, &one, "", ""));
    assert_eq!(answer.status, StatusCode::OK);
    expect_well(&server);
}

/// A string of many lines.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

/// Ten levels of nine aliases: a few hundred bytes that expand to gigabytes.
fn billion_laughs() -> String {
    lines(10, |level| {
        let item = level.checked_sub(1).map_or("lol".to_owned(), |before| format!("*a{before}"));
        format!("a{level}: &a{level} [{}]", vec![item; 9].join(", "))
    })
}

/// The same with merge keys.
fn merge_keys() -> String {
    lines(40, |level| match level.checked_sub(1) {
        None => "m0: &m0 {k: v}".to_owned(),
        Some(before) => format!("m{level}: &m{level} {{<<: [*m{before}, *m{before}], k{level}: *m{before}}}"),
    })
}

#[test]
fn yaml_bombs_are_rejected() {
    let server = with_victim();
    let quadratic = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(50_000), vec!["*a"; 50_000].join(","));
    let bombs = [
        ("aliases of aliases", billion_laughs()),
        ("one long text many times", quadratic),
        ("merge keys of merge keys", merge_keys()),
        ("an alias of itself", "a: &a [*a]\n".to_owned()),
        ("flow sequences", "[".repeat(100_000)),
        ("block sequences", lines(2_000, |depth| format!("{}- ", " ".repeat(depth)))),
        ("block mappings", lines(2_000, |depth| format!("{}a:", " ".repeat(depth)))),
        ("complex keys", "? ".repeat(50_000)),
        ("dashes", "- ".repeat(50_000)),
        ("documents", "---\na: 1\n".repeat(10_000)),
        ("anchors", lines(5_000, |at| format!("k{at}: &a{at} v"))),
    ];
    for (what, bomb) in bombs {
        let answer = send(&server, what, request(Method::POST, MAPS, YAML, bomb));
        answer.expect_refusal(what);
    }
    expect_well(&server);
}

#[test]
fn bodies_that_are_not_text_are_rejected() {
    let server = with_victim();
    let bodies: &[&[u8]] = &[
        b"",
        b" ",
        b"\0",
        b"\xff\xfe",
        b"{\"metadata\":{\"name\":\"\xff\"}}",
        b"{\"metadata\":{\"name\":\"\xed\xa0\x80\"}}",
        b"{\"metadata\":{\"name\":\"\\ud800\"}}",
        b"{\"metadata\":{\"name\":\"a\\u0000b\"}}",
        b"{\"metadata\":{\"name\":\"a\nb\"}}",
        b"{\"metadata\":{\"name\":\"x\",\"labels\":{\"a\\u0007\":\"b\"}}}",
        b"{\"metadata\":{\"name\":\"x\"}",
        b"{\"metadata\":{\"name\":\"x\"}}}",
        b"{\"metadata\":[]}",
        b"{\"metadata\":{\"name\":{}}}",
        b"\xef\xbb\xbf{}",
        b"[]",
        b"1",
        b"\"a\"",
        b"true",
        b"nul",
        b"k8s\0\x0a\x0b\x0a\x02v1\x12\x05Thing",
        b"a: b: c",
        b"- - -\n\t- x",
        b"\"unterminated",
        b"!!binary x",
        b"%YAML 9.9\n---\nx",
        b"{\x7f}",
    ];
    for (method, path, media) in WAYS {
        for body in bodies {
            let what = format!("{method} {path} {media} with {:?}", String::from_utf8_lossy(body));
            let answer = send(&server, &what, request(method.clone(), path, media, body.to_vec()));
            // An empty body is an empty patch or empty options, so only errors are checked.
            assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
            if !answer.status.is_success() {
                answer.expect_refusal(&what);
            }
        }
    }
    expect_well(&server);
}

#[test]
fn a_body_is_limited_to_three_mebibytes() {
    let server = with_victim();
    let limit = 3 << 20;
    for (method, path, media) in WAYS {
        let what = format!("{method} {path} {media}");
        let answer = send(&server, &what, request(method.clone(), path, media, vec![b' '; limit + 1]));
        let status = answer.expect_refusal(&what);
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{what}");
        assert_eq!(status["reason"], "RequestEntityTooLarge", "{what}");
    }
    let mut padded = br#"{"metadata":{"name":"padded"}}"#.to_vec();
    padded.resize(limit, b' ');
    let answer = send(&server, "the largest body", request(Method::POST, MAPS, JSON, padded));
    assert_eq!(answer.status, StatusCode::CREATED);

    // Below the limit of requests; ConfigMaps have a smaller limit.
    let large =
        format!("{{\"metadata\":{{\"name\":\"large\"}},\"data\":{{\"k\":\"{}\"}}}}", "x".repeat(2 << 20));
    let answer = send(&server, "a large map", request(Method::POST, MAPS, JSON, large));
    assert_eq!(answer.expect_refusal("a large map")["reason"], "Invalid");
    expect_well(&server);
}

/// A body that never ends.
struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 4 << 10])))))
    }
}

/// A body that fails.
struct Broken;

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(Some(Err("the connection is gone")))
    }
}

#[tokio::test]
async fn an_endless_body_is_rejected() -> anyhow::Result<()> {
    let server = server();
    let endless = soon("the endless body", server.handle(Request::post(MAPS).body(Endless)?)).await;
    assert_eq!(endless.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let broken = soon("the broken body", server.handle(Request::post(MAPS).body(Broken)?)).await;
    assert_eq!(broken.status(), StatusCode::BAD_REQUEST);
    Ok(())
}

/// Random bytes, and random pieces of JSON and YAML, for every verb and media type.
#[test]
fn random_bytes_are_rejected_without_server_errors() {
    const WORDS: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "null",
        "true",
        "-1",
        "1e9",
        "0.5",
        "\"metadata\":",
        "\"name\":\"x\"",
        "\"op\":\"add\"",
        "\"path\":\"/data/a\"",
        "\"value\":",
        "\"$patch\":\"delete\"",
        "\\u0000",
        "\n- ",
        "&a ",
        "*a",
        "!!",
        "|\n",
        "#",
        "\t",
        "é",
        "\u{2028}",
        "kind: ConfigMap\n",
        "  ",
    ];
    let server = with_victim();
    let mut random = fastrand::Rng::with_seed(4);
    let medias = [JSON, YAML, "", "text/plain", "application/vnd.kubernetes.protobuf", "a/b;c=\"", "*/*"];
    for round in 0..300 {
        let body: Vec<u8> = if round % 2 == 0 {
            (0..random.usize(..200)).map(|_| random.u8(..)).collect()
        } else {
            let words: Vec<_> = (0..random.usize(..60)).map(|_| WORDS[random.usize(..WORDS.len())]).collect();
            words.concat().into_bytes()
        };
        let (method, path, media) = &WAYS[random.usize(..WAYS.len())];
        let media = if random.u8(..4) == 0 { medias[random.usize(..medias.len())] } else { media };
        let what = format!("{method} {path} {media} with {:?}", String::from_utf8_lossy(&body));
        let answer = send(&server, &what, request(method.clone(), path, media, body));
        assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json());
        if !answer.status.is_success() {
            answer.expect_refusal(&what);
        }
    }
    expect_well(&server);
}
