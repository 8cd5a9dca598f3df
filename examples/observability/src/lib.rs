//! Sends what countersign reports to OpenTelemetry: a span for each step of an order, and a counter of refusals by code.
//!
//! `countersign_client::guide::traces` lists the spans and events.

use std::fmt::Debug;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, MeterProvider as _};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry;

/// Returns a subscriber that exports spans and counts refusals.
pub fn subscriber(spans: &SdkTracerProvider, metrics: &SdkMeterProvider) -> impl Subscriber + Send + Sync + use<> {
    let refusals = metrics.meter("countersign").u64_counter("countersign.refusals").build();
    registry().with(tracing_opentelemetry::layer().with_tracer(spans.tracer("countersign"))).with(Refusals(refusals))
}

/// Counts the events of the target `countersign::refused`, with their code and blame as attributes.
struct Refusals(Counter<u64>);

impl<S: Subscriber> Layer<S> for Refusals {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "countersign::refused" {
            let mut attributes = Attributes(Vec::new());
            event.record(&mut attributes);
            self.0.add(1, &attributes.0);
        }
    }
}

/// The fields of a refusal, without its message.
struct Attributes(Vec<KeyValue>);

impl Visit for Attributes {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push(KeyValue::new(field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() != "message" {
            self.0.push(KeyValue::new(field.name(), format!("{value:?}")));
        }
    }
}
