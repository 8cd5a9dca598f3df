//! Writes the Kotlin and the Swift of the library.

fn main() {
    uniffi::uniffi_bindgen_main();
}
