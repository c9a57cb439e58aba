//! One row of the table: ours, peer and target.
//!
//! Invariant: for every unit, a ratio above 1 means that ours is better.

use serde_json::{Value, json};

use crate::samples::Samples;

/// The unit of a figure, and whether more or less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanos,
    Micros,
    Millis,
    Seconds,
    /// Millions of bytes.
    Megabytes,
    PerSecond,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nanos => "ns",
            Self::Micros => "us",
            Self::Millis => "ms",
            Self::Seconds => "s",
            Self::Megabytes => "MB",
            Self::PerSecond => "1/s",
        }
    }

    /// Converts from seconds or bytes.
    fn scale(self, value: f64) -> f64 {
        match self {
            Self::Nanos => value * 1e9,
            Self::Micros => value * 1e6,
            Self::Millis => value * 1e3,
            Self::Megabytes => value / 1e6,
            Self::Seconds | Self::PerSecond => value,
        }
    }

    fn more_is_better(self) -> bool {
        self == Self::PerSecond
    }
}

/// Another implementation that did the same work in the same run, or a documented figure if the name says so.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    samples: Samples,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    ours: Samples,
    pub(crate) peer: Option<Peer>,
    /// In the row's unit.
    pub(crate) target: Option<f64>,
}

impl Row {
    /// Creates a row from samples in seconds, bytes or operations per second.
    pub(crate) fn new(name: impl Into<String>, unit: Unit, ours: Samples) -> Self {
        Self { name: name.into(), unit, ours, peer: None, target: None }
    }

    /// Adds a peer.
    pub(crate) fn beside(self, name: &'static str, samples: Samples) -> Self {
        Self { peer: Some(Peer { name, samples }), ..self }
    }

    /// Adds a target in the row's unit.
    pub(crate) fn target(self, target: f64) -> Self {
        Self { target: Some(target), ..self }
    }

    pub(crate) fn ours(&self) -> f64 {
        self.unit.scale(self.ours.median())
    }

    pub(crate) fn spread(&self) -> f64 {
        self.ours.spread()
    }

    pub(crate) fn theirs(&self) -> Option<f64> {
        self.peer.as_ref().map(|peer| self.unit.scale(peer.samples.median()))
    }

    pub(crate) fn their_spread(&self) -> Option<f64> {
        self.peer.as_ref().map(|peer| peer.samples.spread())
    }

    /// The ratio of ours to the peer. Above 1 means that ours is better.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let theirs = self.theirs()?;
        Some(if self.unit.more_is_better() { self.ours() / theirs } else { theirs / self.ours() })
    }

    pub(crate) fn met(&self) -> Option<bool> {
        let target = self.target?;
        Some(if self.unit.more_is_better() { self.ours() >= target } else { self.ours() <= target })
    }
}

/// The rows of one suite.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) suite: &'static str,
    pub(crate) rows: Vec<Row>,
}

impl Results {
    /// The rows as written by `--json`. The keys are a stable format.
    pub(crate) fn to_json(&self) -> impl Iterator<Item = Value> {
        self.rows.iter().map(|row| {
            json!({
                "suite": self.suite,
                "row": row.name,
                "unit": row.unit.name(),
                "ours": row.ours(),
                "peer": row.theirs(),
                "peer_name": row.peer.as_ref().map(|peer| peer.name),
                "ratio": row.ratio(),
                "target": row.target,
                "met": row.met(),
                "spread": row.spread(),
                "peer_spread": row.their_spread(),
            })
        })
    }
}

/// Rows whose samples are added one at a time.
#[derive(Debug, Default)]
pub(crate) struct Rows(Vec<Row>);

impl Rows {
    /// Adds a sample to the row with this name, creating the row if needed.
    pub(crate) fn sample(&mut self, name: &str, unit: Unit, value: f64) -> &mut Row {
        let at = self.0.iter().position(|row| row.name == name).unwrap_or_else(|| {
            self.0.push(Row::new(name, unit, Samples::default()));
            self.0.len() - 1
        });
        let row = &mut self.0[at];
        row.ours.push(value);
        row
    }

    /// Adds one of our samples and one of the peer's to the row with this name.
    pub(crate) fn sample_beside(
        &mut self,
        name: &str,
        unit: Unit,
        ours: f64,
        (peer_name, theirs): (&'static str, f64),
    ) -> &mut Row {
        let row = self.sample(name, unit, ours);
        let peer = row.peer.get_or_insert_with(|| Peer { name: peer_name, samples: Samples::default() });
        peer.samples.push(theirs);
        row
    }

    pub(crate) fn into_vec(self) -> Vec<Row> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(value: f64) -> Samples {
        [value].into_iter().collect()
    }

    fn rounded(value: Option<f64>) -> Option<f64> {
        value.map(|value| (value * 100.0).round() / 100.0)
    }

    #[test]
    fn less_time_than_the_peer_is_a_ratio_above_one() {
        let row =
            Row::new("start", Unit::Millis, samples(0.010)).beside("other", samples(0.030)).target(10.0);
        assert_eq!((rounded(row.ratio()), row.met()), (Some(3.0), Some(true)));
    }

    #[test]
    fn more_per_second_than_the_peer_is_a_ratio_above_one() {
        let row =
            Row::new("gets", Unit::PerSecond, samples(900.0)).beside("other", samples(300.0)).target(1_000.0);
        assert_eq!((rounded(row.ratio()), row.met()), (Some(3.0), Some(false)));
    }

    #[test]
    fn the_json_keys_of_a_row_are_stable() {
        let rows = vec![Row::new("idle", Unit::Megabytes, samples(1.5e7))];
        let row = Results { suite: "server", rows }.to_json().next().unwrap();
        insta::assert_snapshot!(row, @r#"{"met":null,"ours":15.0,"peer":null,"peer_name":null,"peer_spread":null,"ratio":null,"row":"idle","spread":0.0,"suite":"server","target":null,"unit":"MB"}"#);
    }

    #[test]
    fn sample_beside_adds_a_sample_of_the_peer() {
        let mut rows = Rows::default();
        for value in [1.0, 2.0, 3.0] {
            rows.sample_beside("gets", Unit::PerSecond, value, ("other", value / 2.0));
        }
        let rows = rows.into_vec();
        assert_eq!((rows.len(), rounded(rows[0].ratio())), (1, Some(2.0)));
    }

    #[test]
    fn samples_with_the_same_name_form_one_row() {
        let mut rows = Rows::default();
        for value in [1.0, 2.0, 3.0] {
            rows.sample("gets", Unit::PerSecond, value);
            rows.sample("creates", Unit::PerSecond, value).target = Some(5.0);
        }
        let rows = rows.into_vec();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[1].name.as_str(), rounded(Some(rows[1].ours())), rows[1].met()),
            ("creates", Some(2.0), Some(false))
        );
    }
}
