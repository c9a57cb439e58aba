//! Health probes over HTTP.

use anyhow::Result;
use kubewright_runtime::health::{self, Checks};

use crate::serve::{Running, get, local};

#[tokio::test]
async fn probes_are_served_by_endpoint_and_check_name() -> Result<()> {
    let (healthz, readyz) = (Checks::new("healthz"), Checks::new("readyz"));
    readyz.add("cache-sync", || Err("1 kind is not listed".to_owned()));
    let running = Running::start(local().await?, health::handler(healthz, readyz.clone()));
    let ok = (200, "ok".to_owned());
    assert_eq!(get(running.address, "/healthz").await?, ok);
    assert_eq!(get(running.address, "/healthz/ping").await?, ok);
    assert_eq!(
        get(running.address, "/readyz").await?,
        (500, "[-]cache-sync failed: reason withheld\n[+]ping ok\nreadyz check failed\n".to_owned())
    );
    assert_eq!(get(running.address, "/readyz?exclude=cache-sync").await?, ok);
    assert_eq!(get(running.address, "/readyz/cache-sync").await?.0, 500);
    assert_eq!(get(running.address, "/healthz/cache-sync").await?.0, 404);
    for nothing in ["/", "/livez", "/metrics"] {
        assert_eq!(get(running.address, nothing).await?.0, 404, "{nothing}");
    }
    readyz.add("cache-sync", || Ok(()));
    assert_eq!(get(running.address, "/readyz/").await?, ok);
    Ok(())
}
