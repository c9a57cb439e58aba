//! Exec plugins: programs that return credentials, such as those of cloud providers.
//!
//! Runs plugins by client-go's rules (`client.authentication.k8s.io`, v1 and v1beta1) and caches their credentials.
//! Invariant: a client runs at most one plugin at a time, even if the request that needs it is dropped, and each run
//! has a timeout. Credentials are used until shortly before they expire, or until the API server rejects them.

use std::io::{IsTerminal as _, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use base64::Engine as _;
use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use kube::config::{ExecConfig, ExecInteractiveMode};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::super::tls::Identity;
use super::super::yaml;
use super::{AuthError, header};
use crate::Clock;

/// How long before their expiry credentials are renewed.
const EARLY: SignedDuration = SignedDuration::from_secs(60);
/// The timeout of a plugin that does not interact with a user.
const WITHIN: Duration = Duration::from_mins(1);

/// An exec plugin returned no credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// The command is missing.
    #[error("the kubeconfig's user has exec without a command; set the command of the plugin")]
    NoCommand,
    /// The API version is not supported.
    #[error(
        "the exec plugin {command} has apiVersion {version:?}; use client.authentication.k8s.io/v1, or \
         client.authentication.k8s.io/v1beta1 if it does not support v1"
    )]
    Version {
        /// The command.
        command: String,
        /// The version.
        version: String,
    },
    /// The plugin requires a terminal.
    #[error(
        "the exec plugin {0} has interactiveMode: Always, but stdin is not a terminal; use credentials that do not \
         need a user"
    )]
    Alone(String),
    /// The program could not be started.
    #[error("failed to run the exec plugin {command}{hint}")]
    Start {
        /// The command.
        command: String,
        /// The install hint of the kubeconfig, if any.
        hint: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The program failed.
    #[error("the exec plugin {command} failed, {status}{said}")]
    Failed {
        /// The command.
        command: String,
        /// The exit status.
        status: std::process::ExitStatus,
        /// The end of its error output, unless it went to the terminal.
        said: String,
    },
    /// The program exceeded the timeout and was killed.
    #[error("the exec plugin {command} returned no credentials within {after:?} and was killed")]
    Timeout {
        /// The command.
        command: String,
        /// The timeout.
        after: Duration,
    },
    /// The output is invalid.
    #[error("the exec plugin {command} returned invalid credentials: {what}")]
    Answer {
        /// The command.
        command: String,
        /// What is wrong.
        what: String,
    },
    /// The runtime shut down while the plugin ran.
    #[error("the runtime shut down while the exec plugin {0} ran")]
    Ended(String),
}

/// A plugin and its last credentials.
pub(in crate::connect) struct Plugin {
    exec: ExecConfig,
    identity: Arc<Identity>,
    clock: Arc<dyn Clock>,
    given: Mutex<Given>,
    within: Duration,
    /// Allows one run at a time.
    turn: Arc<Semaphore>,
}

/// The credentials that a plugin returned.
#[derive(Debug)]
struct Given {
    header: Option<HeaderValue>,
    /// Certificate and key, as PEM.
    pair: Option<(String, String)>,
    until: Option<Timestamp>,
    refused: bool,
}

