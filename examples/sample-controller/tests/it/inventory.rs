//! Tests the HTTP inventory with a real server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::put;
use kubewright::Key;
use sample_controller::inventory::{HttpInventory, Inventory as _, Registration};
use tokio::net::TcpListener;

type Registrations = Arc<Mutex<BTreeMap<String, String>>>;

async fn register(
    State(all): State<Registrations>,
    Path(bar): Path<(String, String)>,
    body: String,
) -> StatusCode {
    all.lock().unwrap().insert(format!("{}/{}", bar.0, bar.1), body);
    StatusCode::CREATED
}

async fn unregister(State(all): State<Registrations>, Path(bar): Path<(String, String)>) -> StatusCode {
    let removed = all.lock().unwrap().remove(&format!("{}/{}", bar.0, bar.1));
    if removed.is_some() { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }
}

/// Starts a server with an inventory, and returns its URL.
async fn serve(registrations: Registrations) -> Result<String> {
    let of_bar = put(register).delete(unregister);
    let router = Router::new().route("/bars/{namespace}/{name}", of_bar).with_state(registrations);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}

#[tokio::test]
async fn a_bar_is_registered_and_unregistered_once() -> Result<()> {
    let registrations = Registrations::default();
    let inventory = HttpInventory::new(serve(registrations.clone()).await?);
    let key = Key::namespaced("default", "bar-sample");
    for name in ["first", "second"] {
        inventory.register(&key, &Registration { deployment_name: name.to_owned() }).await?;
    }
    let expected = [("default/bar-sample".to_owned(), r#"{"deploymentName":"second"}"#.to_owned())];
    assert_eq!(*registrations.lock().unwrap(), BTreeMap::from(expected));
    // The cleanup may run twice.
    for _ in 0..2 {
        inventory.unregister(&key).await?;
    }
    assert!(registrations.lock().unwrap().is_empty());
    Ok(())
}

#[tokio::test]
async fn an_error_names_the_request_and_what_to_check() -> Result<()> {
    let url = serve(Registrations::default()).await?;
    let key = Key::namespaced("default", "bar-sample");
    let error = HttpInventory::new(format!("{url}/v2")).register(&key, &registration()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("PUT {url}/v2/bars/default/bar-sample failed: 404 Not Found"));
    let error = HttpInventory::new("no url").unregister(&key).await.unwrap_err();
    assert_eq!(error.to_string(), "no url/bars/default/bar-sample is not a valid URL; check INVENTORY_URL");
    Ok(())
}

fn registration() -> Registration {
    Registration { deployment_name: "example-bar".to_owned() }
}
