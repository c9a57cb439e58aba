//! A minimal WebDriver client for headless Chromium and ChromeDriver. Integration tests and benchmarks include this file
//! as well.
//!
//! Written by hand, since it is a dozen JSON requests: existing crates bring a second HTTP client or a
//! license that this repository does not accept. Each test has its own browser.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use futures_util::FutureExt as _;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;

/// Timeout of `until`, in milliseconds.
const PATIENCE: u64 = 30_000;

/// Browser flags: no sandbox (tests may run as root), and no background requests.
const FLAGS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    // The driver exits when the pipe closes, and the browser with it.
    "--remote-debugging-pipe",
];

pub(crate) struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    /// Temporary files of the driver and the browser.
    _folder: TempDir,
}

/// Runs a test with a browser. The browser console must stay empty.
pub(crate) async fn browse<F>(width: u32, height: u32, test: F)
where
    F: AsyncFnOnce(&Browser),
{
    let browser = Browser::start(width, height).await;
    let result = AssertUnwindSafe(async {
        test(&browser).await;
        let complaints = browser.console().await;
        assert!(complaints.is_empty(), "the console is not clean: {complaints:#?}");
    })
    .catch_unwind()
    .await;
    browser.end().await;
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

impl Browser {
    async fn start(width: u32, height: u32) -> Self {
        let missing =
            "install Chromium and its driver, on Debian with `apt-get install chromium chromium-driver`";
        let folder = tempfile::tempdir().expect("a folder");
        // It exits if the free port that it chose for IPv4 is taken for IPv6.
        let (driver, port) =
            (0..5).find_map(|_| start(folder.path(), missing)).expect("chromedriver says its port");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut browser = Self { driver, address, session: String::new(), _folder: folder };
        let wanted = json!({
            "browserName": "chrome",
            // The debug page of a manager has a self-signed certificate.
            "acceptInsecureCerts": true,
            "goog:chromeOptions": { "args": FLAGS },
            "goog:loggingPrefs": { "browser": "ALL" },
            "timeouts": { "script": PATIENCE, "pageLoad": PATIENCE },
        });
        let capabilities = json!({ "capabilities": { "alwaysMatch": wanted } });
        match browser.call("POST", "/session", &capabilities).await {
            Ok(session) => session["sessionId"].as_str().expect("a session").clone_into(&mut browser.session),
            Err(error) => {
                browser.end().await;
                panic!("Chromium does not start: {error}\n{missing}");
            }
        }
        // The size of the viewport, without window decorations.
        browser.resize(width, height).await;
        browser
    }

    pub(crate) async fn resize(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size).await;
    }

    async fn end(mut self) {
        if !self.session.is_empty() {
            let _ = self.command("DELETE", "", &json!({})).await;
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }

    pub(crate) async fn open(&self, url: &str) {
        self.command("POST", "/url", &json!({ "url": url })).await.expect("the page opens");
    }

    /// Evaluates an expression in the page.
    pub(crate) async fn eval(&self, expression: &str) -> Value {
        let script = json!({ "script": format!("return ({expression});"), "args": [] });
        self.command("POST", "/execute/sync", &script)
            .await
            .unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// Waits until an expression is true in the page.
    pub(crate) async fn until(&self, expression: &str) {
        let script = format!(
            "const done = arguments[0]; (function look() {{ if ({expression}) done(true); else setTimeout(look, 15); }})();"
        );
        let script = json!({ "script": script, "args": [] });
        if let Err(error) = self.command("POST", "/execute/async", &script).await {
            let page = self.eval("document.body.innerText").await;
            panic!("never true: {expression}\n{error}\n{}", page.as_str().unwrap_or_default());
        }
    }

    /// Presses keys in sequence; special keys have WebDriver's names.
    pub(crate) async fn press(&self, keys: &[&str]) {
        let steps = keys.iter().flat_map(|key| {
            let value = match *key {
                "Tab" => "\u{e004}",
                "Enter" => "\u{e007}",
                "Escape" => "\u{e00c}",
                "End" => "\u{e010}",
                "Home" => "\u{e011}",
                "Left" => "\u{e012}",
                "Up" => "\u{e013}",
                "Right" => "\u{e014}",
                "Down" => "\u{e015}",
                character => character,
            };
            [json!({ "type": "keyDown", "value": value }), json!({ "type": "keyUp", "value": value })]
        });
        let actions =
            json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": steps.collect::<Vec<_>>() }] });
        self.command("POST", "/actions", &actions).await.expect("keys are pressed");
    }

    /// Clicks the first element that matches a selector. If the page replaces the element meanwhile, clicks the new one.
    pub(crate) async fn click(&self, selector: &str) {
        let by = json!({ "using": "css selector", "value": selector });
        loop {
            let element = self.command("POST", "/element", &by).await;
            let element = element.unwrap_or_else(|error| panic!("{selector}: {error}"));
            let id = element
                .as_object()
                .and_then(|element| element.values().next()?.as_str())
                .expect("an element");
            match self.command("POST", &format!("/element/{id}/click"), &json!({})).await {
                Ok(_) => return,
                Err(error) if error.contains("stale element reference") => {}
                Err(error) => panic!("{selector}: {error}"),
            }
        }
    }

    /// Emulates a light or dark system theme.
    pub(crate) async fn prefer(&self, scheme: &str) {
        self.prefer_feature("prefers-color-scheme", scheme).await;
    }

    /// Emulates a user preference.
    pub(crate) async fn prefer_feature(&self, name: &str, value: &str) {
        let features = json!([{ "name": name, "value": value }]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features })).await;
    }

    /// Runs a script in every page before its own scripts.
    pub(crate) async fn before_load(&self, script: &str) {
        self.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": script })).await;
    }

    async fn devtools(&self, command: &str, params: &Value) {
        let command = json!({ "cmd": command, "params": params });
        self.command("POST", "/goog/cdp/execute", &command).await.expect("the browser takes it");
    }

    /// A screenshot as PNG.
    pub(crate) async fn picture(&self) -> Vec<u8> {
        let picture = self.command("GET", "/screenshot", &Value::Null).await.expect("a picture");
        base64::engine::general_purpose::STANDARD
            .decode(picture.as_str().expect("it is text"))
            .expect("it is base64")
    }

    /// New console messages, including policy violations.
    pub(crate) async fn console(&self) -> Vec<String> {
        let log = self.command("POST", "/se/log", &json!({ "type": "browser" })).await.expect("a log");
        let lines = log.as_array().expect("a list").iter();
        lines.map(|line| format!("{} {}", line["level"], line["message"])).collect()
    }

    async fn command(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        self.call(method, &format!("/session/{}{path}", self.session), body).await
    }

    async fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let socket = TcpStream::connect(self.address).await.map_err(|error| error.to_string())?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address.to_string())
            .header("content-type", "application/json")
            .header("content-length", body.len())
            .body(Full::new(bytes::Bytes::from(body)))
            .map_err(|error| error.to_string())?;
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let bytes = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        let mut answer: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        let value = answer["value"].take();
        if status.is_success() { Ok(value) } else { Err(format!("{}: {}", value["error"], value["message"])) }
    }
}

/// Starts the driver and returns its port; `None` if it exits.
fn start(folder: &Path, missing: &str) -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("chromedriver does not start ({error}): {missing}"));
    let output = driver.stdout.take().expect("it is piped");
    let port = BufReader::new(output).lines().map_while(Result::ok).find_map(|line| {
        line.strip_prefix("ChromeDriver was started successfully on port ")?
            .trim_end_matches('.')
            .parse()
            .ok()
    });
    if port.is_none() {
        let _ = driver.kill();
        let _ = driver.wait();
    }
    port.map(|port| (driver, port))
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Already stopped, unless the test was aborted.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
