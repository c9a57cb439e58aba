//! Memory statistics of the process and of its caches, as text.
//!
//! They show how much memory each kind uses, not which code allocated it.

use std::fmt::Write as _;

use crate::Cache;

/// The memory values of `/proc/self/status`.
const LINES: [&str; 6] = ["VmPeak:", "VmSize:", "VmHWM:", "VmRSS:", "RssAnon:", "VmSwap:"];

/// The report of `/debug/memory`. A cache without a cluster is the manager's own.
pub(super) fn report(caches: &[(Option<String>, Cache)]) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut report = String::from("# memory of the process, from /proc/self/status\n");
    for line in status.lines().filter(|line| LINES.iter().any(|name| line.starts_with(name))) {
        report.push_str(line);
        report.push('\n');
    }
    for (cluster, cache) in caches {
        let name =
            cluster.as_ref().map_or("of the manager".to_owned(), |cluster| format!("of cluster {cluster}"));
        // Writing to a String cannot fail.
        let _ = writeln!(
            report,
            "\n# cache {name}: {} bytes of JSON cached in decoded form",
            cache.decoded_bytes()
        );
        let _ = writeln!(report, "{:>10} {:>14}  kind", "objects", "JSON bytes");
        for informer in cache.all() {
            let (objects, bytes, kind) = (informer.len(), informer.bytes(), informer.kind().gvk());
            let _ = writeln!(report, "{objects:>10} {bytes:>14}  {kind}");
        }
    }
    report
}
