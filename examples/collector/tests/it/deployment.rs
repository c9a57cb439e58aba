//! Counts the reconciles of a Deployment by cause, while its replicas and its strategy change.
//!
//! docs/collector.md has the expected table, and explains it.

use std::fmt::Write as _;

use anyhow::Result;

use crate::operator::Operator;

const CHAPTER: &str = include_str!("../../../../docs/collector.md");

/// The causes that are counted, as kind and trigger.
const CAUSES: [(&str, &str); 9] = [
    ("Deployment", "created"),
    ("Deployment", "modified"),
    ("ReplicaSet", "created"),
    ("ReplicaSet", "modified"),
    ("Pod", "created"),
    ("Pod", "modified"),
    ("Pod", "deleted"),
    ("ConfigMap", "created"),
    ("ConfigMap", "modified"),
];

/// The counters at one time: reconciles, adds to the queue, and the causes.
#[derive(Default, Clone)]
struct Counts([u32; 2 + CAUSES.len()]);

impl Counts {
    fn read(operator: &Operator) -> Self {
        let mut counts = Self::default();
        let labels = [("controller", "deployment"), ("result", "success")];
        counts.0[0] = operator.count("controller_runtime_reconcile_total", &labels);
        counts.0[1] = operator.count("collector_adds_total", &[]);
        for (at, (kind, trigger)) in CAUSES.iter().enumerate() {
            let labels = [("kind", *kind), ("trigger", *trigger)];
            counts.0[2 + at] = operator.count("collector_causes_total", &labels);
        }
        counts
    }
}

/// A Markdown table of the counts of each step.
struct Table<'a> {
    operator: &'a Operator,
    before: Counts,
    text: String,
}

impl<'a> Table<'a> {
    fn new(operator: &'a Operator) -> Self {
        let mut text = "| change | reconciles | adds |".to_owned();
        for (kind, trigger) in CAUSES {
            let _ = write!(text, " {kind} {trigger} |");
        }
        let _ = write!(text, "\n|---|{}", "---:|".repeat(2 + CAUSES.len()));
        Self { operator, before: Counts::read(operator), text }
    }

    /// Adds a row with the counts since the last one.
    fn row(&mut self, step: &str) {
        let now = Counts::read(self.operator);
        let _ = write!(self.text, "\n| {step} |");
        for (now, before) in now.0.iter().zip(self.before.0) {
            let _ = write!(self.text, " {} |", now - before);
        }
        self.before = now;
    }
}

#[tokio::test(start_paused = true)]
async fn every_change_triggers_a_known_number_of_reconciles() -> Result<()> {
    let operator = Operator::start().await?;
    let mut table = Table::new(&operator);
    operator.create().await?;
    table.row("create with 3 replicas");
    for (from, to) in [(3, 1), (1, 3), (3, 4), (4, 0), (0, 2)] {
        operator.scale(to).await?;
        table.row(&format!("replicas {from} to {to}"));
        operator.assert_collected(usize::try_from(to)?).await?;
    }
    for strategy in ["Recreate", "RollingUpdate"] {
        operator.set_strategy(strategy).await?;
        table.row(&format!("2 replicas: strategy to {strategy}"));
    }
    operator.scale(4).await?;
    table.row("replicas 2 to 4");
    for strategy in ["Recreate", "RollingUpdate"] {
        operator.set_strategy(strategy).await?;
        table.row(&format!("4 replicas: strategy to {strategy}"));
    }
    for (count, step) in [(1, "4 replicas: delete a Pod"), (2, "4 replicas: delete two Pods")] {
        operator.delete_pods(count).await?;
        table.row(step);
        operator.assert_collected(4).await?;
    }
    let table = table.text;
    println!("{table}");
    assert!(CHAPTER.contains(&table), "docs/collector.md has another table than this one:\n{table}");

    assert_eq!(operator.env.forbidden_permissions(), []);
    assert_eq!(operator.env.unused_permissions(), []);
    operator.stop().await
}
