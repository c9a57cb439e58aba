//! Who can read the page.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use kubewright_page::ManagerPage;
use kubewright_runtime::{Manager, ManagerError, ManagerOptions};

use crate::world::{Certificate, Http, World, local, server};

const DATA: &[&str] = &["/debug/page/updates", "/debug/page/object?id=x", "/debug/page/why?id=x"];

fn secure(certificate: &Certificate) -> Result<ManagerOptions> {
    let metrics_cert_path = Some(certificate.folder.path().to_owned());
    Ok(ManagerOptions { metrics_secure: true, metrics_cert_path, ..local()? })
}

#[tokio::test]
async fn every_request_for_data_needs_a_token_with_permission() -> Result<()> {
    let certificate = Certificate::new()?;
    let world = World::start(secure(&certificate)?)?;
    let http = Http::secure(world.address().await?, &certificate)?;
    for path in DATA {
        assert_eq!(http.get(path, None).await?.status, 401, "{path}");
        assert_eq!(http.get(path, Some("bogus")).await?.status, 401, "{path}");
        let forbidden = http.get(path, Some("may-not")).await?;
        assert_eq!(
            (forbidden.status, forbidden.body.as_str()),
            (403, "Authorization denied for user eve\n"),
            "{path}"
        );
        let found = http.get(path, Some("may-read")).await?.status;
        assert_eq!(found, if path.ends_with("updates") { 200 } else { 404 }, "{path}");
    }
    assert!(Http::plain(world.address().await?).get(DATA[0], Some("may-read")).await.is_err(), "plain HTTP");
    world.end().await
}

#[tokio::test]
async fn without_a_token_the_page_asks_for_one_and_its_files_contain_no_data() -> Result<()> {
    let certificate = Certificate::new()?;
    let world = World::start(secure(&certificate)?)?;
    world.config_map("private-name", &serde_json::json!({})).await?;
    let http = Http::secure(world.address().await?, &certificate)?;
    let page = http.get("/debug/page/", None).await?;
    assert_eq!(page.status, 401);
    assert!(page.body.contains("id=\"signin\"") && page.body.contains("data-mode=\"manager\""));
    assert!(!page.body.contains("private-name"));
    assert_eq!(http.get("/debug/page/", Some("may-read")).await?.status, 200);
    assert_eq!(http.get("/debug/page/", Some("may-not")).await?.status, 403);
    for file in ["page.js", "connection.js", "page.css", "icon.svg"] {
        assert_eq!(http.get(&format!("/debug/page/{file}"), None).await?.status, 200, "{file}");
    }
    for path in ["/", "/debug/page"] {
        let moved = http.get(path, None).await?;
        assert_eq!((moved.status, &moved.headers["location"]), (302, &"/debug/page/".parse()?), "{path}");
    }
    for path in ["/metrics", "/debug/page/nothing", "/debug/pagex", "/debug/pprof/"] {
        assert_eq!(http.get(path, Some("may-read")).await?.status, 404, "{path}");
    }
    world.end().await
}

#[tokio::test]
async fn the_page_is_read_only_and_sets_security_headers() -> Result<()> {
    let world = World::start(local()?)?;
    let http = Http::plain(world.address().await?);
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let refused = http.send(method, "/debug/page/updates", []).await?;
        assert_eq!((refused.status, &refused.headers["allow"]), (405, &"GET".parse()?), "{method}");
    }
    for path in ["/debug/page/", "/debug/page/page.js", "/debug/page/updates", "/nothing"] {
        let headers = http.get(path, None).await?.headers;
        let policy = headers["content-security-policy"].to_str()?;
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{path}: {policy}");
        assert!(!headers.contains_key("access-control-allow-origin"), "{path}");
    }
    world.end().await
}

#[tokio::test]
async fn without_authentication_only_local_host_names_are_accepted() -> Result<()> {
    let world = World::start(local()?)?;
    let http = Http::plain(world.address().await?);
    for path in ["/debug/page/", "/debug/page/updates", "/debug/page/page.js"] {
        let refused = http.send("GET", path, [("host", "evil.example".to_owned())]).await?;
        assert_eq!(refused.status, 403, "{path}");
        assert!(refused.body.starts_with("this page is local only"), "{}", refused.body);
        assert_eq!(http.send("GET", path, [("host", "localhost:1".to_owned())]).await?.status, 200, "{path}");
    }
    world.end().await
}

#[tokio::test]
async fn without_authentication_only_loopback_addresses_are_served() -> Result<()> {
    let manager = |options| -> Result<Manager> {
        let manager = Manager::new(kube::Client::new(server(), "default"), options)?;
        manager.set_debug_page(Arc::new(ManagerPage::new()));
        Ok(manager)
    };
    let everywhere = ManagerOptions { debug_page_bind_address: "0.0.0.0:0".parse()?, ..local()? };
    let error = manager(everywhere)?.run_until(std::future::pending()).await.err().context("it fails")?;
    assert!(matches!(error, ManagerError::OpenDebugPage(_)), "{error}");
    assert!(error.to_string().contains("use 127.0.0.1:PORT, or remove --metrics-secure=false"), "{error}");
    Ok(())
}

#[tokio::test]
async fn the_page_is_off_by_default() -> Result<()> {
    let options = ManagerOptions::new("labeller").namespaces(["default"]);
    assert!(options.debug_page_bind_address.is_off());
    let world = World::start(options)?;
    assert_eq!(world.manager.addresses().await.debug_page, None);
    world.end().await
}

#[tokio::test]
async fn a_program_without_the_page_names_the_cargo_feature() -> Result<()> {
    let manager = Manager::new(kube::Client::new(server(), "default"), local()?)?;
    let error = manager.run_until(std::future::pending()).await.err().context("it fails")?;
    assert!(matches!(error, ManagerError::NoDebugPage), "{error}");
    assert!(error.to_string().contains("cargo feature `debug-page`"), "{error}");
    Ok(())
}
