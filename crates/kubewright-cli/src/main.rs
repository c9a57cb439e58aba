//! The `kubewright` binary. All of its code is in the library [`kubewright_cli`].

use std::env;
use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Objects are trees of small allocations, created and dropped with every write: see
/// docs/adr/0006-allocator.md.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let args: Vec<_> = env::args_os().collect();
    kubewright_cli::run(&args)
}
