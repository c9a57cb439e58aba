//! The entry point of an operator: from the command line to a manager, and from an error to an exit code.
//!
//! This is the only part of the libraries that reads arguments and the environment, prints, and sets the exit code. It
//! passes everything else as options to the runtime, which can be used without it.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use kubewright_runtime::connect::{self, ClientMetrics};
use kubewright_runtime::internal::{journal, panics};
use kubewright_runtime::webhook::CertificateMode;
use kubewright_runtime::{
    LeaderElectionOptionsError, Manager, ManagerError, ManagerOptions, ReconcileError as Error, logs,
};

use crate::flags::{self, Environment, Flags, FlagsError, Settings};
use crate::manifests;

/// An [`Operator`](crate::Operator) with the name of the current binary and the version and description of its package.
///
/// [`#[kubewright::main]`](macro@crate::main) uses it. If a package has several binaries, each is a separate operator.
///
/// ```
/// let operator = kubewright::operator!();
/// assert_eq!(operator.name(), env!("CARGO_PKG_NAME"));
/// ```
#[macro_export]
macro_rules! operator {
    () => {
        $crate::Operator::new(
            match ::core::option_env!("CARGO_BIN_NAME") {
                ::core::option::Option::Some(name) => name,
                ::core::option::Option::None => ::core::env!("CARGO_PKG_NAME"),
            },
            ::core::env!("CARGO_PKG_VERSION"),
        )
        .about(::core::env!("CARGO_PKG_DESCRIPTION"))
    };
}

/// An operator as a program, for more options than [`#[kubewright::main]`](macro@crate::main) has.
///
/// ```no_run
/// use std::process::ExitCode;
/// use kubewright::k8s_openapi::api::core::v1::Secret;
/// use kubewright::{KindOptions, Manager};
///
/// fn main() -> ExitCode {
///     kubewright::operator!()
///         .leader_election_id("guestbook.example.com")
///         .configure(|options| {
///             let ours = KindOptions::new().labels("app=guestbook");
///             options.cache = std::mem::take(&mut options.cache).kind::<Secret>(ours);
///         })
///         .run(async |manager: Manager| {
///             // Register controllers here.
///             manager.run().await
///         })
/// }
/// ```
#[must_use = "an operator does nothing before run()"]
pub struct Operator {
    name: String,
    version: String,
    about: String,
    leader_election_id: Option<String>,
    configure: Vec<Configure>,
}

/// `kubewright manifests` sets this variable to make a program print its inventory.
const MANIFESTS: &str = "KUBEWRIGHT_MANIFESTS";

/// `kubewright dev` sets this variable to make an operator impersonate its ServiceAccount, such as
/// `system:serviceaccount:shop-system:shop-controller-manager`.
const IMPERSONATE: &str = "KUBEWRIGHT_IMPERSONATE";

/// `kubewright dev` sets this variable to the address on which an operator serves webhooks, such as `127.0.0.1:9443`.
/// The certificate is in the directory of [`WEBHOOK_CERTS`].
const WEBHOOK_ADDRESS: &str = "KUBEWRIGHT_WEBHOOK_ADDRESS";
/// The directory with `tls.crt` and `tls.key` for [`WEBHOOK_ADDRESS`].
const WEBHOOK_CERTS: &str = "KUBEWRIGHT_WEBHOOK_CERTS";

/// `kubewright dev` sets this variable and keeps the operator's standard input open, so that the operator does not outlive a
/// `dev` that was killed.
const EXIT_WITH_STDIN: &str = "KUBEWRIGHT_EXIT_WITH_STDIN";

type Configure = Box<dyn FnOnce(&mut ManagerOptions)>;

