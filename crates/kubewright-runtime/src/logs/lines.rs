//! The layer that writes an event and the fields of its spans as one line.

use std::io::Write;
use std::sync::Arc;

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use super::fields::Fields;
use super::{json, text};
use crate::Clock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Text { color: bool },
    Json,
}

pub(super) struct Lines<W> {
    encoding: Encoding,
    writer: W,
    clock: Arc<dyn Clock>,
}

/// The content of a line.
pub(super) struct Line<'a> {
    /// `2026-01-01T00:00:00.000Z`.
    pub(super) time: &'a str,
    pub(super) metadata: &'a Metadata<'a>,
    pub(super) fields: &'a Fields,
    /// The fields of the enclosing spans, outermost first.
    pub(super) spans: &'a [&'a Fields],
}

impl Line<'_> {
    /// The fields of the spans, without those overridden by the event or an inner span.
    pub(super) fn span_fields(&self) -> impl Iterator<Item = (&'static str, &super::fields::Value)> {
        self.spans.iter().enumerate().flat_map(move |(depth, fields)| {
            let inner = &self.spans[depth + 1..];
            fields.iter().filter(move |(name, _)| {
                !self.fields.contains(name) && !inner.iter().any(|fields| fields.contains(name))
            })
        })
    }
}

impl<W> Lines<W> {
    pub(super) fn new(encoding: Encoding, writer: W, clock: Arc<dyn Clock>) -> Self {
        Self { encoding, writer, clock }
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        // Another instance of this layer may have stored the same fields.
        span.extensions_mut().replace(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let spans: Vec<SpanRef<'_, S>> =
            context.event_scope(event).map(|scope| scope.from_root().collect()).unwrap_or_default();
        let extensions: Vec<_> = spans.iter().map(SpanRef::extensions).collect();
        let spans: Vec<&Fields> = extensions.iter().filter_map(|extensions| extensions.get()).collect();
        let time = format!("{:.3}", self.clock.now());
        let line = Line { time: &time, metadata: event.metadata(), fields: &fields, spans: &spans };
        let mut bytes = match self.encoding {
            Encoding::Text { color } => text::encode(&line, color).into_bytes(),
            Encoding::Json => json::encode(&line),
        };
        bytes.push(b'\n');
        // One write, so that lines of several threads do not interleave. A failure to log cannot be reported.
        let _ = self.writer.make_writer_for(event.metadata()).write_all(&bytes);
    }
}
