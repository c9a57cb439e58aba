//! The reviews of the operator's webhooks, from its journal.
//!
//! Pure: records in, board entries out. The newest [`Limits::reviews`] are kept.

use std::collections::VecDeque;

use serde::Serialize;

use super::Limits;
use super::board::{Board, Topic};
use super::records::{Admission, Conversion};

#[derive(Default)]
pub struct Reviews {
    limits: Limits,
    last: u64,
    kept: VecDeque<String>,
}

/// A review on the page.
#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    /// Orders reviews that ended at the same time.
    number: u64,
    #[serde(flatten)]
    review: &'a Review,
}

/// A review.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Review {
    Admission(Admission),
    Conversion(Conversion),
}

impl Reviews {
    /// Empty, with limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Publishes a review.
    pub fn add(&mut self, review: &Review, board: &mut Board) {
        self.last += 1;
        let id = self.last.to_string();
        board.put(Topic::Review, &id, &Entry { id: &id, number: self.last, review });
        self.kept.push_back(id);
        if self.kept.len() > self.limits.reviews
            && let Some(oldest) = self.kept.pop_front()
        {
            board.remove(Topic::Review, &oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::records::Record;
    use serde_json::{Value, json};

    fn entries(board: &Board) -> Vec<Value> {
        let batch = board.after(0, usize::MAX).expect("there is something");
        let batch: Value = serde_json::from_str(&batch.text).expect("it is JSON");
        let put = batch["put"].as_array().expect("a list");
        put.iter().filter(|put| put[0] == "review").map(|put| put[1].clone()).collect()
    }

    fn review(line: Value) -> Review {
        match serde_json::from_value(line).expect("a record") {
            Record::Admission(admission) => Review::Admission(*admission),
            Record::Conversion(conversion) => Review::Conversion(conversion),
            other => panic!("not a review: {other:?}"),
        }
    }

    #[test]
    fn reviews_are_published_with_verdict_and_patch() {
        let (mut reviews, mut board) = (Reviews::default(), Board::default());
        let patch = json!([{ "op": "replace", "path": "/spec/replicas", "value": 1, "before": 0 }]);
        reviews.add(
            &review(json!({
                "type": "admission", "at": "2026-01-01T00:00:00Z", "webhook": "mview-v1.kb.io", "operation": "CREATE",
                "kind": "View", "name": "sample", "namespace": "default", "allowed": true, "patch": patch, "ms": 0.4,
            })),
            &mut board,
        );
        reviews.add(
            &review(json!({
                "type": "conversion", "at": "2026-01-01T00:00:00Z", "kind": "View", "from": ["e/v1"], "to": "e/v2",
                "objects": 1, "names": ["default/sample"], "error": "no", "ms": 0.2,
            })),
            &mut board,
        );
        let all = entries(&board);
        assert_eq!((&all[0]["type"], &all[0]["patch"][0]["before"]), (&json!("admission"), &json!(0)));
        assert_eq!(
            (&all[1]["type"], &all[1]["error"], &all[1]["number"]),
            (&json!("conversion"), &json!("no"), &json!(2))
        );
    }

    #[test]
    fn the_oldest_reviews_are_dropped() {
        let (mut reviews, mut board) = (Reviews::default(), Board::default());
        let one = review(
            json!({ "type": "conversion", "at": "", "kind": "View", "from": [], "to": "", "objects": 0, "ms": 0.0 }),
        );
        for _ in 0..Limits::DEV.reviews + 2 {
            reviews.add(&one, &mut board);
        }
        let all = entries(&board);
        assert_eq!((all.len(), &all[0]["id"]), (Limits::DEV.reviews, &json!("3")));
    }
}
