//! Converts OpenMetrics text to Prometheus' older text format.
//!
//! In the older format a counter's family name ends in `_total`, there are no units, exemplars or end marker, and some
//! types have other names.

use std::borrow::Cow;

/// Converts to the text format 0.0.4.
pub(super) fn classic(open_metrics: &str) -> String {
    let mut page = String::with_capacity(open_metrics.len());
    // The HELP line comes before the TYPE line, which decides its name.
    let mut help: Option<(&str, &str)> = None;
    for line in open_metrics.lines() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = Some(rest.split_once(' ').unwrap_or((rest, "")));
            continue;
        }
        let line = match line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            Some((name, kind)) => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "stateset" => ("", "gauge"),
                    "gaugehistogram" => ("", "histogram"),
                    "unknown" => ("", "untyped"),
                    other => ("", other),
                };
                if let Some((of, text)) = help.take()
                    && of == name
                {
                    push(&mut page, &format!("# HELP {name}{suffix} {text}"));
                }
                Cow::Owned(format!("# TYPE {name}{suffix} {kind}"))
            }
            None => Cow::Borrowed(without_exemplar(line)),
        };
        push(&mut page, &line);
    }
    page
}

fn push(page: &mut String, line: &str) {
    page.push_str(line);
    page.push('\n');
}

/// A sample without its exemplar. A quoted label value may contain `#`.
fn without_exemplar(sample: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in sample.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'#' if !quoted => return sample[..at].trim_end(),
            _ => {}
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_format_renames_counters_and_drops_exemplars_and_units() {
        let open_metrics = "\
# HELP hits Hits, of all kinds.
# TYPE hits counter
hits_total{path=\"a\\\"# {}\"} 1 # {trace=\"x\"} 1.0
# HELP took_seconds Time.
# TYPE took_seconds histogram
# UNIT took_seconds seconds
took_seconds_sum 1.0
took_seconds_bucket{le=\"+Inf\"} 1 # {trace=\"x\"} 0.5
# HELP build Build.
# TYPE build info
build_info{version=\"1\"} 1
# HELP odd Odd.
# TYPE odd unknown
odd 3
# EOF
";
        let older = "\
# HELP hits_total Hits, of all kinds.
# TYPE hits_total counter
hits_total{path=\"a\\\"# {}\"} 1
# HELP took_seconds Time.
# TYPE took_seconds histogram
took_seconds_sum 1.0
took_seconds_bucket{le=\"+Inf\"} 1
# HELP build_info Build.
# TYPE build_info gauge
build_info{version=\"1\"} 1
# HELP odd Odd.
# TYPE odd untyped
odd 3
";
        assert_eq!(classic(open_metrics), older);
    }
}
