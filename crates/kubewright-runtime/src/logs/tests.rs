//! Tests of log lines and options.

use std::io;
use std::sync::Mutex;

use jiff::Timestamp;
use tracing::level_filters::LevelFilter;
use tracing::{debug, error, info, info_span, trace, warn};

use super::*;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        "2026-01-01T12:00:00.123456789Z".parse().unwrap()
    }
}

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The output of `run`.
fn logged(options: &Options, run: impl FnOnce()) -> String {
    let memory = Memory::default();
    let writer = memory.clone();
    let layer = layer(options, move || writer.clone(), Arc::new(Noon)).unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), run);
    let bytes = memory.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

fn text() -> Options {
    Options { format: Format::Text, ..Options::default() }
}

fn json() -> Options {
    Options { format: Format::Json, ..Options::default() }
}

fn level(level: &str) -> Options {
    Options { level: Some(level.to_owned()), ..text() }
}

fn reconcile() -> tracing::Span {
    info_span!(
        "reconcile",
        controller = "page",
        controller_group = "example.com",
        controller_kind = "Page",
        object = "default/web",
        reconcile_id = "6f2d"
    )
}

#[derive(Debug, thiserror::Error)]
#[error("the page was not written")]
struct Failure(#[source] io::Error);

fn failure() -> Failure {
    Failure(io::Error::other("disk \"full\""))
}

#[test]
fn a_line_of_text_has_time_level_message_fields_and_spans() {
    let lines = logged(&text(), || {
        let _span = reconcile().entered();
        info!(pages = 3, ready = true, title = "a b", "Page created");
        error!(error = &failure() as &dyn std::error::Error, "failed");
        debug!("not shown");
    });
    insta::assert_snapshot!(lines, @r#"
    12:00:00.123 INFO  Page created pages=3 ready=true title="a b" controller=page controller_group=example.com controller_kind=Page object=default/web reconcile_id=6f2d
    12:00:00.123 ERROR failed error="the page was not written: disk \"full\"" controller=page controller_group=example.com controller_kind=Page object=default/web reconcile_id=6f2d
    "#);
}

#[test]
fn a_line_of_json_is_flat_and_has_the_keys_of_zap() {
    let lines = logged(&json(), || {
        let _span = reconcile().entered();
        info!(target: "pages", pages = 3, share = 0.5, "Page \"a\" created");
        warn!(target: "pages", error = &failure() as &dyn std::error::Error, "failed");
    });
    insta::assert_snapshot!(lines, @r#"
    {"level":"info","ts":"2026-01-01T12:00:00.123Z","logger":"pages","msg":"Page \"a\" created","pages":3,"share":0.5,"controller":"page","controllerGroup":"example.com","controllerKind":"Page","namespace":"default","name":"web","reconcileID":"6f2d"}
    {"level":"warn","ts":"2026-01-01T12:00:00.123Z","logger":"pages","msg":"failed","error":"the page was not written: disk \"full\"","controller":"page","controllerGroup":"example.com","controllerKind":"Page","namespace":"default","name":"web","reconcileID":"6f2d"}
    "#);
}

#[test]
fn the_fields_of_a_review_have_the_names_of_controller_runtime() {
    let lines = logged(&json(), || {
        let _span = info_span!(
            "admission",
            webhook = "/validate",
            webhook_group = "apps",
            webhook_version = "v1",
            webhook_kind = "Deployment",
            request_id = "705a",
            object = "default/web"
        )
        .entered();
        info!(target: "pages", "Checked");
    });
    insta::assert_snapshot!(lines, @r#"{"level":"info","ts":"2026-01-01T12:00:00.123Z","logger":"pages","msg":"Checked","webhook":"/validate","webhookGroup":"apps","webhookVersion":"v1","webhookKind":"Deployment","requestID":"705a","namespace":"default","name":"web"}"#);
}

#[test]
fn json_keys_are_unique_and_the_innermost_value_wins() {
    let lines = logged(&json(), || {
        let _outer = info_span!("outer", step = 1, depth = "outer", object = "node-1").entered();
        let _inner = info_span!("inner", depth = "inner", reconcile_id = 1, "reconcileID" = 2).entered();
        info!(target: "t", step = 2, name = "given", msg = "field", level = 7, "message");
    });
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&lines).unwrap();
    assert_eq!(lines.matches("\":").count(), object.len(), "{lines}");
    insta::assert_snapshot!(lines, @r#"{"level":"info","ts":"2026-01-01T12:00:00.123Z","logger":"t","msg":"message","step":2,"name":"given","field.msg":"field","field.level":7,"depth":"inner","reconcileID":1}"#);
}

#[test]
fn a_field_recorded_later_is_in_the_following_lines() {
    let lines = logged(&text(), || {
        let span = info_span!("reconcile", outcome = tracing::field::Empty);
        span.in_scope(|| info!("first"));
        span.record("outcome", "done");
        span.in_scope(|| info!("second"));
    });
    insta::assert_snapshot!(lines, @r"
    12:00:00.123 INFO  first
    12:00:00.123 INFO  second outcome=done
    ");
}

#[test]
fn values_of_every_type_are_valid_json() {
    let lines = logged(&json(), || {
        info!(
            a = i64::MIN,
            b = u64::MAX,
            c = u128::MAX,
            d = f64::NAN,
            e = ?Some("x\ny"),
            f = %"tab\t\u{1b}[31m",
            g = "",
            r#type = false,
            "{}", "two\nlines"
        );
    });
    assert_eq!(lines.lines().count(), 1);
    let object: serde_json::Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(object["a"], i64::MIN);
    assert_eq!(object["b"], u64::MAX);
    assert_eq!(object["c"], u128::MAX.to_string());
    assert_eq!(object["d"], "NaN");
    assert_eq!(object["e"], r#"Some("x\ny")"#);
    assert_eq!(object["f"], "tab\t\u{1b}[31m");
    assert_eq!(object["type"], false);
    assert_eq!(object["msg"], "two\nlines");
}

#[test]
fn text_stays_one_line_and_escapes_control_characters() {
    let lines = logged(&text(), || info!(name = "a\nb\u{1b}[2J", empty = "", "two\nlines\u{1b}[2J"));
    insta::assert_snapshot!(lines, @r#"12:00:00.123 INFO  two\nlines\u{1b}[2J name="a\nb\u{1b}[2J" empty="""#);
}

#[test]
fn text_is_coloured_if_enabled() {
    let options = Options { color: Color::Always, ..text() };
    let lines = logged(&options, || warn!(pages = 3, "late"));
    let shown = lines.replace('\u{1b}', "^");
    insta::assert_snapshot!(shown, @"^[2m12:00:00.123^[0m ^[33mWARN ^[0m late ^[2mpages=^[0m3");
}

#[test]
fn directives_set_levels_by_target_and_other_targets_log_from_info_on() {
    let run = || {
        info!(target: "kube::client", "1");
        warn!(target: "kube::client", "2");
        debug!(target: "pages", "3");
        info!(target: "other", "4");
        trace!(target: "other", "5");
    };
    let messages = |options: &Options| -> String {
        logged(options, run).lines().map(|line| line.chars().next_back().unwrap()).collect()
    };
    assert_eq!(messages(&text()), "124");
    assert_eq!(messages(&level("kube=warn, pages=debug")), "234");
    assert_eq!(messages(&level("WARN,pages=trace")), "23");
    assert_eq!(messages(&level("off")), "");
    assert_eq!(messages(&level("trace,kube=off")), "345");
}

#[test]
fn a_warning_keeps_the_fields_of_its_span_when_the_level_is_warn() {
    let lines = logged(&level("warn"), || {
        let _span = reconcile().entered();
        info!("quiet");
        warn!("loud");
    });
    assert!(lines.contains("loud controller=page"), "{lines}");
    assert!(!lines.contains("quiet"), "{lines}");
}

#[test]
fn an_error_names_the_invalid_directive() {
    let error = |level: &str| resolve(&self::level(level), &Environment::default()).unwrap_err().to_string();
    insta::assert_snapshot!(error("info,kube=wran"), @r#"invalid directive "kube=wran" in log level: use a level (off, error, warn, info, debug, trace), or target=level, such as kube=warn"#);
    for (level, directive) in [("inof", "inof"), ("warn, =info", "=info"), ("a[span]=info,b", "a[span]=info")]
    {
        let error = error(level);
        assert!(error.contains(&format!("{directive:?}")), "{error}");
    }
}

#[test]
fn rust_log_applies_if_no_flag_is_given() {
    let most = |options: &Options, rust_log: Option<&str>| {
        let environment = Environment { rust_log: rust_log.map(str::to_owned), ..Environment::default() };
        resolve(options, &environment).map(|(_, directives)| {
            tracing_subscriber::layer::Filter::<tracing_subscriber::Registry>::max_level_hint(&directives)
                .unwrap()
        })
    };
    assert_eq!(most(&text(), None).unwrap(), LevelFilter::INFO);
    assert_eq!(most(&text(), Some("")).unwrap(), LevelFilter::INFO);
    assert_eq!(most(&text(), Some("debug")).unwrap(), LevelFilter::DEBUG);
    assert_eq!(most(&text(), Some("kube")).unwrap(), LevelFilter::TRACE);
    assert_eq!(most(&level("info"), Some("debug")).unwrap(), LevelFilter::INFO);
    let error = most(&text(), Some("kube=loud")).unwrap_err().to_string();
    assert!(error.starts_with("invalid directive \"kube=loud\" in RUST_LOG"), "{error}");
    assert!(most(&level("info"), Some("kube=loud")).is_ok());
}

#[test]
fn format_and_colour_depend_on_the_terminal_by_default() {
    let encoding = |format, color, terminal, no_color| {
        let environment = Environment { terminal, no_color, rust_log: None };
        resolve(&Options { format, color, level: None }, &environment).unwrap().0
    };
    let text = |color| Encoding::Text { color };
    assert_eq!(encoding(Format::Auto, Color::Auto, true, false), text(true));
    assert_eq!(encoding(Format::Auto, Color::Auto, true, true), text(false));
    assert_eq!(encoding(Format::Auto, Color::Auto, false, false), Encoding::Json);
    assert_eq!(encoding(Format::Text, Color::Auto, false, false), text(false));
    assert_eq!(encoding(Format::Text, Color::Always, false, true), text(true));
    assert_eq!(encoding(Format::Text, Color::Never, true, false), text(false));
    assert_eq!(encoding(Format::Json, Color::Always, true, false), Encoding::Json);
    assert_eq!("json".parse::<Format>().unwrap(), Format::Json);
    let error = "jsno".parse::<Format>().unwrap_err();
    insta::assert_snapshot!(error, @r#""jsno" is not one of auto, text, json"#);
    assert_eq!("never".parse::<Color>().unwrap(), Color::Never);
}
