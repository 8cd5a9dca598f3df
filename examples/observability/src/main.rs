//! Asks a service for its health, and prints what is exported: `cargo run -- https://service.example`.

use std::error::Error;

use countersign_client::{Api, Client, Http, Timeouts};
use countersign_observability::subscriber;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Instrument as _, info_span};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let service = std::env::args().nth(1).ok_or("usage: countersign-observability URL")?;
    // A service has the exporter of its collector here, such as opentelemetry-otlp.
    let spans = SdkTracerProvider::builder().with_simple_exporter(opentelemetry_stdout::SpanExporter::default()).build();
    let metrics = SdkMeterProvider::builder().with_periodic_exporter(opentelemetry_stdout::MetricExporter::default()).build();
    tracing::subscriber::set_global_default(subscriber(&spans, &metrics))?;

    let client = Client::new(Api::new(&service, None)?, Http::new(Timeouts::default())?);
    // The host's own span: what countersign reports is exported inside it.
    let health = client.health().instrument(info_span!("check")).await;
    spans.shutdown()?;
    metrics.shutdown()?;
    println!("{}", if health.is_ok() { "healthy" } else { "not healthy" });
    Ok(())
}
