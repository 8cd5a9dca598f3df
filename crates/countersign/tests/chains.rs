//! What is known about each chain decides when its payments are final, how old an endpoint's newest block may be, and when too little of
//! a timelock is left. The rows after the listed chains are test networks of listed ones, other chains, and names that begin like a chain
//! of another family.
use countersign::{
    Policy, Registry, U256,
    chains::{Finality, FinalityRule, Pace},
    trust::Chain,
};

/// Chain, id, milliseconds of a unit by the batch contract, today and at the fastest, finality, settle, margin, payment window, greatest age
/// and lead of the newest block in seconds; an asterisk for a test network.
const EXPECTED: &str = "
ethereum evm:1 12000 12000 12000 safe 768 s 600 s 3600 120 60
ethereum_sepolia evm:11155111 12000 12000 12000 safe 768 s 600 s 3600 120 60 *
base evm:8453 2000 200 100 safe 600 s 600 s 3600 120 60
base_sepolia evm:84532 2000 200 100 safe 600 s 600 s 3600 120 60 *
arbitrum evm:42161 12000 250 100 safe 600 s 600 s 3600 120 60
arbitrum_sepolia evm:421614 12000 250 100 safe 600 s 600 s 3600 120 60 *
bnbchain evm:56 3000 450 225 finalized 120 s 1800 s 3600 120 60
bnbchain_testnet evm:97 3000 450 225 finalized 120 s 1800 s 3600 120 60 *
unichain evm:130 2000 1000 250 safe 600 s 600 s 3600 120 60
unichain_sepolia evm:1301 2000 1000 250 safe 600 s 600 s 3600 120 60 *
botanix evm:3637 2000 2000 100 safe 600 s 600 s 3600 120 60
botanix_testnet evm:3636 2000 2000 100 safe 600 s 600 s 3600 120 60 *
corn evm:21000000 2000 2000 100 safe 600 s 600 s 3600 120 60
corn_testnet evm:21000001 2000 2000 100 safe 600 s 600 s 3600 120 60 *
tron tron:728126428 3000 3000 3000 finalized 60 s 900 s 3600 120 60
tron_shasta tron:2494104990 3000 3000 3000 finalized 60 s 900 s 3600 120 60 *
tron_nile tron:3448148188 3000 3000 3000 finalized 60 s 900 s 3600 120 60 *
starknet starknet:SN_MAIN 30000 2000 1000 safe 1800 s 900 s 3600 120 60
starknet_sepolia starknet:SN_SEPOLIA 30000 2000 1000 safe 1800 s 900 s 3600 120 60 *
solana solana:mainnet 400 250 100 finalized 30 s 600 s 3600 120 60
solana_testnet solana:testnet 400 250 100 finalized 30 s 600 s 3600 120 60 *
solana_devnet solana:devnet 400 250 100 finalized 30 s 600 s 3600 120 60 *
sui sui:mainnet 1 1 1 finalized 10 s 3600 s 3600 120 60
sui_testnet sui:testnet 1 1 1 finalized 10 s 3600 s 3600 120 60 *
sui_devnet sui:devnet 1 1 1 finalized 10 s 3600 s 3600 120 60 *
bitcoin bitcoin:mainnet 600000 600000 300000 2 blocks deep 2 6 21600 10800 7200
bitcoin_testnet bitcoin:testnet 600000 600000 300000 2 blocks deep 2 6 21600 10800 7200 *
bitcoin_testnet4 bitcoin:testnet4 600000 600000 300000 2 blocks deep 2 6 21600 10800 7200 *
bitcoin_signet bitcoin:signet 600000 600000 300000 2 blocks deep 2 6 21600 10800 7200 *
bitcoin_regtest bitcoin:regtest 600000 600000 300000 2 blocks deep 2 6 21600 10800 7200 *
litecoin litecoin:mainnet 150000 150000 75000 6 blocks deep 6 12 3600 10800 7200
litecoin_testnet litecoin:testnet 150000 150000 75000 6 blocks deep 6 12 3600 10800 7200 *
litecoin_regtest litecoin:regtest 150000 150000 75000 6 blocks deep 6 12 3600 10800 7200 *
ethereum_hoodi evm:560048 12000 12000 12000 safe 768 s 600 s 3600 120 60 *
arbitrum_nova evm:42170 12000 250 100 safe 600 s 600 s 3600 120 60
base_hoodi evm:7 2000 200 100 safe 600 s 600 s 3600 120 60 *
bnbchain_devnet evm:98 3000 450 225 finalized 120 s 1800 s 3600 120 60 *
corn_devnet evm:9 2000 2000 100 safe 600 s 600 s 3600 120 60 *
monad evm:143 2000 2000 100 safe 600 s 600 s 3600 120 60
monad_testnet evm:10143 2000 2000 100 safe 600 s 600 s 3600 120 60 *
eth evm:2 2000 2000 100 safe 600 s 600 s 3600 120 60
ethereum2 evm:3 2000 2000 100 safe 600 s 600 s 3600 120 60
localnet evm:31337 2000 2000 100 safe 600 s 600 s 3600 120 60 *
bitcoin_evm evm:11 2000 2000 100 safe 600 s 600 s 3600 120 60
tron_local tron:5 3000 3000 3000 finalized 60 s 900 s 3600 120 60 *
base_tron tron:6 3000 3000 3000 finalized 60 s 900 s 3600 120 60
starknet_katana starknet:KATANA 30000 2000 1000 safe 1800 s 900 s 3600 120 60
ethereum_starknet starknet:SN_X 30000 2000 1000 safe 1800 s 900 s 3600 120 60
solana_local solana:localnet 400 250 100 finalized 30 s 600 s 3600 120 60 *
sui_local sui:localnet 1 1 1 finalized 10 s 3600 s 3600 120 60 *
ltc litecoin:signet 150000 150000 75000 6 blocks deep 6 12 3600 10800 7200 *
litecoin_testnet3 litecoin:testnet3 150000 150000 75000 6 blocks deep 6 12 3600 10800 7200 *
bitcoin_sidechain litecoin:testnet3 150000 150000 75000 6 blocks deep 6 12 3600 10800 7200 *
";