impl Plugin {
    /// Runs the plugin for the first time and waits for it.
    pub(super) fn start(
        exec: ExecConfig,
        identity: Arc<Identity>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AuthError> {
        let given = run(&exec, WITHIN)?;
        show(&given, None, &identity)?;
        let turn = Arc::new(Semaphore::new(1));
        Ok(Self { exec, identity, clock, given: Mutex::new(given), within: WITHIN, turn })
    }

    /// The same plugin with another timeout.
    #[cfg(test)]
    pub(super) fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// The header to send. `None` if the plugin returned only a certificate.
    pub(super) async fn header(self: &Arc<Self>) -> Result<Option<HeaderValue>, AuthError> {
        if let (header, true) = self.last(EARLY) {
            return Ok(header);
        }
        let turn = self.turn.clone().acquire_owned().await;
        // Another request may have renewed them.
        if let (header, true) = self.last(EARLY) {
            return Ok(header);
        }
        let plugin = self.clone();
        // The run holds the permit, not the request: the program keeps running if the request is dropped.
        let ran = tokio::task::spawn_blocking(move || {
            let renewed = plugin.renew();
            drop(turn);
            renewed
        });
        ran.await.unwrap_or_else(|_| Err(PluginError::Ended(command_of(&self.exec)).into()))
    }

    /// Runs the plugin and stores its credentials. Blocks the thread.
    fn renew(&self) -> Result<Option<HeaderValue>, AuthError> {
        match run(&self.exec, self.within) {
            Ok(given) => {
                let mut last = self.given();
                show(&given, last.pair.as_ref(), &self.identity)?;
                *last = given;
                Ok(last.header.clone())
            }
            Err(error) => match self.last(SignedDuration::ZERO) {
                (header, true) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "Failed to refresh exec credentials; using cached ones");
                    Ok(header)
                }
                (_, false) => Err(error),
            },
        }
    }

    /// Marks these credentials as rejected by the server, so that the next request renews them.
    pub(super) fn was_refused(&self, header: Option<&HeaderValue>) {
        let mut given = self.given();
        if given.header.as_ref() == header {
            given.refused = true;
        }
    }

    /// The last header, and whether it stays valid for this long.
    fn last(&self, long: SignedDuration) -> (Option<HeaderValue>, bool) {
        let given = self.given();
        let good = !given.refused && given.until.is_none_or(|until| self.clock.now() + long < until);
        (given.header.clone(), good)
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Uses a new certificate in handshakes.
fn show(given: &Given, last: Option<&(String, String)>, identity: &Identity) -> Result<(), AuthError> {
    match &given.pair {
        Some(pair) if Some(pair) != last => Ok(identity.show(pair.0.as_bytes(), pair.1.as_bytes())?),
        _ => Ok(()),
    }
}

fn command_of(exec: &ExecConfig) -> String {
    exec.command.clone().unwrap_or_default()
}

/// Runs a plugin and waits for it. Blocks the thread.
fn run(exec: &ExecConfig, within: Duration) -> Result<Given, AuthError> {
    let command = exec.command.clone().ok_or(PluginError::NoCommand)?;
    let version = exec.api_version.clone().unwrap_or_default();
    if !matches!(&*version, "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1") {
        return Err(PluginError::Version { command, version }.into());
    }
    let terminal = std::io::stdin().is_terminal();
    let interactive = match exec.interactive_mode {
        Some(ExecInteractiveMode::Never) => false,
        Some(ExecInteractiveMode::IfAvailable) | None => terminal,
        Some(ExecInteractiveMode::Always) if terminal => true,
        Some(ExecInteractiveMode::Always) => return Err(PluginError::Alone(command).into()),
    };
    let mut process = Command::new(&command);
    process.args(exec.args.iter().flatten());
    for variable in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            process.env(name, value);
        }
    }
    process.env("KUBERNETES_EXEC_INFO", info(exec, &version, interactive).to_string());
    for name in exec.drop_env.iter().flatten() {
        process.env_remove(name);
    }
    let (stdin, stderr) =
        if interactive { (Stdio::inherit(), Stdio::inherit()) } else { (Stdio::null(), Stdio::piped()) };
    if !interactive {
        lead_group(&mut process);
    }
    let mut child = process.stdin(stdin).stdout(Stdio::piped()).stderr(stderr).spawn().map_err(|source| {
        PluginError::Start {
            hint: exec.install_hint.as_ref().map(|hint| format!(": {}", hint.trim())).unwrap_or_default(),
            command: command.clone(),
            source,
        }
    })?;
    // No timeout while a user interacts with the plugin.
    let deadline = (!interactive).then(|| Instant::now() + within);
    let (printed, said) = (reading(child.stdout.take()), reading(child.stderr.take()));
    let ended = received(&printed, deadline).and_then(|printed| {
        let said = received(&said, deadline)?;
        Some((ended(&mut child, deadline)?, printed, said))
    });
    let Some((status, printed, said)) = ended else {
        kill_group(&mut child);
        let _ = child.wait();
        return Err(PluginError::Timeout { command, after: within }.into());
    };
    if !status.success() {
        let said = String::from_utf8_lossy(&said);
        let said = said.lines().map(str::trim).rfind(|line| !line.is_empty());
        let said = said.map(|line| format!(": {line}")).unwrap_or_default();
        return Err(PluginError::Failed { command, status, said }.into());
    }
    answer(&printed, &version).map_err(|what| PluginError::Answer { command, what }.into())
}

