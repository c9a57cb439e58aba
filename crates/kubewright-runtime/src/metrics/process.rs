//! Process metrics from `/proc`.
//!
//! Owns the parsing of Linux's files and the metric names of Prometheus' client libraries. A missing or invalid file
//! omits its metrics; nothing here fails.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The unit of times in `/proc` (`USER_HZ`), which is 100 on every architecture that Rust supports, whatever the
/// kernel's tick is.
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads the values at each scrape.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let stat = Stat::read(&read("/proc/self/stat"));
        let status = read("/proc/self/status");
        let mut gauge =
            |name, help, value: Option<f64>| show(&mut encoder, name, help, value.map(ConstGauge::new));
        gauge(
            "process_resident_memory_bytes",
            "Resident memory size in bytes.",
            kilobytes(&status, "VmRSS:"),
        )?;
        gauge(
            "process_virtual_memory_bytes",
            "Virtual memory size in bytes.",
            kilobytes(&status, "VmSize:"),
        )?;
        gauge("process_open_fds", "Number of open file descriptors.", open_files())?;
        gauge(
            "process_max_fds",
            "Maximum number of open file descriptors.",
            max_files(&read("/proc/self/limits")),
        )?;
        let started =
            stat.as_ref().zip(boot_time(&read("/proc/stat"))).map(|(stat, boot)| boot + stat.started);
        let help = "Start time of the process since unix epoch in seconds.";
        gauge("process_start_time_seconds", help, started)?;
        let help = "Total user and system CPU time spent in seconds.";
        show(&mut encoder, "process_cpu_seconds", help, stat.map(|stat| ConstCounter::new(stat.cpu)))
    }
}

fn show(
    encoder: &mut DescriptorEncoder<'_>,
    name: &'static str,
    help: &str,
    metric: Option<impl EncodeMetric>,
) -> fmt::Result {
    let Some(metric) = metric else { return Ok(()) };
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

/// Values of `/proc/self/stat`, in seconds.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu: f64,
    /// Since boot.
    started: f64,
}

impl Stat {
    fn read(stat: &str) -> Option<Self> {
        // The second field is the program's name, in parentheses; it may contain any character.
        let (_, rest) = stat.rsplit_once(')')?;
        let seconds = |field: usize| -> Option<f64> {
            // The first field after the name is the third.
            let ticks: f64 = rest.split_whitespace().nth(field - 3)?.parse().ok()?;
            Some(ticks / TICKS_PER_SECOND)
        };
        Some(Self { cpu: seconds(14)? + seconds(15)?, started: seconds(22)? })
    }
}

/// A value of `/proc/self/status`, in bytes.
fn kilobytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// The soft limit in `/proc/self/limits`.
fn max_files(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(f64::INFINITY),
        number => number.parse().ok(),
    }
}

/// The boot time from `/proc/stat`, in seconds since the Unix epoch.
fn boot_time(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn open_files() -> Option<f64> {
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count();
    // Reading the directory opens one more descriptor.
    u32::try_from(open.saturating_sub(1)).ok().map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_may_contain_parentheses() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 13 14 15 16 17 18 6000 20";
        assert_eq!(Stat::read(stat), Some(Stat { cpu: 3.0, started: 60.0 }));
        assert_eq!(Stat::read("42 (short) S 1"), None);
        assert_eq!(Stat::read(""), None);
    }

    #[test]
    fn missing_values_are_omitted() {
        assert_eq!(kilobytes("VmSize:\t  8 kB\nVmRSS:\t    2 kB\n", "VmRSS:"), Some(2048.0));
        assert_eq!(kilobytes("Name:\tx\n", "VmRSS:"), None);
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024   4096   files\n";
        assert_eq!(max_files(limits), Some(1024.0));
        assert_eq!(max_files(""), None);
        assert_eq!(boot_time("cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_000.0));
        assert_eq!(boot_time(""), None);
    }
}
