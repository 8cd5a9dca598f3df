//! Local keys of any family: the account that follows from a key, and what it signs.
use countersign::{Code, FAMILIES, Family, Key, Policy, evm};
use countersign_testkit::lines::accepted;

/// The accounts are the owners of the fixtures' requests, which other tools derived.
#[test]
fn the_account_of_a_key_is_the_owner_of_its_orders() {
    let mut compared = Vec::new();
    for family in FAMILIES {
        for case in accepted(*family) {
            let tree = case.tree();
            let text = |at: &str| tree.scalar(at).filter(|text| text != "null");
            let Some(key) = case.secret_key() else { continue };
            // The keys of a permission are other accounts' keys.
            if ["/wallet/permission", "/wallet/permission_id"].iter().any(|at| tree.at(at).is_some()) {
                continue;
            }
            let account = Key::parse(*family, &key).unwrap().account().map(|account| account.to_string());
            match (family, account) {
                (Family::Starknet | Family::Bitcoin, account) => assert_eq!(account, None),
                // A delegate pays for the owner.
                (_, account) => {
                    let payer = text("/request/source/delegate").or_else(|| text("/request/source/owner")).unwrap();
                    assert!(account.unwrap().eq_ignore_ascii_case(&payer), "{family}: {payer}");
                    compared.push(*family);
                }
            }
        }
    }
    compared.dedup();
    assert_eq!(compared.len(), FAMILIES.len() - 2, "{compared:?}");
}

#[test]
fn a_text_that_is_not_a_key_of_the_family_is_refused_and_never_shown() {
    for family in FAMILIES {
        let text = "this-is-not-a-key";
        let refusal = Key::parse(*family, text).unwrap_err();
        assert_eq!(refusal.code(), Code::KeyMalformed, "{family}");
        assert!(!format!("{refusal} {refusal:?}").contains(text), "{refusal:?}");
    }
    let text = "11".repeat(32);
    assert!(!format!("{:?}", Key::parse(Family::Evm, &text).unwrap()).contains(&text));
}

/// A signer that fails with a text can be used with `?`, as any other.
#[test]
fn a_closure_may_fail_with_a_text() {
    fn sign(order: &mut evm::UnsignedOrder) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        order.sign_with_fn(|_| -> Result<evm::ExternalSignature, String> { Err("the device is locked".to_owned()) })?;
        Ok(())
    }

    let case = countersign_testkit::lines::accepted_case("evm-token-approval-exact");
    let failed = |mut order: evm::UnsignedOrder, _: Option<&str>| {
        let error = sign(&mut order).expect_err("the device is locked");
        assert!(error.source().is_none() && !order.missing().is_empty());
        Ok(format!("{error} / {error:?}"))
    };
    let said = countersign_testkit::with_unsigned::<evm::Evm, _>(&case, &Policy::default(), failed).unwrap();
    assert_eq!(said, "the signer failed: the device is locked / SignerError(the signer failed: the device is locked)");
}
