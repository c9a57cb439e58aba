//! Lists in YAML, rendered one item at a time while they are sent.
//!
//! The text equals that of the whole list: the fields before the items, the items, and the fields after them.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::body::{Body, Items, Render};
use super::response::{self, View};
use super::row;
use crate::off_worker::OffWorker;
use crate::registry::resource::Resource;
use crate::stack::on_large_stack;
use crate::storage::StoredObject;

/// Larger objects are rendered off the worker thread.
const LARGE: usize = 32 << 10;

/// A list in a view. `versions` must not be empty: an empty list has another form.
pub(crate) fn body(
    resource: &Arc<Resource>,
    view: View,
    list_meta: &Map<String, Value>,
    versions: Vec<Arc<StoredObject>>,
    now: i64,
) -> Body {
    let (list, items) = response::list_without_items(resource, view, list_meta);
    let is_before = |name: &str| name < items;
    let fields = |before: bool| -> Map<String, Value> {
        let all = list.as_object().into_iter().flatten();
        all.filter(|(name, _)| is_before(name) == before)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let start = format!("{items}:\n");
    let head = text(fields(true)) + &start;
    let tail = text(fields(false));
    Body::list(
        head.into_bytes(),
        Items::slowly_rendered(versions, render(resource.clone(), view, items, start, now)),
        b"",
        tail.into_bytes(),
    )
}

/// The fields as YAML.
fn text(fields: Map<String, Value>) -> String {
    if fields.is_empty() { String::new() } else { yaml(&Value::Object(fields)) }
}

/// Renders an item as the only one of its list, and removes the `start` of the list.
fn render(resource: Arc<Resource>, view: View, items: &'static str, start: String, now: i64) -> Render {
    let json: Render = match view {
        View::Whole => Box::new(move |version| response::item(&resource, version)),
        view => row::render(resource, view, now),
    };
    let off_worker = OffWorker::for_request();
    Box::new(move |version| {
        let render = || {
            on_large_stack(|| {
                let mut text = yaml(&json!({ items: [response::parsed(&json(version))] }));
                if text.starts_with(&start) {
                    text.drain(..start.len());
                }
                Bytes::from(text)
            })
        };
        if version.json.len() > LARGE { off_worker.run(render) } else { render() }
    })
}

fn yaml(value: &Value) -> String {
    // Serialization of a JSON value does not fail.
    serde_saphyr::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::storage::Expect;
    use crate::{ApiServer, Options};

    async fn list(server: &ApiServer, path: &str, accept: &str) -> Bytes {
        let request = http::Request::get(path).header("accept", accept);
        let response = server.handle(request.body(http_body_util::Full::new(Bytes::new())).unwrap()).await;
        assert!(response.status().is_success(), "{path} {accept}");
        response.into_body().collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn a_rendered_list_equals_the_whole_list_as_yaml() {
        let server = ApiServer::new(Options::default());
        let registry = server.stages.resources.current();
        let texts = [
            "",
            " ",
            "a",
            "1",
            "true",
            "null",
            "~",
            "- a",
            "a: b",
            "#",
            "\"'",
            "a\n",
            "a\nb\n\n",
            " a\n  b",
            "\t",
            "\u{e4}\u{1F600}",
            "2026-01-01",
            "|",
            "x\r\ny",
            "=",
            "0x1f",
            "1e3",
            "{}",
            "[",
            "&a",
            "*a",
            "!a",
            "%",
        ];
        let long = "word ".repeat(100);
        for (number, text) in texts.iter().chain([&long.as_str()]).enumerate() {
            let name = format!("a{number}");
            let map = json!({
                "metadata": {"name": name, "namespace": "default", "annotations": {"a": text}, "labels": {}},
                "data": {"key": text, "other": "x"},
            });
            let resource = registry.stored("configmaps").unwrap();
            let key = format!("default/{name}");
            server.stages.objects.put_without_steps(resource, &key, Expect::Absent, map).unwrap();
        }
        let deployment = json!({
            "metadata": {"name": "a", "namespace": "default", "creationTimestamp": "1970-01-01T00:00:00Z"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}, "matchExpressions": []},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"volumes": [], "containers": [
                    {"name": "c", "image": "i", "args": ["]", "- x"]}, {"name": "d", "image": "j"}]}}},
            "status": {},
        });
        let resource = registry.stored("apps/deployments").unwrap();
        server.stages.objects.put_without_steps(resource, "default/a", Expect::Absent, deployment).unwrap();
        for path in [
            "/api/v1/configmaps",
            "/api/v1/configmaps?limit=1",
            "/apis/apps/v1/deployments",
            "/api/v1/namespaces/none/configmaps",
            "/apis/autoscaling/v1/horizontalpodautoscalers",
        ] {
            for view in
                ["", ";as=Table;g=meta.k8s.io;v=v1", ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"]
            {
                let json = list(&server, path, &format!("application/json{view}")).await;
                let yaml = list(&server, path, &format!("application/yaml{view}")).await;
                let expected = response::to_yaml(&json);
                assert_eq!(
                    str::from_utf8(&yaml).unwrap(),
                    str::from_utf8(&expected).unwrap(),
                    "{path} {view}"
                );
            }
        }
    }
}
