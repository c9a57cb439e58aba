//! `kubewright create webhook`: not available yet, and says what to do instead.

use anyhow::{Result, anyhow};

use crate::cli::examples::examples;
use crate::error::Hint as _;

const EXAMPLES: &[(&str, &str)] = &[(
    "Not available yet",
    "kubewright create webhook --group shop --version v1 --kind Order --defaulting --programmatic-validation",
)];

/// Not available yet: use defaults and CEL validation rules in the types
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES), disable_help_flag = true)]
pub(super) struct Args {
    /// Flags of kubebuilder
    #[arg(value_name = "FLAGS", trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let is_conversion = args.flags.iter().any(|flag| flag.starts_with("--conversion"));
    let instead = if is_conversion {
        "keep the fields of all versions the same, so that no conversion is needed"
    } else {
        "write defaults and CEL validation rules into the types, which the API server enforces without a webhook"
    };
    Err(anyhow!("`create webhook` is not available yet")).hint(instead)
}
