//! Metrics snapshots.

use kubewright_runtime::Manager;

/// A snapshot of a manager's metrics.
///
/// ```
/// use kubewright_envtest::{Environment, Metrics};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let env = Environment::start().await?;
/// let manager = env.manager("counting")?;
/// let metrics = Metrics::of(&manager);
/// assert_eq!(metrics.value("controller_runtime_reconcile_total", &[("controller", "unknown")]), None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Metrics(String);

impl Metrics {
    /// Takes a snapshot of a manager's metrics.
    pub fn of(manager: &Manager) -> Self {
        Self::read(manager.metrics())
    }

    pub(crate) fn read(metrics: &kubewright_runtime::metrics::Metrics) -> Self {
        Self(metrics.page(None).1)
    }

    /// The metrics in Prometheus' text format.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The value of a metric: the sum of all samples with these labels, regardless of other labels. `None` if there is
    /// no such sample.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let samples = self.0.lines().filter_map(Sample::read);
        let mut fitting = samples.filter(|sample| sample.name == name && sample.has(labels)).peekable();
        fitting.peek()?;
        Some(fitting.map(|sample| sample.value).sum())
    }
}

/// One sample line.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

impl<'a> Sample<'a> {
    fn read(line: &'a str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let name = &line[..line.find(['{', ' '])?];
        let mut rest = &line[name.len()..];
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            while let Some((label, after)) = rest.split_once("=\"") {
                let (value, after) = unquoted(after)?;
                labels.push((label, value));
                rest = after;
                let Some(more) = rest.strip_prefix(',') else { break };
                rest = more;
            }
            rest = rest.strip_prefix('}')?;
        }
        // A timestamp may follow.
        let value = rest.split_whitespace().next()?.parse().ok()?;
        Some(Self { name, labels, value })
    }

    fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels.iter().all(|(name, value)| self.labels.iter().any(|(own, it)| own == name && it == value))
    }
}

/// A label value up to its closing quote, and the rest.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_selected_by_name_and_labels_and_summed() {
        let metrics = Metrics(
            "# TYPE hits_total counter\nhits_total{path=\"a\",code=\"200\"} 3\nhits_total{path=\"a\",code=\"500\"} 1\n\
             hits_total{path=\"b \\\"}\\\\,c=\\\"\",code=\"200\"} 7\nup 1\nempty{} 2 1700000000\nhits_total_x 9\n"
                .to_owned(),
        );
        for (name, labels, value) in [
            ("hits_total", &[][..], Some(11.0)),
            ("hits_total", &[("path", "a")], Some(4.0)),
            ("hits_total", &[("code", "200"), ("path", "a")], Some(3.0)),
            ("hits_total", &[("path", "b \"}\\,c=\"")], Some(7.0)),
            ("hits_total", &[("path", "c")], None),
            ("up", &[], Some(1.0)),
            ("empty", &[], Some(2.0)),
            ("hits", &[], None),
        ] {
            assert_eq!(metrics.value(name, labels), value, "{name} {labels:?}");
        }
    }
}
