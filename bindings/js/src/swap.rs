//! Whole swaps: the machine of `countersign-swap`.

use countersign_swap::{JsonSetup, Need as Wanted, Reply, Swaps as Machine, UnixMillis, Zeroizing};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{Text, UnsignedOrder, json, thrown, used_up};

/// What a machine is opened with. Its documents are added one by one.
#[wasm_bindgen]
pub struct Opening {
    options: Vec<u8>,
    registry: Vec<u8>,
    policy: Vec<u8>,
    nodes: Zeroizing<Vec<u8>>,
    documents: Vec<(String, Zeroizing<Vec<u8>>)>,
    place: String,
}

#[wasm_bindgen]
impl Opening {
    /// Takes what the machine is opened with, as JSON.
    #[wasm_bindgen(constructor)]
    pub fn new(options: Vec<u8>, registry: Vec<u8>, policy: Vec<u8>, nodes: Vec<u8>, place: String) -> Self {
        Self { options, registry, policy, nodes: Zeroizing::new(nodes), documents: Vec::new(), place }
    }

    /// Adds a document that was stored before.
    pub fn add(&mut self, name: String, bytes: Vec<u8>) {
        self.documents.push((name, Zeroizing::new(bytes)));
    }

    /// Opens the machine.
    pub fn open(self, now: f64) -> Result<Swaps, String> {
        let mut setup = JsonSetup::new(&self.options, &self.registry, millis(now));
        (setup.policy, setup.nodes, setup.place) = (&self.policy, &self.nodes, &self.place);
        setup.documents = self.documents;
        setup.parse().and_then(Machine::open).map(Swaps).map_err(thrown)
    }
}

/// Whole milliseconds of JavaScript's clock.
#[expect(clippy::as_conversions, reason = "a cast saturates, and JavaScript's times are whole and far below 2^53")]
const fn millis(now: f64) -> UnixMillis {
    UnixMillis::from_millis(now as u64)
}

/// The machine.
#[wasm_bindgen]
pub struct Swaps(Machine);

#[wasm_bindgen]
impl Swaps {
    /// Asks for the best quote.
    pub fn quote(&mut self, wish: &[u8]) -> Result<u64, String> {
        self.0.quote_json(wish).map_err(thrown)
    }

    /// Creates an order, and follows it to its end.
    pub fn create(&mut self, wish: &[u8]) -> Result<u64, String> {
        self.0.create_json(wish).map_err(thrown)
    }

    /// Continues a stored order.
    pub fn follow(&mut self, order: &str) -> Result<u64, String> {
        self.0.follow(order).map_err(thrown)
    }

    /// Refunds a stored order whose timelock has expired.
    pub fn refund(&mut self, order: &str) -> Result<u64, String> {
        self.0.refund(order).map_err(thrown)
    }

    /// Asks for the refund of a stored order before its timelock ends.
    #[wasm_bindgen(js_name = instantRefund)]
    pub fn instant_refund(&mut self, order: &str) -> Result<u64, String> {
        self.0.instant_refund(order).map_err(thrown)
    }

    /// Lists the stored orders.
    pub fn list(&mut self) -> u64 {
        self.0.list()
    }

    /// Returns the words of the rescue phrase.
    pub fn phrase(&self) -> Result<Option<String>, String> {
        Ok(self.0.phrase().map_err(thrown)?.map(|words| words.as_str().to_owned()))
    }

    /// Goes on as far as possible.
    pub fn poll(&mut self, now: f64) -> Output {
        let output = self.0.poll(millis(now));
        let events = output.events_json();
        Output { events, withdrawn: output.withdrawn, wake_at: output.wake_at, needs: output.needs }
    }

    /// Takes a reply as JSON, with a body beside it. Returns whether it was still wanted.
    pub fn reply(&mut self, id: u64, reply: &[u8], body: Vec<u8>) -> Result<bool, String> {
        let reply = Reply::from_json(reply, body).map_err(thrown)?;
        self.0.reply(id, reply).map_err(thrown)
    }

    /// Returns the order that a need wants signed.
    #[wasm_bindgen(js_name = takeUnsigned)]
    pub fn take_unsigned(&mut self, id: u64) -> Option<UnsignedOrder> {
        self.0.take_unsigned(id).map(UnsignedOrder::new)
    }

    /// Takes a signed order back.
    #[wasm_bindgen(js_name = replySigned)]
    pub fn reply_signed(&mut self, id: u64, order: &mut UnsignedOrder) -> Result<bool, String> {
        let unsigned = order.take().ok_or_else(used_up)?;
        self.0.reply(id, Reply::Signed(Box::new(unsigned))).map_err(thrown)
    }
}

/// What the host has to do next.
#[wasm_bindgen]
pub struct Output {
    needs: Vec<Wanted>,
    withdrawn: Vec<u64>,
    wake_at: Option<UnixMillis>,
    events: String,
}

#[wasm_bindgen]
impl Output {
    /// Returns the next need, first come first.
    pub fn need(&mut self) -> Option<Need> {
        (!self.needs.is_empty()).then(|| Need(self.needs.remove(0)))
    }

    /// Returns the numbers of needs that are not needed any more.
    pub fn withdrawn(&self) -> String {
        json(&self.withdrawn)
    }

    /// Returns when to poll again at the latest, in Unix milliseconds.
    #[wasm_bindgen(js_name = wakeAt)]
    #[expect(clippy::as_conversions, reason = "JavaScript's times are whole and far below 2^53")]
    pub fn wake_at(&self) -> Option<f64> {
        self.wake_at.map(|at| at.as_millis() as f64)
    }

    /// Returns what happened, as a JSON array.
    pub fn events(&self) -> String {
        self.events.clone()
    }
}

/// Something that only the host can do.
#[wasm_bindgen]
pub struct Need(Wanted);

#[wasm_bindgen]
impl Need {
    /// Returns the number under which it is replied to.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Returns the number of the call that needs it.
    pub fn call(&self) -> u64 {
        self.0.call
    }

    /// Returns what is needed, as JSON without the bytes.
    pub fn detail(&self) -> Text {
        Ok(self.0.detail().as_str().to_owned())
    }

    /// Returns the bytes at a place: the body of a request, or a document; nothing for a request without a body or a document to delete.
    pub fn body(&self, place: usize) -> Option<Vec<u8>> {
        self.0.bodies().get(place).copied().flatten().map(<[u8]>::to_vec)
    }
}
