//! One row of the table: ours, the peer, the target, and how they compare.
//!
//! Invariant: a ratio above 1 is better for us, and a target is met on the better side of it, whatever the unit.

use serde_json::{Value, json};

use crate::samples::Samples;

/// What a figure is in, and which way is better.
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

    /// From seconds or bytes.
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

/// Someone else who did the same work in the same run.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    samples: Samples,
}

/// One row.
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
    /// A row of `samples` in seconds, bytes or pieces per second.
    pub(crate) fn new(name: impl Into<String>, unit: Unit, ours: Samples) -> Self {
        Self { name: name.into(), unit, ours, peer: None, target: None }
    }

    /// Beside a peer.
    pub(crate) fn beside(self, name: &'static str, samples: Samples) -> Self {
        Self { peer: Some(Peer { name, samples }), ..self }
    }

    /// With a figure to reach, in the row's unit.
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

    /// Above 1 is better for us.
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
    /// The rows as `--json` writes them. The keys are a contract.
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

/// Rows whose samples come one by one, in turn with those of other rows.
#[derive(Debug, Default)]
pub(crate) struct Rows(Vec<Row>);

impl Rows {
    /// One more figure for the row with this name, which begins with the first one.
    pub(crate) fn sample(&mut self, name: &str, unit: Unit, value: f64) -> &mut Row {
        let at = self.0.iter().position(|row| row.name == name).unwrap_or_else(|| {
            self.0.push(Row::new(name, unit, Samples::default()));
            self.0.len() - 1
        });
        let row = &mut self.0[at];
        row.ours.push(value);
        row
    }

    /// One more figure of ours and one of the peer, for the row with this name.
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
    fn the_keys_of_a_row_as_json_are_those_of_the_contract() {
        let rows = vec![Row::new("idle", Unit::Megabytes, samples(1.5e7))];
        let row = Results { suite: "server", rows }.to_json().next().unwrap();
        insta::assert_snapshot!(row, @r#"{"met":null,"ours":15.0,"peer":null,"peer_name":null,"peer_spread":null,"ratio":null,"row":"idle","spread":0.0,"suite":"server","target":null,"unit":"MB"}"#);
    }

    #[test]
    fn a_peer_is_sampled_with_us() {
        let mut rows = Rows::default();
        for value in [1.0, 2.0, 3.0] {
            rows.sample_beside("gets", Unit::PerSecond, value, ("other", value / 2.0));
        }
        let rows = rows.into_vec();
        assert_eq!((rows.len(), rounded(rows[0].ratio())), (1, Some(2.0)));
    }

    #[test]
    fn samples_of_one_name_become_one_row() {
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
