//! The store: what must survive the process.
//!
//! Every intent is written before it is carried out, so a store that loses writes can lose money. When the future of a method of
//! [`OrderStore`](crate::driver::OrderStore) completes, what it wrote must survive a power failure. `countersign-store` stores orders on
//! disk. A mobile or desktop wallet may use a database instead, and a browser IndexedDB: every method is async.
//!
//! | what | written by | form |
//! |---|---|---|
//! | request and response | `create`, once | [`CreatedOrder`](crate::CreatedOrder) is `Serialize`; back with `CreatedOrder::from_json` |
//! | secret | `create`, once, in the same transaction | [`Secret::to_hex`](crate::Secret::to_hex), back with `parse`; encrypt it |
//! | index, branch, minimum amount (`at_least`) | `create`, once | numbers |
//! | record | `keep_record`, once | bytes as they are |
//! | pins | `keep_pins`, in place of older ones | [`SignedUnder`](crate::driver::SignedUnder) is `Serialize`; back with [`from_json`](crate::driver::SignedUnder::from_json) |
//! | journal | `append`, `replace_journal` | [`Entry`](crate::driver::Entry) is `Serialize` and `Deserialize` |
//!
//! A lock is a value that unlocks when it is dropped, also if the task is cancelled. A lock of a process that died must not stay.
//!
//! An example for an imaginary database, which writes named documents in transactions and flushes each transaction:
//!
//! ```
//! use countersign_client::driver::{
//!     Entry, OrderState, OrderStore, SignedUnder, StoreError,
//! };
//! use countersign_client::{CreatedOrder, OrderId, Secret};
//! # use std::collections::BTreeMap;
//! # use std::sync::{Arc, Mutex};
//!
//! # #[derive(Clone, Default)] struct Database(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);
//! # struct Lock(Database, String);
//! # impl Drop for Lock { fn drop(&mut self) { self.0.0.lock().unwrap().remove(&format!("{}/locked", self.1)); } }
//! # impl Database {
//! #     fn read(&self, order: &str, name: &str) -> Result<Option<Vec<u8>>, StoreError> { Ok(self.0.lock().unwrap().get(&format!("{order}/{name}")).cloned()) }
//! #     fn write(&self, order: &str, documents: &[(&str, Vec<u8>)]) -> Result<(), StoreError> {
//! #         let mut all = self.0.lock().unwrap();
//! #         documents.iter().for_each(|(name, bytes)| { all.insert(format!("{order}/{name}"), bytes.clone()); });
//! #         Ok(())
//! #     }
//! #     fn lock(&self, order: &str) -> Option<Lock> {
//! #         self.0.lock().unwrap().insert(format!("{order}/locked"), Vec::new()).is_none().then(|| Lock(self.clone(), order.to_owned()))
//! #     }
//! #     fn orders(&self) -> Vec<String> {
//! #         self.0.lock().unwrap().keys().filter_map(|key| Some(key.strip_suffix("/order")?.to_owned())).collect()
//! #     }
//! # }
//! struct Orders(Database);
//!
//! fn failed(error: impl std::fmt::Display) -> StoreError {
//!     StoreError::Failed(error.to_string())
//! }
//!
//! impl OrderStore for Orders {
//!     type Guard = Lock;
//!
//!     async fn create(&self, order: &OrderState) -> Result<(), StoreError> {
//!         let id = order.swap.id().as_str();
//!         if self.0.read(id, "order")?.is_some() {
//!             return Err(StoreError::Exists(id.to_owned()));
//!         }
//!         // In one transaction with the write, if several processes share the database.
//!         if let Some(hash) = &order.swap.request().secret_hash
//!             && let Some(other) = self.order_of(hash).await?
//!         {
//!             return Err(StoreError::SecretUsed(other));
//!         }
//!         let mut documents =
//!             vec![("order", serde_json::to_vec(&order.swap).map_err(failed)?)];
//!         documents.extend(
//!             order
//!                 .secret
//!                 .as_ref()
//!                 .map(|secret| ("secret", secret.to_hex().as_bytes().to_vec())),
//!         );
//!         documents
//!             .extend(order.index.map(|index| ("index", index.to_string().into_bytes())));
//!         // Likewise `branch` and `at_least`.
//!         self.0.write(id, &documents)
//!     }
//!
//!     async fn lock(&self, id: &OrderId) -> Result<Lock, StoreError> {
//!         self.0.lock(id.as_str()).ok_or(StoreError::Busy)
//!     }
//!
//!     async fn load(&self, id: &OrderId) -> Result<OrderState, StoreError> {
//!         let text = |name| {
//!             Ok::<_, StoreError>(
//!                 self.0
//!                     .read(id.as_str(), name)?
//!                     .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
//!             )
//!         };
//!         let order = self
//!             .0
//!             .read(id.as_str(), "order")?
//!             .ok_or_else(|| StoreError::Unknown(id.to_string()))?;
//!         let secret = text("secret")?
//!             .map(|digits| Secret::parse(&digits))
//!             .transpose()
//!             .map_err(failed)?;
//!         let mut state =
//!             OrderState::new(CreatedOrder::from_json(&order).map_err(failed)?, secret);
//!         state.index =
//!             text("index")?.map(|index| index.parse()).transpose().map_err(failed)?;
//!         state.record = self.0.read(id.as_str(), "record")?;
//!         state.pins = text("pins")?
//!             .map(|pins| SignedUnder::from_json(pins.as_bytes()))
//!             .transpose()?;
//!         state.journal = text("journal")?
//!             .map(|lines| serde_json::from_str(&lines))
//!             .transpose()
//!             .map_err(failed)?
//!             .unwrap_or_default();
//!         Ok(state)
//!     }
//!
//!     async fn keep_record(&self, guard: &Lock, body: &[u8]) -> Result<(), StoreError> {
//!         match self.0.read(&guard.1, "record")? {
//!             Some(kept) if kept != body => Err(StoreError::Exists(guard.1.clone())),
//!             _ => self.0.write(&guard.1, &[("record", body.to_vec())]),
//!         }
//!     }
//!
//!     async fn keep_pins(
//!         &self,
//!         guard: &Lock,
//!         pins: &SignedUnder,
//!     ) -> Result<(), StoreError> {
//!         self.0
//!             .write(&guard.1, &[("pins", serde_json::to_vec(pins).map_err(failed)?)])
//!     }
//!
//!     async fn append(&self, guard: &Lock, entry: &Entry) -> Result<(), StoreError> {
//!         let lines = self.0.read(&guard.1, "journal")?;
//!         let mut journal: Vec<Entry> = lines
//!             .map(|lines| serde_json::from_slice(&lines))
//!             .transpose()
//!             .map_err(failed)?
//!             .unwrap_or_default();
//!         journal.push(entry.clone());
//!         self.replace_journal(guard, &journal).await
//!     }
//!
//!     async fn replace_journal(
//!         &self,
//!         guard: &Lock,
//!         entries: &[Entry],
//!     ) -> Result<(), StoreError> {
//!         self.0
//!             .write(&guard.1, &[("journal", serde_json::to_vec(entries).map_err(failed)?)])
//!     }
//!
//!     async fn orders(&self) -> Result<Vec<OrderId>, StoreError> {
//!         self.0.orders().iter().map(|id| OrderId::parse(id).map_err(failed)).collect()
//!     }
//! }
//!
//! # futures_util::future::FutureExt::now_or_never(async {
//! # let store = Orders(Database::default());
//! # use countersign_client::countersign::{CreateOrder, U256, wire::RequestedLeg};
//! # let leg = |asset: &str| Ok::<_, Box<dyn std::error::Error>>(RequestedLeg::new(asset.parse()?, "0x01", U256::from(1)));
//! # let request = CreateOrder::new(leg("base:usdc")?, leg("ethereum:usdc")?);
//! # let response = format!(r#"{{"status":"Ok","result":{{"order_id":"{}"}}}}"#, "ab".repeat(32));
//! # let mut order = OrderState::new(CreatedOrder::new(request, response)?, None);
//! # order.index = Some(7);
//! # store.create(&order).await?;
//! # assert!(matches!(store.create(&order).await, Err(StoreError::Exists(_))));
//! # let id = store.orders().await?.remove(0);
//! let guard = store.lock(&id).await?;
//! assert_eq!(store.lock(&id).await.err(), Some(StoreError::Busy));
//! store.keep_record(&guard, b"{}").await?;
//! drop(guard);
//! let kept = store.load(&id).await?;
//! assert_eq!(
//!     (kept.index, kept.record.as_deref(), kept.journal.len()),
//!     (Some(7), Some(&b"{}"[..]), 0)
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
