//! Compares with values that the service computed for orders on its test network.

use super::*;

const HTLC: Address = address!("d1e0ba2b165726b3a6051b765d4564d030fdcf50");
const TOKEN: Address = address!("e918a5a47b8e0afac2382bc5d1e981613e63fb07");
const INITIATOR: Address = address!("4cD3FB4a504cc978f316a81Dc5165D2C5b30592d");

#[test]
fn an_order_made_with_the_service_s_calldata_has_the_service_s_id() -> TestResult {
    let mut world = World::new(SEPOLIA, START);
    world.deploy_at(TOKEN, &Contract::Token { symbol: "WBTC", decimals: 8 })?;
    world.deploy_at(HTLC, &Contract::Htlc { token: TOKEN, version: "3" })?;
    let mint = Erc20::mintCall { to: INITIATOR, value: U256::from(50_000) };
    assert!(world.call(INITIATOR, TOKEN, mint.abi_encode(), U256::ZERO)?.is_success());

    let approve = hex!(
        "095ea7b3000000000000000000000000d1e0ba2b165726b3a6051b765d4564d030fdcf50"
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    );
    assert!(world.call(INITIATOR, TOKEN, approve.to_vec(), U256::ZERO)?.is_success());
    let initiate = hex!(
        "97ffc7ae000000000000000000000000661ba32eb5f86cab358ddbb7f264b10c5825e2dd"
        "0000000000000000000000000000000000000000000000000000000000001c20"
        "000000000000000000000000000000000000000000000000000000000000c350"
        "7b32dd44045d8d6fc477615d0d72f42fc7696078e44724fe64c85b563fc8f306"
    );
    let receipt = world.call(INITIATOR, HTLC, initiate.to_vec(), U256::ZERO)?;

    let id = b256!("f511550e9629124790646668b8cdc2a42bbdc9b9333857c4fdd3f1bf514b6575");
    let event = initiated(&receipt, HTLC);
    assert_eq!(event.orderId, id);
    assert_eq!(event.secretHash, b256!("7b32dd44045d8d6fc477615d0d72f42fc7696078e44724fe64c85b563fc8f306"));
    let order = world.order(HTLC, id)?;
    assert_eq!(order.initiator, INITIATOR);
    assert_eq!(order.redeemer, address!("661ba32eb5f86cab358ddbb7f264b10c5825e2dd"));
    assert_eq!(order.timelock, U256::from(7_200));
    assert_eq!(order.amount, U256::from(50_000));
    Ok(())
}

/// The type hash and the separators were computed by ethers 6 and eth-account.
#[test]
fn the_typed_data_domain_is_the_service_s() -> TestResult {
    let cases = [
        ("3", HTLC, b256!("dbf0f6d00f69ac8ea9e6ec1bb9fbcf5d2074ded65e4b2afa1737d37309818e6e")),
        (
            "2",
            address!("88e1032252c712681a3659986f452e910d2134d8"),
            b256!("4233ee4974060d2997e6378bf4ab0e7b7bbec65a78cc7c717cc2ec26cf0d8480"),
        ),
    ];
    for (version, htlc, separator) in cases {
        let mut world = World::new(SEPOLIA, START);
        world.deploy_at(htlc, &Contract::Htlc { token: TOKEN, version })?;
        assert_eq!(world.read(htlc, &Htlc::domainSeparatorCall {})?, separator);
        assert_eq!(
            world.read(htlc, &Htlc::INITIATE_TYPEHASHCall {})?,
            b256!("de5278e8c85ac4e57ea69f40f594c328916a0c846a6bbd82592e91cff5eee136")
        );
        assert_eq!(world.read(htlc, &Htlc::versionCall {})?, version);
        assert_eq!(world.read(htlc, &Htlc::tokenCall {})?, TOKEN);
        let stated = world.read(htlc, &Htlc::eip712DomainCall {})?;
        assert_eq!((stated.fields.0, stated.name.as_str(), stated.version_.as_str()), ([0x0f], "HTLC", version));
        assert_eq!((stated.chainId, stated.verifyingContract), (U256::from(SEPOLIA), htlc));
        assert!(stated.salt.is_zero() && stated.extensions.is_empty());
    }
    Ok(())
}
