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

/// The changes of the notes, and the events that they count with two and with four containers; `-` was not counted.
const NOTES: [(&str, &str, &str); 7] = [
    ("delete a Pod", "2", "2"),
    ("delete two Pods", "2", "2"),
    ("replicas 3 to 1", "5", "4"),
    ("replicas 1 to 3", "5", "4"),
    ("replicas 3 to 4", "4", "-"),
    ("replicas 4 to 0", "5", "4"),
    ("2 replicas: strategy to Recreate", "2", "2"),
];

/// The events of the Deployment and the reconciles of each change of [`NOTES`].
async fn with_containers(containers: usize) -> Result<Vec<(u32, u32)>> {
    let operator = Operator::start().await?;
    operator.create_with(containers).await?;
    let modified = |counts: &Counts| (counts.0[3], counts.0[0]);
    let mut found = Vec::new();
    for (change, ..) in NOTES {
        if change.starts_with('2') {
            operator.scale(2).await?;
        }
        let before = modified(&Counts::read(&operator));
        match change {
            "delete a Pod" => operator.delete_pods(1).await?,
            "delete two Pods" => operator.delete_pods(2).await?,
            "2 replicas: strategy to Recreate" => operator.set_strategy("Recreate").await?,
            scale => operator.scale(scale.rsplit(' ').next().unwrap_or_default().parse()?).await?,
        }
        let after = modified(&Counts::read(&operator));
        found.push((after.0 - before.0, after.1 - before.1));
    }
    operator.stop().await?;
    Ok(found)
}

#[tokio::test(start_paused = true)]
async fn the_number_of_containers_hardly_changes_the_counts() -> Result<()> {
    let counts = [with_containers(2).await?, with_containers(4).await?];
    for ((two, four), (change, ..)) in counts[0].iter().zip(&counts[1]).zip(NOTES) {
        // Larger objects arrive a little later, so other events are merged. The notes differ by one event, too.
        let is_close = two.0.abs_diff(four.0) <= 1 && two.1.abs_diff(four.1) <= 2;
        assert!(is_close, "{change}: {two:?} and {four:?}");
    }
    let mut table = "| change | Deployment modified | reconciles | notes, 2 containers | notes, 4 containers |\n|---|---:|---:|---:|---:|"
        .to_owned();
    for ((change, two, four), (modified, reconciles)) in NOTES.iter().zip(&counts[0]) {
        let _ = write!(table, "\n| {change} | {modified} | {reconciles} | {two} | {four} |");
    }
    println!("{table}");
    assert!(CHAPTER.contains(&table), "docs/collector.md has another table than this one:\n{table}");
    Ok(())
}
