//! Parses the output of `cargo test`: the number of passed tests, the failed tests, and the command that
//! reruns each of them.
//!
//! Lines are parsed one at a time while they are printed.

/// The results of one or more `cargo test` runs.
#[derive(Debug, Default)]
pub struct Report {
    passed: usize,
    failed: usize,
    ignored: usize,
    /// Each failed test with the command that runs it alone.
    pub failures: Vec<Failure>,
    /// Names of tests that failed in the current binary.
    pending: Vec<String>,
    /// The result line of the current binary. The captured output of a failed test may contain others.
    closing: Option<[usize; 3]>,
}

/// A failed test or step.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// The name of the test or step.
    pub name: String,
    /// The command to type.
    pub command: String,
}

impl Report {
    /// Reads the next line of cargo's standard output or standard error.
    pub fn line(&mut self, line: &str) {
        let line = anstream::adapter::strip_str(line.trim_end()).to_string();
        if line.starts_with("     Running ") || line.starts_with("   Doc-tests ") {
            self.finish();
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.closing = counts(result);
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.pending.push(name.trim_end_matches(" - should panic").to_owned());
        } else if let Some(target) = line.strip_prefix("error: ").and_then(rerun) {
            let mut names = std::mem::take(&mut self.pending);
            if names.is_empty() {
                // The binary crashed, or a doc test does not compile.
                self.failures.push(Failure { name: target.into(), command: format!("cargo test {target}") });
            }
            names.sort();
            self.failures.extend(names.into_iter().map(|name| {
                let command = format!("cargo test {target} -- --exact {}", quoted(&name));
                Failure { name, command }
            }));
        }
    }

    /// Adds the results of the last binary.
    pub fn finish(&mut self) {
        if let Some([passed, failed, ignored]) = self.closing.take() {
            self.passed += passed;
            self.failed += failed;
            self.ignored += ignored;
        }
    }

    /// `2400 passed, 0 failed`, or `None` if no test ran.
    pub fn closing_line(&self) -> Option<String> {
        let Self { passed, failed, ignored, .. } = self;
        let skipped = if *ignored == 0 { String::new() } else { format!(", {ignored} skipped") };
        (passed + failed + ignored > 0).then(|| format!("{passed} passed, {failed} failed{skipped}"))
    }
}

/// `-p xtask --lib` from ``test failed, to rerun pass `-p xtask --lib` ``.
fn rerun(error: &str) -> Option<&str> {
    error.split_once("to rerun pass `")?.1.split_once('`').map(|(target, _)| target)
}

/// Passed, failed and ignored from `ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished
/// in 0.00s`.
fn counts(result: &str) -> Option<[usize; 3]> {
    let (_, counts) = result.split_once(". ")?;
    let mut numbers = counts.split("; ").map(|count| count.split(' ').next()?.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

fn quoted(name: &str) -> String {
    if name.contains(' ') { format!("'{name}'") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(output: &str) -> Report {
        let mut report = Report::default();
        output.lines().for_each(|line| report.line(line));
        report.finish();
        report
    }

    const FAILED: &str = "\
     Running unittests src/lib.rs (target/debug/deps/one-1)
test a ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/it/main.rs (target/debug/deps/it-2)
test scaffold::b ... FAILED
test scaffold::a - should panic ... FAILED
test scaffold::c ... ok

failures:

---- scaffold::b stdout ----
test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

failures:
    scaffold::b

test result: FAILED. 1 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s

error: test failed, to rerun pass `-p kubewright-cli --test it`
   Doc-tests two
test crates/two/src/lib.rs - first (line 3) ... FAILED
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
error: doctest failed, to rerun pass `-p two --doc`
     Running tests/it/main.rs (target/debug/deps/it-3)
error: test failed, to rerun pass `-p three --test it`
";

    #[test]
    fn counts_are_the_sum_of_all_result_lines() {
        assert_eq!(report(FAILED).closing_line().as_deref(), Some("2 passed, 3 failed, 1 skipped"));
        assert_eq!(report("no test ran").closing_line(), None);
    }

    #[test]
    fn every_failed_test_has_a_command_that_reruns_it() {
        let commands: Vec<_> = report(FAILED).failures.into_iter().map(|failure| failure.command).collect();
        assert_eq!(
            commands,
            [
                "cargo test -p kubewright-cli --test it -- --exact scaffold::a",
                "cargo test -p kubewright-cli --test it -- --exact scaffold::b",
                "cargo test -p two --doc -- --exact 'crates/two/src/lib.rs - first (line 3)'",
                "cargo test -p three --test it",
            ]
        );
    }

    #[test]
    fn colored_output_is_parsed() {
        let report = report(
            "test a ... \u{1b}[31mFAILED\u{1b}[0m\n\
             test result: \u{1b}[31mFAILED\u{1b}[0m. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; x\n\
             \u{1b}[1m\u{1b}[91merror\u{1b}[0m: test failed, to rerun pass `--lib`\n",
        );
        assert_eq!(report.closing_line().as_deref(), Some("0 passed, 1 failed"));
        assert_eq!(report.failures[0].command, "cargo test --lib -- --exact a");
    }
}