impl Operator {
    /// An operator with this name. The name is used for its field manager, its events, its user agent and its leader
    /// election Lease.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            about: String::new(),
            leader_election_id: None,
            configure: Vec::new(),
        }
    }

    /// The description for `--help`.
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// The default name of the leader election Lease; the operator's name if not set.
    pub fn leader_election_id(mut self, id: impl Into<String>) -> Self {
        self.leader_election_id = Some(id.into());
        self
    }

    /// Changes the manager's options after the flags were parsed.
    pub fn configure(mut self, configure: impl FnOnce(&mut ManagerOptions) + 'static) -> Self {
        self.configure.push(Box::new(configure));
        self
    }

    /// The name of the operator, which logs and the leader election use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text of `--help`.
    pub fn help(&self) -> String {
        flags::command::<NoFlags>(&self.name, &self.version, &self.about).render_help().to_string()
    }

    /// Parses the flags and runs the operator; see [`Operator::run_with`].
    ///
    /// Invalid arguments are reported on stderr with exit code 2. `--help` and `--version` are supported. With the
    /// single argument `manifests`, it prints its inventory for `kubewright manifests`.
    pub fn run<E: Into<Error>>(self, main: impl AsyncFnOnce(Manager) -> Result<(), E>) -> ExitCode {
        self.run_with_args(async |manager, NoFlags {}| main(manager).await)
    }

    /// Like [`Operator::run`], for an operator with custom flags. They are parsed together with [`Flags`] and listed
    /// by `--help`.
    ///
    /// The type of the flags derives [`clap::Args`](crate::clap::Args). Give required values a default if the program
    /// generates manifests: `kubewright manifests` runs it without arguments.
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    /// use kubewright::{Manager, clap};
    ///
    /// #[derive(clap::Args)]
    /// struct Own {
    ///     /// Image of the web server
    ///     #[arg(long, default_value = "nginx:1")]
    ///     image: String,
    /// }
    ///
    /// fn main() -> ExitCode {
    ///     kubewright::operator!().run_with_args(async |manager: Manager, own: Own| {
    ///         kubewright::tracing::info!(own.image, "Starting");
    ///         manager.run().await
    ///     })
    /// }
    /// ```
    pub fn run_with_args<A: clap::Args, E: Into<Error>>(
        self,
        main: impl AsyncFnOnce(Manager, A) -> Result<(), E>,
    ) -> ExitCode {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        if let [_, only] = &arguments[..]
            && only == "manifests"
            && let Ok((flags, own)) = self.parse_with(&arguments[..1])
        {
            let described = self.describe(flags, async |manager| main(manager, own).await);
            return exit_code(described, ErrorFormat::Text);
        }
        match self.parse_with(arguments) {
            Ok((flags, own)) => self.run_with(flags, async |manager| main(manager, own).await),
            Err(error) => {
                // Ignore a closed stdout or stderr.
                let _ = error.print();
                ExitCode::from(error.exit_code())
            }
        }
    }

    /// Parses flags. The error is also used for help and version.
    pub fn parse<A: Into<OsString> + Clone>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Flags, FlagsError> {
        self.parse_with::<NoFlags, A>(arguments).map(|(flags, _)| flags)
    }

    fn parse_with<F: clap::Args, A: Into<OsString> + Clone>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<(Flags, F), FlagsError> {
        let mut command = flags::command::<F>(&self.name, &self.version, &self.about);
        let matches = command.try_get_matches_from_mut(arguments)?;
        let parsed = <Flags as clap::FromArgMatches>::from_arg_matches(&matches)
            .and_then(|flags| Ok((flags, F::from_arg_matches(&matches)?)));
        parsed.map_err(|error| error.format(&mut command).into())
    }

    /// Runs the operator with parsed flags, for a program with its own command line. It sets up logging and the tokio
    /// runtime, connects to the cluster, creates the manager, and calls `main` with it.
    ///
    /// An error is printed to stderr in one line, with exit code 1.
    pub fn run_with<E: Into<Error>>(
        self,
        flags: Flags,
        main: impl AsyncFnOnce(Manager) -> Result<(), E>,
    ) -> ExitCode {
        let mut format = ErrorFormat::Text;
        let ended = self.start(flags, main, &mut format);
        exit_code(ended, format)
    }

    fn start<E: Into<Error>>(
        self,
        flags: Flags,
        main: impl AsyncFnOnce(Manager) -> Result<(), E>,
        format: &mut ErrorFormat,
    ) -> Result<(), Error> {
        if std::env::var_os(MANIFESTS).is_some() {
            return self.describe(flags, main);
        }
        let id = self.leader_election_id.as_deref().unwrap_or(&self.name);
        let mut settings = flags.settle(&self.name, id, Environment::of_process())?;
        serve_webhooks_locally(&mut settings.manager)?;
        if std::env::var_os(EXIT_WITH_STDIN).is_some() {
            std::thread::spawn(exit_with_stdin);
        }
        settings.manager.journal = journal_address(std::env::var_os(journal::VARIABLE))?;
        settings.manager.journal_token = std::env::var(journal::TOKEN_VARIABLE).ok();
        if settings.logs.format == logs::Format::Auto && !std::io::stderr().is_terminal() {
            settings.logs.format = logs::Format::Json;
        }
        #[cfg(feature = "otlp")]
        let traces = kubewright_runtime::internal::traces::init(&settings.logs, &self.name)?;
        #[cfg(not(feature = "otlp"))]
        logs::init(&settings.logs)?;
        if settings.logs.format == logs::Format::Json {
            *format = ErrorFormat::Log;
        }
        panics::install();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(StartError::Threads)?;
        let ended = runtime.block_on(async {
            let manager = self.manager(settings).await?;
            main(manager).await.map_err(Into::into)
        });
        // Do not wait for blocking tasks such as DNS lookups.
        runtime.shutdown_background();
        #[cfg(feature = "otlp")]
        drop(traces);
        ended
    }

    /// Prints the inventory of the program as JSON for `kubewright manifests`. `main` runs with a manager without a
    /// cluster.
    fn describe<E: Into<Error>>(
        self,
        flags: Flags,
        main: impl AsyncFnOnce(Manager) -> Result<(), E>,
    ) -> Result<(), Error> {
        // The environment of the build machine must not affect the manifests.
        let mut options = flags.settle(&self.name, &self.name, Environment::default())?.manager;
        for configure in self.configure {
            configure(&mut options);
        }
        let (sender, manifest) = std::sync::mpsc::channel();
        let send = move |manifest| {
            // The receiver outlives the manager.
            let _ = sender.send(manifest);
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;
        runtime.block_on(async { main(Manager::describing(options, send)?).await.map_err(Into::into) })?;
        let manifest = manifest.try_recv().map_err(|_| StartError::NotRun)?;
        let mut stdout = std::io::stdout().lock();
        let printed = serde_json::to_writer(&mut stdout, &manifests::inventory(&manifest));
        printed.map_err(Into::into).and_then(|()| stdout.write_all(b"\n")).map_err(StartError::Printed)?;
        Ok(())
    }

    async fn manager(self, settings: Settings) -> Result<Manager, Error> {
        let Settings { source, mut manager, .. } = settings;
        for configure in self.configure {
            configure(&mut manager);
        }
        let mut config = connect::infer(&source).await?;
        if let Some(user) = std::env::var(IMPERSONATE).ok().filter(|user| !user.is_empty()) {
            config.auth_info.impersonate = Some(user);
        }
        tracing::info!(
            operator = self.name,
            version = self.version,
            server = %config.cluster_url,
            namespaces = namespaces(&manager),
            "Starting manager"
        );
        let options = connect::Options {
            user_agent: connect::user_agent(&self.name, &self.version),
            metrics: Some(manager.metrics.with_registry(ClientMetrics::register)),
            ..connect::Options::default()
        };
        let client = connect::client(config, options)?;
        #[cfg(feature = "debug-page")]
        let shows_page = !manager.debug_page_bind_address.is_off();
        let manager = Manager::new(client, manager).map_err(|error| match error {
            ManagerError::Election(LeaderElectionOptionsError::Namespace(source)) => {
                StartError::LeaseNamespace(source).into()
            }
            error => Error::from(error),
        })?;
        #[cfg(feature = "debug-page")]
        if shows_page {
            show_debug_page(&manager);
        }
        Ok(manager)
    }
}

