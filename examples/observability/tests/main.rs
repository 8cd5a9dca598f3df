//! What arrives at the exporters, by OpenTelemetry's own exporters in memory.

use countersign_client::countersign::{Code, CreateOrder, Policy, Registry};
use countersign_client::driver::{MemoryStore, NewOrder, NoChains, NoOwner};
use countersign_client::{Api, Client, Driver, Flow, Http, OrderId, Secret, Timeouts};
use countersign_observability::subscriber;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};

#[tokio::test(flavor = "current_thread")]
async fn steps_are_spans_and_refusals_are_counted_by_code() -> Result<(), Box<dyn std::error::Error>> {
    let (exported, counted) = (InMemorySpanExporter::default(), InMemoryMetricExporter::default());
    let spans = SdkTracerProvider::builder().with_simple_exporter(exported.clone()).build();
    let metrics = SdkMeterProvider::builder().with_periodic_exporter(counted.clone()).build();
    let _listening = tracing::subscriber::set_default(subscriber(&spans, &metrics));

    let registry: Registry = include_str!("../../../crates/countersign/doc/registry.json").parse()?;
    let request: CreateOrder = include_str!("../../../crates/countersign/doc/request.json").parse()?;
    let client = Client::new(Api::new("http://127.0.0.1:9", None)?, Http::new(Timeouts::default())?);
    let driver = Driver::new(Flow::new(client, registry, Policy::default()), NoChains, MemoryStore::default(), NoOwner);

    // The secret is not the one whose hash the request contains.
    let other = Secret::parse("6d1f0c3a5b7e92846d1f0c3a5b7e9284c0ffee11d00d2233445566778899aabb")?;
    assert!(driver.create(NewOrder::new(request, Some(other))).await.is_err());
    let order = OrderId::parse(&"ab".repeat(32))?;
    assert!(driver.advance(&order).await.is_err(), "nothing is stored");

    spans.force_flush()?;
    metrics.force_flush()?;
    let spans = exported.get_finished_spans()?;
    let steps: Vec<_> = spans.iter().filter(|span| span.name == "order").collect();
    assert_eq!(steps.len(), 1, "{spans:?}");
    assert!(steps[0].attributes.iter().any(|one| one.key.as_str() == "order" && one.value.as_str() == order.as_str()));

    let metrics = counted.get_finished_metrics()?;
    let refusals = metrics
        .iter()
        .flat_map(|resource| resource.scope_metrics())
        .flat_map(|scope| scope.metrics())
        .find(|metric| metric.name() == "countersign.refusals")
        .ok_or("no counter")?;
    let AggregatedMetrics::U64(MetricData::Sum(sum)) = refusals.data() else { return Err("not a counter".into()) };
    let points: Vec<_> = sum.data_points().collect();
    assert_eq!(points.len(), 1);
    assert_eq!(points[0].value(), 1);
    let code = points[0].attributes().find(|one| one.key.as_str() == "code").ok_or("no code")?;
    assert_eq!(code.value.as_str(), Code::SecretHashMismatch.name());
    Ok(())
}
