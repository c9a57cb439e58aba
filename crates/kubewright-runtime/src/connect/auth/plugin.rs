//! Exec plugins: programs that give credentials, such as a cloud's.
//!
//! Owns the running of one, by client-go's rules (`client.authentication.k8s.io`, v1 and v1beta1), and what it gave.
//! The invariant: at most one runs at a time for a client, also if the request that needs it is dropped, and it ends in
//! time. What it gave is used until shortly before it expires, or until the API server refuses it.

use std::io::{IsTerminal as _, Read};
use std::process::{Command, ExitStatus, Stdio};
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

/// How long before they expire new credentials are asked for.
const EARLY: SignedDuration = SignedDuration::from_secs(60);
/// How long a plugin may take, unless it talks with a user at a terminal.
const WITHIN: Duration = Duration::from_mins(1);

/// An exec plugin gave no credentials.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// There is nothing to run.
    #[error("the kubeconfig's user has exec without a command; write the plugin's")]
    NoCommand,
    /// The version is none that is spoken.
    #[error(
        "the exec plugin {command} is to speak {version:?}; write apiVersion: client.authentication.k8s.io/v1, or \
         /v1beta1 if it knows no other"
    )]
    Version {
        /// The command.
        command: String,
        /// The version.
        version: String,
    },
    /// It wants to talk with somebody.
    #[error(
        "the exec plugin {0} has interactiveMode: Always, and nobody is at the terminal; use credentials that a program \
         can get alone"
    )]
    Alone(String),
    /// The program could not be started.
    #[error("the exec plugin {command} cannot be run{hint}")]
    Start {
        /// The command.
        command: String,
        /// How to install it, if the kubeconfig says that.
        hint: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The program failed.
    #[error("the exec plugin {command} failed, {status}{said}")]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The end of what it wrote, as far as that was not to the terminal.
        said: String,
    },
    /// The program took too long, and was killed.
    #[error("the exec plugin {command} gave no credentials within {after:?}, and was killed")]
    Timeout {
        /// The command.
        command: String,
        /// The limit.
        after: Duration,
    },
    /// What it printed is not what a plugin prints.
    #[error("the exec plugin {command} gave no credentials that can be used: {what}")]
    Answer {
        /// The command.
        command: String,
        /// What is wrong.
        what: String,
    },
    /// The runtime ended while it ran.
    #[error("the exec plugin {0} was not waited for")]
    Ended(String),
}

/// A plugin, and what it gave last.
pub(in crate::connect) struct Plugin {
    exec: ExecConfig,
    identity: Arc<Identity>,
    clock: Arc<dyn Clock>,
    given: Mutex<Given>,
    within: Duration,
    /// One may run.
    turn: Arc<Semaphore>,
}

/// What a plugin gave.
#[derive(Debug)]
struct Given {
    header: Option<HeaderValue>,
    /// Certificate and key, as PEM.
    pair: Option<(String, String)>,
    until: Option<Timestamp>,
    refused: bool,
}

impl Plugin {
    /// Runs it for the first time, and waits for that.
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

    /// The same plugin with another limit.
    #[cfg(test)]
    pub(super) fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// The header to send, which may be none: a certificate may be all that there is.
    pub(super) async fn header(self: &Arc<Self>) -> Result<Option<HeaderValue>, AuthError> {
        if let (header, true) = self.last(EARLY) {
            return Ok(header);
        }
        let turn = self.turn.clone().acquire_owned().await;
        // Another request may have renewed them meanwhile.
        if let (header, true) = self.last(EARLY) {
            return Ok(header);
        }
        let plugin = self.clone();
        // The run has the turn, not the request: a program goes on when the request is dropped.
        let ran = tokio::task::spawn_blocking(move || {
            let renewed = plugin.renew();
            drop(turn);
            renewed
        });
        ran.await.unwrap_or_else(|_| Err(PluginError::Ended(command_of(&self.exec)).into()))
    }