/// Sets the debug page of a manager. It shows the log lines from now on.
#[cfg(feature = "debug-page")]
fn show_debug_page(manager: &Manager) {
    use kubewright_runtime::internal::debug_page;

    let page = kubewright_page::ManagerPage::new();
    let lines = page.clone();
    debug_page::copy_lines(move |line| lines.log(line));
    manager.set_debug_page(std::sync::Arc::new(page));
}

/// Converts the result into an exit code.
fn exit_code(ended: Result<(), Error>, format: ErrorFormat) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            format.report(&error);
            ExitCode::FAILURE
        }
    }
}

/// Parses the address of the journal. `None` if the variable is unset or empty.
fn journal_address(variable: Option<OsString>) -> Result<Option<SocketAddr>, StartError> {
    let Some(address) = variable.filter(|address| !address.is_empty()) else { return Ok(None) };
    let read = address.to_str().and_then(|address| address.parse().ok());
    read.map(Some).ok_or_else(|| StartError::Journal(address.to_string_lossy().into_owned()))
}

/// Under `kubewright dev`, webhooks are served on loopback with the certificate of `dev`, regardless of the flags.
fn serve_webhooks_locally(options: &mut ManagerOptions) -> Result<(), StartError> {
    let Some(address) = std::env::var(WEBHOOK_ADDRESS).ok().filter(|address| !address.is_empty()) else {
        return Ok(());
    };
    let folder = PathBuf::from(std::env::var_os(WEBHOOK_CERTS).unwrap_or_default());
    let Ok(bind_address) = address.parse() else { return Err(StartError::WebhookAddress(address)) };
    options.webhooks.bind_address = bind_address;
    options.webhooks.certificates =
        CertificateMode::Files { certificate: folder.join("tls.crt"), key: folder.join("tls.key") };
    Ok(())
}

