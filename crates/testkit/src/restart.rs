//! A wallet that restarts keeps the documents, its context and the signatures, and continues where it was.

use countersign_core::{Policy, UnsignedOrder};
use countersign_json::{JsonFamily, sign_text};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Case, TestResult, artefacts, fixtures, verified, wallet, with_unsigned};

/// Requires that each context of the family's fixtures is the same after a restart, and that the order which is prepared with it takes
/// the kept signatures.
pub fn the_context_and_the_signatures_survive<F: JsonFamily<Context: Serialize + DeserializeOwned + PartialEq>>() -> TestResult {
    let mut signed = 0;
    for case in fixtures::<F>()? {
        let kept = serde_json::to_string(&wallet::<F>(&case))?;
        let context: F::Context = serde_json::from_str(&kept)?;
        assert!(context == wallet::<F>(&case), "{}: {kept}", case.id);
        let Some(before) = signed_order::<F>(&case) else { continue };
        let kept: Vec<_> = before.signatures().into_iter().map(|(id, text)| (id.to_string(), text)).collect();
        assert!(before.missing().is_empty() && kept.len() == before.requests().len(), "{}: {kept:?}", case.id);
        let mut after = verified::<F>(&case).prepare(context)?;
        assert!(after.signatures().is_empty());
        for (id, text) in &kept {
            after.attach_text(id.parse()?, text).map_err(|refusal| format!("{}: {id}: {refusal}", case.id))?;
        }
        assert_eq!(artefacts(&after), artefacts(&before), "{}", case.id);
        signed += 1;
    }
    assert!(signed > 0, "no fixture has a key");
    Ok(())
}

/// Returns the order of a case with all its signatures, if the case has a key for them.
pub(crate) fn signed_order<F: JsonFamily>(case: &Case) -> Option<UnsignedOrder<F>> {
    let sign = |mut order: UnsignedOrder<F>, key: Option<&str>| {
        let Some(key) = key else { return Ok(None) };
        sign_text(&mut order, key)?;
        Ok(order.missing().is_empty().then_some(order))
    };
    with_unsigned::<F, _>(case, &Policy::default(), sign).expect(&case.id)
}
