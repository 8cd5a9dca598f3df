//! Local keys.

use countersign_json::objects;
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::Zeroizing;

use crate::thrown;

/// A local key, parsed once.
#[wasm_bindgen]
pub struct Key(pub(crate) objects::Key);

#[wasm_bindgen]
impl Key {
    /// Parses a key of a family.
    #[wasm_bindgen(constructor)]
    pub fn new(family: &str, key: Vec<u8>) -> Result<Self, String> {
        objects::Key::parse_named(&Zeroizing::new(key), family).map(Self).map_err(thrown)
    }

    /// Returns the family.
    pub fn family(&self) -> String {
        self.0.family().name().to_owned()
    }

    /// Returns the account that the key controls.
    pub fn account(&self) -> Option<String> {
        self.0.account()
    }
}
