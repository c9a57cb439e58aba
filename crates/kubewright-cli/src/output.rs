//! Serialized results, for `-o json` and `-o yaml`.

use std::fmt::Write;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

/// An output format.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    Json,
    Yaml,
}

impl Format {
    pub(crate) fn render(self, result: &impl Serialize) -> Result<String> {
        let value = serde_json::to_value(result).context("cannot serialize the result")?;
        Ok(match (self, &value) {
            (Self::Json, value) => format!("{value:#}\n"),
            // JSON is valid YAML: only the top-level object needs block style to read well.
            (Self::Yaml, Value::Object(fields)) => {
                fields.iter().fold(String::new(), |mut text, (name, value)| {
                    writeln!(text, "{name}: {value}").expect("writing to a String cannot fail");
                    text
                })
            }
            (Self::Yaml, value) => format!("{value}\n"),
        })
    }
}
