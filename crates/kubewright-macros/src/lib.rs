//! The attributes of kubewright: they parse and emit, and decide nothing.
//!
//! Use them through the crate `kubewright`, which has what they expand to. What an attribute refuses, it refuses at
//! the word that is wrong, and says what to write.

mod entry;

use proc_macro::TokenStream;

/// The function becomes `fn main() -> ExitCode`, which hands it to `kubewright::operator!().run(...)`: that reads the
/// flags, sets up logs and threads, finds the cluster and makes the manager. It may return any error that converts
/// into `kubewright::Error`.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    entry::main(arguments, item)
}
