//! `--debug-page-bind-address` of an operator, with and without the cargo feature `debug-page`.

use std::process::ExitCode;
use std::sync::mpsc;

use kubewright::{Manager, ManagerError, Operator};
use kubewright_apiserver::serve::Listening;
use kubewright_apiserver::{ApiServer, Options};

/// Runs an operator with a debug page on a new API server, and passes its manager to a function. One test per process
/// can call this, because it sets up the log.
fn run<T: Send + 'static>(main: impl AsyncFnOnce(Manager) -> T) -> T {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = ApiServer::new(Options::default());
    let serving = runtime.block_on(Listening::open(server, 0)).expect("a port is free");
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, serving.kubeconfig()).expect("a kubeconfig");
    let operator = Operator::new("guestbook", "1.2.3");
    let arguments = [
        "guestbook",
        "--debug-page-bind-address=127.0.0.1:0",
        "--metrics-secure=false",
        "--health-probe-bind-address=0",
        "--kubeconfig",
        kubeconfig.to_str().expect("a path"),
    ];
    let flags = operator.parse(arguments).expect("the flags are valid");
    let (sender, result) = mpsc::channel();
    let code = operator.run_with(flags, async |manager| {
        // The receiver outlives the operator.
        let _ = sender.send(main(manager).await);
        Ok::<(), ManagerError>(())
    });
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
    result.recv().expect("the operator ran")
}

#[cfg(not(feature = "debug-page"))]
#[test]
fn without_the_feature_the_error_names_it() {
    let error = run(async |manager| manager.run_until(std::future::pending()).await.err());
    let error = error.expect("the manager does not start").to_string();
    assert!(
        error.starts_with("--debug-page-bind-address: the debug page is not compiled in; enable the cargo feature `debug-page`"),
        "{error}"
    );
}

#[cfg(feature = "debug-page")]
#[test]
fn with_the_feature_the_page_is_served_with_the_log() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let updates = run(async |manager| {
        let page = async {
            let address = manager.addresses().await.debug_page.expect("the page is served");
            loop {
                let mut stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
                let request =
                    "GET /debug/page/updates HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
                stream.write_all(request.as_bytes()).await.expect("a request");
                let mut response = String::new();
                stream.read_to_string(&mut response).await.expect("a response");
                if response.contains("Starting debug page server") && response.contains("guestbook") {
                    return response;
                }
            }
        };
        tokio::select! {
            page = page => page,
            ended = manager.clone().run_until(std::future::pending()) => panic!("the manager ended: {ended:?}"),
        }
    });
    assert!(updates.starts_with("HTTP/1.1 200 OK"), "{updates}");
}