/// Makes the program the leader of a process group, so that its child processes can be killed with it: a shell script
/// that is killed alone leaves them running. A plugin that interacts with a user stays in the foreground group of the
/// terminal.
fn lead_group(process: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(process, 0);
}

/// Kills the program and its child processes. The program has not been waited for, so its process ID is not reused.
fn kill_group(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        // Fails if all processes of the group have just exited.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    // Fails if the program has just exited.
    let _ = child.kill();
}

/// Reads a pipe to its end, on a thread that ends with the pipe.
fn reading(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // After an error, use what was read before.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = send.send(bytes);
    });
    receive
}

/// The output of a pipe, or `None` at the deadline: a child process of the plugin may keep the pipe open.
fn received(pipe: &mpsc::Receiver<Vec<u8>>, deadline: Option<Instant>) -> Option<Vec<u8>> {
    match deadline {
        None => pipe.recv().ok(),
        Some(deadline) => pipe.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok(),
    }
}

/// Waits for a program to exit, or returns `None` at the deadline. The program has closed its output, so it exits soon
/// unless it hangs. std has no wait with a timeout, hence the loop.
fn ended(child: &mut Child, deadline: Option<Instant>) -> Option<ExitStatus> {
    let Some(deadline) = deadline else { return child.wait().ok() };
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().ok()? {
            return Some(status);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// The `KUBERNETES_EXEC_INFO` of a plugin.
fn info(exec: &ExecConfig, version: &str, interactive: bool) -> Value {
    let mut spec = json!({ "interactive": interactive });
    if exec.provide_cluster_info
        && let Some(cluster) = &exec.cluster
    {
        let authority = cluster.certificate_authority_data.as_ref();
        let fields = [
            ("server", cluster.server.clone().map(Value::from)),
            ("tls-server-name", cluster.tls_server_name.clone().map(Value::from)),
            ("insecure-skip-tls-verify", cluster.insecure_skip_tls_verify.map(Value::from)),
            (
                "certificate-authority-data",
                authority.map(|pem| base64::engine::general_purpose::STANDARD.encode(pem).into()),
            ),
            ("proxy-url", cluster.proxy_url.clone().map(Value::from)),
            ("config", cluster.config.clone()),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        spec["cluster"] = Value::Object(fields.collect());
    }
    json!({ "apiVersion": version, "kind": "ExecCredential", "spec": spec })
}

/// Parses the output of a plugin: JSON, or YAML, which client-go accepts as well.
fn answer(printed: &[u8], version: &str) -> Result<Given, String> {
    let value = match serde_json::from_slice::<Value>(printed) {
        Ok(value) => value,
        Err(error) => {
            let text = String::from_utf8_lossy(printed);
            let read = yaml::documents(&text).ok().and_then(|mut documents| documents.pop());
            let value = read.map(|node| node.to_json()).filter(Value::is_object);
            value.ok_or_else(|| format!("its output is neither JSON nor YAML: {error}"))?
        }
    };
    let text = |at: &Value, key: &str| {
        at[key].as_str().filter(|text| !text.trim().is_empty()).map(|text| text.trim().to_owned())
    };
    match text(&value, "apiVersion") {
        Some(given) if given != version => {
            return Err(format!("it returned apiVersion {given}, but the kubeconfig expects {version}"));
        }
        _ => {}
    }
    let status = &value["status"];
    if !status.is_object() {
        return Err("its output has no status".to_owned());
    }
    let until = text(status, "expirationTimestamp")
        .map(|until| until.parse::<Timestamp>())
        .transpose()
        .map_err(|error| format!("its expirationTimestamp is invalid: {error}"))?;
    let pair = match (text(status, "clientCertificateData"), text(status, "clientKeyData")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err("it returned a certificate without a key, or a key without a certificate".to_owned()),
    };
    let token = text(status, "token");
    if token.is_none() && pair.is_none() {
        return Err("it returned neither a token nor a certificate".to_owned());
    }
    let header = token
        .map(|token| header("Bearer", &token, "its token"))
        .transpose()
        .map_err(|error| error.to_string())?;
    Ok(Given { header, pair, until, refused: false })
}