/// Exits when standard input ends. Nothing waits for a graceful end then.
fn exit_with_stdin() {
    // A read error is handled like the end.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    std::process::exit(1);
}

/// The watched namespaces, for the log.
fn namespaces(options: &ManagerOptions) -> String {
    match options.cache.namespaces.as_slice() {
        [] => "*".to_owned(),
        some => some.join(","),
    }
}

/// Why an operator did not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("failed to start the tokio runtime")]
    Threads(#[source] std::io::Error),
    #[error("the operator's main function returned without running its manager: call manager.run().await")]
    NotRun,
    #[error(
        "{WEBHOOK_ADDRESS}: invalid address {0:?}; use one such as 127.0.0.1:9443, or unset the variable"
    )]
    WebhookAddress(String),
    #[error("failed to print the operator's inventory")]
    Printed(#[source] std::io::Error),
    #[error("--leader-elect: not running in a pod; set --leader-election-namespace")]
    LeaseNamespace(#[source] std::io::Error),
    #[error(
        "{variable}: invalid address {0:?}; use an IP address and port such as 127.0.0.1:4000, or unset the variable",
        variable = journal::VARIABLE
    )]
    Journal(String),
}

/// An operator without custom flags.
#[derive(clap::Args)]
pub(crate) struct NoFlags {}

/// How the final error is reported.
#[derive(Clone, Copy)]
enum ErrorFormat {
    Text,
    /// As a line of the JSON log.
    Log,
}

impl ErrorFormat {
    fn report(self, error: &Error) {
        let error = one_line(error);
        if matches!(self, Self::Log) && tracing::enabled!(tracing::Level::ERROR) {
            tracing::error!(error, "Failed to run operator");
        } else {
            // Ignore a closed stderr.
            let _ = writeln!(std::io::stderr().lock(), "error: {error}");
        }
    }
}

/// An error with its causes. A cause that is already part of the message is not repeated.
///
/// Control characters, for example in a server's response, are escaped, so that they cannot break the line or control
/// the terminal.
fn one_line(error: &Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if !line.ends_with(&text) {
            line.extend((!line.is_empty()).then_some(": "));
            line.push_str(&text);
        }
    }
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    line.trim_end().chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    fn error(texts: &[&'static str]) -> Layer {
        let source = texts.get(1).map(|_| Box::new(error(&texts[1..])));
        Layer { text: texts[0], source }
    }

    #[test]
    fn an_error_has_each_of_its_causes_once() {
        let line = |texts: &[&'static str]| one_line(&Error::new(error(texts)));
        assert_eq!(line(&["no manager", "no client", "no file"]), "no manager: no client: no file");
        assert_eq!(line(&["no client: no file", "no file"]), "no client: no file");
    }

    #[test]
    fn own_flags_are_parsed_with_those_of_every_operator() {
        /// Not the description of the program.
        #[derive(clap::Args)]
        struct Own {
            /// Image of the web server
            #[arg(long, default_value = "nginx")]
            image: String,
        }

        let operator = Operator::new("shop", "1").about("Sells things");
        let (flags, own) =
            operator.parse_with::<Own, _>(["shop", "--leader-elect", "--image=caddy"]).unwrap();
        assert_eq!(own.image, "caddy");
        assert!(format!("{flags:?}").contains("leader_elect: true"));
        assert_eq!(operator.parse_with::<Own, _>(["shop"]).unwrap().1.image, "nginx");
        let Err(help) = operator.parse_with::<Own, _>(["shop", "--help"]) else { panic!("no help") };
        let help = help.to_string();
        assert!(help.starts_with("Sells things\n"), "{help}");
        assert!(help.contains("--image <IMAGE>") && help.contains("--leader-elect"), "{help}");
        assert!(operator.parse(["shop", "--image=caddy"]).is_err(), "without custom flags");
    }

    #[test]
    fn the_journal_address_comes_from_the_environment() {
        let address = |text: &str| journal_address(Some(text.into()));
        assert_eq!(address("127.0.0.1:4000").unwrap(), Some(([127, 0, 0, 1], 4000).into()));
        assert_eq!((address("").unwrap(), journal_address(None).unwrap()), (None, None));
        assert_eq!(
            address("localhost").unwrap_err().to_string(),
            "KUBEWRIGHT_JOURNAL: invalid address \"localhost\"; use an IP address and port such as \
             127.0.0.1:4000, or unset the variable"
        );
    }

    #[test]
    fn an_error_is_one_line_without_control_characters() {
        assert_eq!(one_line(&Error::new(error(&["no\nhost \u{1b}[2J\n"]))), "no\\nhost \\u{1b}[2J");
    }
}