    /// Runs the plugin, and keeps what it gives: for threads that may block.
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
                    tracing::warn!(error, "cannot renew credentials; the old ones have not expired yet");
                    Ok(header)
                }
                (_, false) => Err(error),
            },
        }
    }

    /// The server does not take these credentials: the next request asks for others.
    pub(super) fn was_refused(&self, header: Option<&HeaderValue>) {
        let mut given = self.given();
        if given.header.as_ref() == header {
            given.refused = true;
        }
    }

    /// The last header, and whether it is good for so long.
    fn last(&self, long: SignedDuration) -> (Option<HeaderValue>, bool) {
        let given = self.given();
        let good = !given.refused && given.until.is_none_or(|until| self.clock.now() + long < until);
        (given.header.clone(), good)
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows a certificate that is new.
fn show(given: &Given, last: Option<&(String, String)>, identity: &Identity) -> Result<(), AuthError> {
    match &given.pair {
        Some(pair) if Some(pair) != last => Ok(identity.show(pair.0.as_bytes(), pair.1.as_bytes())?),
        _ => Ok(()),
    }
}

fn command_of(exec: &ExecConfig) -> String {
    exec.command.clone().unwrap_or_default()
}

/// Runs a plugin and waits for it: for threads that may block.
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
    let mut child = process.stdin(stdin).stdout(Stdio::piped()).stderr(stderr).spawn().map_err(|source| {
        PluginError::Start {
            hint: exec.install_hint.as_ref().map(|hint| format!(": {}", hint.trim())).unwrap_or_default(),
            command: command.clone(),
            source,
        }
    })?;
    // A user at a terminal has all the time.
    let deadline = (!interactive).then(|| Instant::now() + within);
    let (printed, said) = (reading(child.stdout.take()), reading(child.stderr.take()));
    let ended = received(&printed, deadline).and_then(|printed| {
        let said = received(&said, deadline)?;
        Some((ended(&mut child, deadline)?, printed, said))
    });
    let Some((status, printed, said)) = ended else {
        // Fails if the program has just ended, which is fine.
        let _ = child.kill();
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

/// Reads a pipe to its end, on a thread that ends with the pipe.
fn reading(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is all that there is.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = send.send(bytes);
    });
    receive
}

/// What a pipe delivered, or none at the deadline: a process that the plugin left behind may keep the pipe open.
fn received(pipe: &mpsc::Receiver<Vec<u8>>, deadline: Option<Instant>) -> Option<Vec<u8>> {
    match deadline {
        None => pipe.recv().ok(),
        Some(deadline) => pipe.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok(),
    }
}

/// Waits for the end of a program, or returns `None` at the deadline. The program has closed its output, so it ends at once
/// unless it hangs. std has no wait with a deadline, hence the loop.
fn ended(child: &mut std::process::Child, deadline: Option<Instant>) -> Option<ExitStatus> {
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

/// What a plugin is told of the cluster and of us.
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

/// Reads what a plugin printed: JSON, or YAML, which client-go takes as well.
fn answer(printed: &[u8], version: &str) -> Result<Given, String> {
    let value = match serde_json::from_slice::<Value>(printed) {
        Ok(value) => value,
        Err(error) => {
            let text = String::from_utf8_lossy(printed);
            let read = yaml::documents(&text).ok().and_then(|mut documents| documents.pop());
            let value = read.map(|node| node.to_json()).filter(Value::is_object);
            value.ok_or_else(|| format!("it printed neither JSON nor YAML, {error}"))?
        }
    };
    let text = |at: &Value, key: &str| {
        at[key].as_str().filter(|text| !text.trim().is_empty()).map(|text| text.trim().to_owned())
    };
    match text(&value, "apiVersion") {
        Some(given) if given != version => {
            return Err(format!("it speaks {given}, and the kubeconfig says {version}"));
        }
        _ => {}
    }
    let status = &value["status"];
    if !status.is_object() {
        return Err("it printed no status".to_owned());
    }
    let until = text(status, "expirationTimestamp")
        .map(|until| until.parse::<Timestamp>())
        .transpose()
        .map_err(|error| format!("its expirationTimestamp is no time, {error}"))?;
    let pair = match (text(status, "clientCertificateData"), text(status, "clientKeyData")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err("it printed a certificate without a key, or a key without a certificate".to_owned()),
    };
    let token = text(status, "token");
    if token.is_none() && pair.is_none() {
        return Err("it printed neither a token nor a certificate with its key".to_owned());
    }
    let header = token
        .map(|token| header("Bearer", &token, "its token"))
        .transpose()
        .map_err(|error| error.to_string())?;
    Ok(Given { header, pair, until, refused: false })
}