fn registry(name: &str, id: &str, block_time: &str) -> Registry {
    let text = format!(r#"{{"chains":[{{"chain":"{name}","id":"{id}","name":"x"{block_time}}}],"assets":[]}}"#);
    text.parse().unwrap_or_else(|error| panic!("{name} {id}: {error}"))
}

fn row(chain: &Chain, listed: &Chain) -> String {
    let (name, id, profile) = (chain.name(), &chain.record.id, chain.profile);
    let Pace { contract, nominal, fastest, .. } = chain.pace;
    // The registry's values come first.
    let (was, is) = (chain.pace, listed.pace);
    assert_eq!((is.contract, is.nominal, is.fastest), (7_000, 7_000, was.fastest.min(7_000)), "{name}");
    let [window, age, ahead] = [profile.payment_window, profile.max_head_age, profile.max_head_ahead()].map(|time| time.as_secs());
    let is_test = if chain.test { " *" } else { "" };
    let FinalityRule { finality, settle, margin, .. } = profile.finality;
    format!("{name} {id} {contract} {nominal} {fastest} {finality} {settle} {margin} {window} {age} {ahead}{is_test}")
}

/// A larger payment of the chain's own coin must be deeper. What a token is worth is not known, and the policy's word counts for every
/// amount.
#[test]
fn finality_grows_with_the_payment() {
    let text = r#"{"chains":[{"chain":"bitcoin","id":"bitcoin:mainnet"},{"chain":"litecoin","id":"litecoin:mainnet"},
        {"chain":"ethereum","id":"evm:1"},{"chain":"bnbchain","id":"evm:56"}],"assets":[
        {"id":"bitcoin:btc","chain":"bitcoin","decimals":8},{"id":"litecoin:ltc","chain":"litecoin","decimals":8},
        {"id":"ethereum:eth","chain":"ethereum","decimals":18},{"id":"bnbchain:bnb","chain":"bnbchain","decimals":18},
        {"id":"ethereum:usdc","chain":"ethereum","decimals":6,"token":{"address":"0xf4358ae0f437456d6815d94f88239c848aeac767"}}]}"#;
    let registry: Registry = text.parse().unwrap();
    let rule = |policy: &Policy, asset: &str, amount: u128| {
        let FinalityRule { finality, settle, margin, .. } = policy.finality_of(registry.asset(asset).unwrap(), U256::from(amount));
        format!("{finality}, {settle}, {margin}")
    };
    const COIN: u128 = 100_000_000;
    const ETHER: u128 = 1_000_000_000_000_000_000;
    for (asset, amount, expected) in [
        ("bitcoin:btc", COIN - 1, "2 blocks deep, 2, 6"),
        ("bitcoin:btc", COIN, "3 blocks deep, 3, 6"),
        ("bitcoin:btc", 10 * COIN - 1, "3 blocks deep, 3, 6"),
        ("bitcoin:btc", 10 * COIN, "6 blocks deep, 6, 6"),
        ("bitcoin:btc", u128::MAX, "6 blocks deep, 6, 6"),
        ("litecoin:ltc", 100 * COIN - 1, "6 blocks deep, 6, 12"),
        ("litecoin:ltc", 100 * COIN, "12 blocks deep, 12, 12"),
        ("litecoin:ltc", 1_000 * COIN, "24 blocks deep, 24, 12"),
        ("ethereum:eth", 10 * ETHER - 1, "safe, 768 s, 600 s"),
        ("ethereum:eth", 10 * ETHER, "finalized, 1800 s, 600 s"),
        ("ethereum:usdc", u128::MAX, "safe, 768 s, 600 s"),
        ("bnbchain:bnb", u128::MAX, "finalized, 120 s, 1800 s"),
    ] {
        assert_eq!(rule(&Policy::default(), asset, amount), expected, "{asset} {amount}");
    }
    let own = Policy::default().with_finality("bitcoin", FinalityRule::new(Finality::Depth(4), 4, 7));
    assert_eq!([1, COIN, 10 * COIN].map(|amount| rule(&own, "bitcoin:btc", amount)), ["4 blocks deep, 4, 7"; 3]);
    let by_asset = own.with_finality("ethereum:usdc", FinalityRule::new(Finality::Finalized, 150, 50));
    assert_eq!(rule(&by_asset, "ethereum:usdc", 1), "finalized, 150, 50");
    assert_eq!(rule(&by_asset, "ethereum:eth", 1), "safe, 768 s, 600 s", "another asset of the chain");
    let by_chain = Policy::default().with_finality("ethereum", FinalityRule::new(Finality::Finalized, 150, 50));
    let ignores_value = |policy: &Policy, asset: &str| policy.ignores_value(registry.asset(asset).unwrap());
    assert!(ignores_value(&Policy::default(), "ethereum:usdc"));
    assert!(!ignores_value(&Policy::default(), "ethereum:eth") && !ignores_value(&Policy::default(), "bitcoin:btc"));
    assert!(!ignores_value(&Policy::default(), "bnbchain:bnb"), "nothing is stricter than a final block");
    assert!(!ignores_value(&by_asset, "ethereum:usdc") && !ignores_value(&by_chain, "ethereum:usdc"), "the policy's word");
}

#[test]
fn every_chain_keeps_its_times_and_its_finality() {
    let rows = EXPECTED.trim().lines().map(|line| {
        let [name, id] = [0, 1].map(|index| line.split(' ').nth(index).unwrap());
        let (plain, listed) = (registry(name, id, ""), registry(name, id, r#","block_time":7"#));
        row(plain.chains().next().unwrap(), listed.chains().next().unwrap())
    });
    assert_eq!(rows.collect::<Vec<_>>().join("\n"), EXPECTED.trim());
}
