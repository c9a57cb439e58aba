//! Runs the real binary, the way a shell does, and compares all that it says.

mod color;
mod completion;
mod crash;
mod help;
#[cfg(unix)]
mod kubectl;
mod output;
#[cfg(unix)]
mod replay;
mod run;
#[cfg(unix)]
mod terminal;
mod usage;
mod version;
