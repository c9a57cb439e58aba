//! CPU time and memory of processes. Other processes are read from `/proc`, which requires Linux.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};

/// CPU time of this thread, in nanosecond resolution.
pub(crate) fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// CPU time of all threads of this process, in nanosecond resolution.
pub(crate) fn own_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// CPU time of another process. The resolution is usually 10 ms, so measure over at least a second.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    duration(cpu_ticks(&stat).with_context(|| format!("unexpected format of {path}"))?)
}

/// CPU time of all processes that this one started and waited for, with theirs. The resolution is usually 10 ms.
pub(crate) fn children_cpu_time() -> Result<Duration> {
    let path = "/proc/self/stat";
    let stat = fs::read_to_string(path).with_context(|| format!("read {path}"))?;
    duration(children_cpu_ticks(&stat).with_context(|| format!("unexpected format of {path}"))?)
}

/// Resident memory of another process, in bytes.
pub(crate) fn resident_memory(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    bytes_of(&status, "VmRSS:").with_context(|| format!("{path} has no VmRSS"))
}

/// The highest resident memory of another process so far, in bytes.
pub(crate) fn peak_memory(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    bytes_of(&status, "VmHWM:").with_context(|| format!("{path} has no VmHWM"))
}

fn duration(ticks: u64) -> Result<Duration> {
    let per_second = u32::try_from(rustix::param::clock_ticks_per_second()).context("ticks per second")?;
    Ok(Duration::from_secs(ticks) / per_second)
}

/// User plus system time, fields 14 and 15 of `stat`.
fn cpu_ticks(stat: &str) -> Option<u64> {
    sum_of_two(stat, 14)
}

/// User plus system time of children that were waited for, fields 16 and 17.
fn children_cpu_ticks(stat: &str) -> Option<u64> {
    sum_of_two(stat, 16)
}

/// The sum of a field and the next one, counted from 1. The process name, field 2, may contain spaces and brackets.
fn sum_of_two(stat: &str, first: usize) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(first - 3);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn bytes_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_ticks_are_found_after_any_process_name() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 100 0 0 0 30 12 5 2 20 0 3 0 100 1 1 1";
        assert_eq!((cpu_ticks(stat), children_cpu_ticks(stat)), (Some(42), Some(7)));
    }

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(bytes_of("Name:\tx\nVmRSS:\t    2048 kB\n", "VmRSS:"), Some(2 << 20));
    }

    #[test]
    fn our_own_process_can_be_read() {
        let pid = std::process::id();
        assert!(resident_memory(pid).unwrap() > 0 && peak_memory(pid).unwrap() > 0);
        assert!(cpu_time(pid).is_ok() && children_cpu_time().is_ok());
    }
}
