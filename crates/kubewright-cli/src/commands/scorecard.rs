//! `kubewright scorecard`: checks an OLM bundle without a cluster.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};

use crate::cli::examples::examples;
use crate::control_plane;
use crate::delivery::bundle;
use crate::delivery::scorecard::{self, Contents, Outcome, Server, State, Test};
use crate::error::Hint as _;
use crate::ui::{Ui, escape, style};

const EXAMPLES: &[(&str, &str)] = &[
    ("Check the bundle of the project", "kubewright scorecard"),
    ("Run one suite", "kubewright scorecard --selector suite=olm"),
    ("Print the results as JSON", "kubewright scorecard bundle --output json"),
    ("List the tests", "kubewright scorecard --list"),
];

/// Check an OLM bundle with Operator SDK's tests, without a cluster
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Bundle directory
    #[arg(value_name = "DIR", default_value = bundle::FOLDER)]
    bundle: PathBuf,

    /// Scorecard configuration [default: tests/scorecard/config.yaml in the bundle]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Run tests with these labels, such as suite=basic or test!=olm-spec-descriptors-test
    #[arg(short = 'l', long, value_name = "LABELS", value_delimiter = ',')]
    selector: Vec<String>,

    /// List the selected tests without running them
    #[arg(short = 'L', long)]
    list: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    Text,
    Json,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let bundle = Contents::read(&args.bundle)?;
    let default = bundle.folder.join("tests/scorecard/config.yaml");
    let tests = scorecard::tests(args.config.as_ref().unwrap_or(&default), args.config.is_some())?;
    let requirements = args.selector.iter().map(|it| Requirement::parse(it)).collect::<Result<Vec<_>>>()?;
    let tests: Vec<Test> =
        tests.into_iter().filter(|test| requirements.iter().all(|it| it.matches(test))).collect();
    if tests.is_empty() {
        return Err(anyhow!("no test matches")).hint("`kubewright scorecard --list` prints all tests");
    }
    if args.list {
        let mut text = String::new();
        for test in &tests {
            let labels: Vec<String> =
                test.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let _ = writeln!(text, "{} {}", test.name(), labels.join(","));
        }
        return ui.print(text.as_bytes());
    }
    let runtime = control_plane::runtime()?;
    let results: Vec<(Test, Outcome)> = runtime.block_on(async {
        let server = Server::start(&bundle).await.context("failed to start the API server")?;
        let mut results = Vec::new();
        for test in tests {
            let outcome = scorecard::run(&test, &bundle, &server).await;
            results.push((test, outcome));
        }
        anyhow::Ok(results)
    })?;
    match args.output {
        Output::Json => {
            let mut text = serde_json::to_string_pretty(&scorecard::json(&results))?;
            text.push('\n');
            ui.print(text.as_bytes())?;
        }
        Output::Text => ui.print_styled(&results.iter().map(|(_, it)| shown(it)).collect::<String>())?,
    }
    let failed = results.iter().filter(|(_, outcome)| outcome.state != State::Pass).count();
    let total = results.len();
    if failed > 0 {
        return Err(anyhow!("{failed} of {total} tests failed"));
    }
    ui.note(&format!("{total} tests passed"));
    Ok(())
}

/// A result as text.
fn shown(outcome: &Outcome) -> String {
    let (label, state) = match outcome.state {
        State::Pass => (style::HEADER, "pass"),
        State::Fail => (style::ERROR, "fail"),
        State::Error => (style::ERROR, "error"),
    };
    let mut text = format!("{label}{state}{label:#} {}\n", outcome.name);
    for error in &outcome.errors {
        let _ = writeln!(text, "  error: {}", escape(error));
    }
    for suggestion in &outcome.suggestions {
        let _ = writeln!(text, "  suggestion: {}", escape(suggestion));
    }
    text
}

/// One requirement of a label selector.
#[derive(Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    value: String,
    equal: bool,
}

impl Requirement {
    fn parse(text: &str) -> Result<Self> {
        let (key, value, equal) = if let Some((key, value)) = text.split_once("!=") {
            (key, value, false)
        } else {
            let (key, value) = text
                .split_once('=')
                .with_context(|| format!("{text} is not a label selector"))
                .hint("use KEY=VALUE or KEY!=VALUE, separated by commas")?;
            (key, value.trim_start_matches('='), true)
        };
        Ok(Self { key: key.trim().to_owned(), value: value.trim().to_owned(), equal })
    }

    fn matches(&self, test: &Test) -> bool {
        (test.labels.get(&self.key) == Some(&self.value)) == self.equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_compare_labels() {
        let mut test = Test::default();
        test.labels.insert("suite".into(), "olm".into());
        for (selector, matches) in [
            ("suite=olm", true),
            ("suite==olm", true),
            ("suite!=olm", false),
            ("suite=basic", false),
            ("x!=y", true),
        ] {
            assert_eq!(Requirement::parse(selector).unwrap().matches(&test), matches, "{selector}");
        }
        assert!(Requirement::parse("suite").is_err());
    }
}
