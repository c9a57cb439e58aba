//! Captured logs.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use kubewright_runtime::logs;
use tracing::subscriber::DefaultGuard;

/// Captures the logs of the current thread while it is held.
///
/// A test on a single-threaded runtime logs on its own thread, and so do its managers.
///
/// ```
/// let logs = kubewright_envtest::Logs::capture();
/// tracing::info!(color = "red", "seen");
/// assert!(logs.text().contains("seen"));
/// ```
pub struct Logs {
    written: Written,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Logs {
    /// Starts to capture logs of level `debug` and above.
    pub fn capture() -> Self {
        let written = Written::default();
        let options = logs::Options {
            format: logs::Format::Text,
            level: Some("debug".to_owned()),
            color: logs::Color::Never,
        };
        let writer = written.clone();
        let guard = logs::capture(&options, move || writer.clone()).expect("debug is a level");
        Self { written, _guard: guard }
    }

    /// All captured logs.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// The lines that contain a text.
    pub fn lines_with(&self, text: &str) -> Vec<String> {
        self.text().lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}
