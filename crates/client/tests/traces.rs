//! What a driver reports to `tracing`: enough to follow a swap, and nothing private.
use crate::world;

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use countersign_client::countersign::Policy;
use countersign_client::driver::{DriveError, Driver, MemoryStore, NewOrder, OrderStore, Status};
use countersign_client::{Api, AppId, Client, Flow, StreamExt};
use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Dispatch, Level};
use world::Worlds;
use world::plan::Plan;

/// The lines of a subscriber.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn listen(&self) -> DefaultGuard {
        // While `tracing` knows one subscriber alone, a thread without it turns off what it meets first, for all threads.
        static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));
        LazyLock::force(&ANOTHER);
        let log = self.clone();
        let format = tracing_subscriber::fmt().with_max_level(Level::TRACE).with_ansi(false).without_time();
        tracing::subscriber::set_default(format.with_writer(move || log.clone()).finish())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_swap_can_be_followed_and_nothing_private_is_reported() {
    let log = Log::default();
    let _listening = log.listen();
    let world = Worlds::new(0, Plan::honest());
    let api = Api::new("https://service.example/key-of-a-proxy", Some(AppId::new("private-app-id").unwrap())).unwrap();
    let flow = Flow::new(Client::new(api, Arc::clone(&world)), Arc::clone(&world.registry), Policy::default());
    let driver = Driver::new(flow, Arc::clone(&world), MemoryStore::default(), Arc::clone(&world));
    let (fixture, secret) = world.order(1);
    let hidden = format!("{:064x}", 0xabcd_ef01_2345_u64 + 1);
    let id = driver.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
    let mut changes = std::pin::pin!(driver.run().await.unwrap());
    let all = async {
        while let Some(change) = changes.next().await {
            let status = change.result.unwrap().status;
            assert_eq!(serde_json::to_value(&status).unwrap()["status"], status.name());
        }
    };
    tokio::time::timeout(Duration::from_secs(4 * 86_400), all).await.unwrap();

    let text = log.text();
    let order = format!("order{{order=\"{id}\"}}");
    for line in [
        format!("{order}: countersign_client::driver::trace: created"),
        format!("{order}:chain{{chain=\"base\"}}:endpoint{{endpoint="),
        format!("{order}: countersign_client::driver::trace: journal event=\"secret_leaving\""),
        format!("{order}: countersign_client::driver::trace: step status=\"ended\""),
        format!("host=\"service.example\" path=\"orders/{id}\""),
    ] {
        assert!(text.contains(&line), "{line} is missing:\n{text}");
    }
    for private in [hidden.as_str(), &hidden[20..], "private-app-id", "key-of-a-proxy"] {
        assert!(!text.contains(private), "{private}:\n{text}");
    }
    for entry in &driver.store().load(&id).await.unwrap().journal {
        assert_eq!(serde_json::to_value(entry).unwrap()["event"], entry.event.name());
        assert!(text.contains(&format!("journal event=\"{}\"", entry.event.name())), "{entry:?}:\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_reported_with_its_code() {
    let log = Log::default();
    let _listening = log.listen();
    let world = Worlds::new(0, Plan::honest());
    let driver = world.driver(MemoryStore::default());
    let (fixture, _) = world.order(1);
    let (_, other) = world.order(2);
    let result = driver.create(NewOrder::new(fixture.create(), Some(other))).await;
    assert!(matches!(result, Err(DriveError::Refused(_))), "{result:?}");
    let line = "WARN countersign::refused: refused code=\"secret_hash_mismatch\" blame=caller";
    assert!(log.text().contains(line), "{}", log.text());
}

#[test]
fn names_of_statuses_are_those_of_json() {
    for status in [Status::Unsigned, Status::Expired, Status::Paying, Status::Redeeming, Status::RedeemNow, Status::Refunding, Status::Lost]
    {
        assert_eq!(serde_json::to_value(&status).unwrap()["status"], status.name());
    }
}
