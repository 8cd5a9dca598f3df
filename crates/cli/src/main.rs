//! The `countersign` program: see `countersign --help`.

mod batch;
use std::process::ExitCode;
fn main() -> ExitCode {
    let registry = std::fs::read(std::env::args().nth(3).unwrap()).unwrap();
    let registry = countersign::Registry::from_json(&registry).unwrap();
    let ok = batch::run(
        &mut std::io::stdin().lock(),
        &mut std::io::stdout(),
        &registry,
        &countersign::Policy::default(),
        std::num::NonZeroUsize::new(2).unwrap(),
    )
    .unwrap();
    ExitCode::from(u8::from(!ok))
}
