//! What a wallet pins: a registry that contradicts itself judges no order, and one that is written is read as the same.
use std::io::Write;
use std::process::{Command, Stdio};

use countersign::{
    Blame, Code, Registry,
    report::Origin,
    trust::{EvmGeneration, Generation, Notice, StarknetGeneration},
};
use countersign_testkit::{Tree, asset_index, registry, registry_json, set};
use serde_json::{Value, json};

/// A registry that contradicts itself is refused before any order is judged by it.
#[test]
fn a_registry_that_contradicts_itself_is_refused() {
    let good = Tree::parse(&registry_json().to_string());
    assert!(Registry::from_json(good.text().as_bytes()).is_ok());
    let Some(Tree::Array(chains)) = good.at("/chains").cloned() else { panic!("chains") };
    let Some(Tree::Array(assets)) = good.at("/assets").cloned() else { panic!("assets") };
    let (chain, asset) = (&chains[0], &assets[1]);
    let set = |at: &str, value: &str| {
        let mut registry = good.clone();
        registry.set(at, Tree::parse(value));
        registry.text()
    };
    for (what, text, code, at) in [
        ("a chain twice", set("/chains/-", &chain.text()), Code::RegistryMalformed, format!("/chains/{}", chains.len())),
        ("an asset twice", set("/assets/-", &asset.text()), Code::RegistryMalformed, format!("/assets/{}", assets.len())),
        ("another chain id", set("/assets/1/chain_id", "2"), Code::RegistryMalformed, "/assets/1".to_owned()),
        ("an asset of another chain", set("/assets/1/chain", "\"base\""), Code::RegistryMalformed, "/assets/1".to_owned()),
        ("an asset of no chain", set("/assets/1/id", "\"nowhere:usdc\""), Code::RegistryMalformed, "/assets/1".to_owned()),
        (
            "a mistyped HTLC",
            set("/assets/1/htlc/address", "\"0x2A9eA852e504D0d531f83Df5D9EC1938F33D5B9e\""),
            Code::RegistryMalformed,
            "/assets/1".to_owned(),
        ),
        ("a token without address", set("/assets/1/token/address", "\"\""), Code::RegistryMalformed, "/assets/1".to_owned()),
        ("a limit in coins", set("/assets/1/min_amount", "\"0.5\""), Code::RegistryMalformed, "/assets/1".to_owned()),
        ("a malformed network", set("/chains/0/id", "\"evm:x\""), Code::RegistryMalformed, "/chains/0".to_owned()),
        ("a solver without account", set("/solvers/0/address", "\"0x12\""), Code::RegistryMalformed, "/solvers/0".to_owned()),
        ("a solver of no chain", set("/solvers/0/chain", "\"nowhere\""), Code::RegistryMalformed, "/solvers/0".to_owned()),
        ("chains of another type", set("/chains", "{}"), Code::WrongType, "/chains".to_owned()),
    ] {
        let refusal = Registry::from_json(text.as_bytes()).map(|_| ()).expect_err(what);
        assert_eq!((refusal.code(), refusal.location()), (code, at.as_str()), "{what}: {refusal}");
    }
    for member in ["/chains", "/assets"] {
        let mut registry = good.clone();
        registry.remove(member);
        let refusal = Registry::from_json(registry.text().as_bytes()).map(|_| ()).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::MissingField, member));
    }
}

#[test]
fn lists_in_the_services_envelope_are_pinned_too() {
    let pins = registry_json();
    let list = |name: &str| pins[name].to_string();
    let enveloped = |name: &str| json!({ "status": "Ok", "result": pins[name] }).to_string();
    let pinned = |texts: [String; 3]| {
        let [chains, assets, liquidity] = texts;
        let pins = Registry::from_service(chains.as_bytes(), assets.as_bytes(), liquidity.as_bytes()).unwrap();
        serde_json::to_string(&pins.registry).unwrap()
    };
    let names = ["chains", "assets", "solvers"];
    assert_eq!(pinned(names.map(enveloped)), pinned(names.map(list)));
    let refused = json!({ "status": "Error", "error": "busy" }).to_string();
    assert!(Registry::from_service(refused.as_bytes(), b"[]", b"[]").is_err());
}

#[test]
fn a_chain_of_an_unknown_family_is_left_out_of_a_file() {
    let mut pins = registry_json();
    let mut chain = pins["chains"][0].clone();
    (chain["chain"], chain["id"]) = (json!("cosmoshub"), json!("cosmos:cosmoshub-4"));
    pins["chains"].as_array_mut().unwrap().push(chain);
    let read = Registry::from_json(pins.to_string().as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), serde_json::to_string(registry()).unwrap());
}

#[test]
fn a_known_chain_has_its_known_id() {
    let named = |at: &str, value: &str| {
        let mut pins = registry_json();
        let index = pins["chains"].as_array().unwrap().iter().position(|chain| chain["chain"] == "ethereum").unwrap();
        pins["chains"][index][at] = json!(value);
        Registry::from_json(pins.to_string().as_bytes()).map(drop).unwrap_err().to_string()
    };
    let text = named("id", "evm:5");
    assert!(text.contains("the id of ethereum is evm:1, not evm:5"), "{text}");
    let text = named("chain", "etherium");
    assert!(text.contains("evm:1 is the id of ethereum, not of etherium"), "{text}");
}

#[test]
fn each_sponsor_of_a_chain_is_pinned_once() {
    let mut pins = registry_json();
    let sponsor = |address: &str| json!({ "chain": "solana", "address": address });
    // Published programs' addresses: any account can be a sponsor.
    let (one, other) = ("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");
    pins["sponsors"] = json!([sponsor(one), sponsor(other), sponsor(one)]);
    let read = Registry::from_json(pins.to_string().as_bytes()).unwrap();
    let addresses: Vec<_> = read.sponsors_of("solana").iter().map(|sponsor| sponsor.address.as_str()).collect();
    assert_eq!(addresses, [one, other]);
}

/// What is pinned is written and read again without a change.
#[test]
fn a_registry_survives_its_own_file() {
    let first = serde_json::to_string(registry()).unwrap();
    let again = Registry::from_json(first.as_bytes()).unwrap();
    assert_eq!(first, serde_json::to_string(&again).unwrap());
    assert_eq!(registry().assets().len(), again.assets().len());
    assert_eq!(registry().solvers(), again.solvers());
}

/// The fixtures' registry with changes.
fn changed(changes: &[(&str, Value)]) -> Value {
    let mut registry = registry_json();
    for (at, value) in changes {
        set(&mut registry, at, value.clone());
    }
    registry
}

/// Pins the lists of a registry as if the service had served them.
fn served(registry: &Value) -> (Registry, Vec<Notice>) {
    let list = |name: &str| registry[name].to_string();
    let pins = Registry::from_service(list("chains").as_bytes(), list("assets").as_bytes(), list("solvers").as_bytes()).unwrap();
    (pins.registry, pins.notices)
}

fn at(list: &str, index: usize, member: &str) -> String {
    format!("/{list}/{index}{member}")
}

/// What no registry may say is refused in a wallet's own file. In the service's lists it is left out with everything that
/// depends on it, named, and the rest is pinned.
#[test]
fn what_no_registry_may_say_is_refused_or_left_out() {
    let text = registry_json();
    let entry = |list: &str, index: usize, member: &str, value: Value| changed(&[(&at(list, index, member), value)]);
    let asset = |id: &str, member: &str, value: Value| entry("assets", asset_index(id), member, value);
    let chain = |name: &str| text["chains"].as_array().unwrap().iter().position(|chain| chain["chain"] == name).unwrap();
    let solver = |name: &str| text["solvers"].as_array().unwrap().iter().position(|solver| solver["chain"] == name).unwrap();
    let htlc = |id: &str| text["assets"][asset_index(id)]["htlc"]["address"].clone();
    let zero = json!("0x0000000000000000000000000000000000000000");
    // G and 2G of secp256k1 (SEC 2, section 2.4.1).
    let (g, g2) = (
        json!("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"),
        json!("c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5"),
    );
    for (what, registry, entry) in [
        ("a known name with another id", entry("chains", chain("unichain"), "/id", json!("evm:131")), "chain unichain"),
        ("a known id under another name", entry("chains", chain("unichain"), "/chain", json!("uni")), "chain uni"),
        ("a main network's name on a test network", entry("chains", chain("solana"), "/id", json!("solana:103")), "chain solana"),
        (
            "an HTLC that is its token",
            asset("base:usdc", "/htlc/address", text["assets"][asset_index("base:usdc")]["token"]["address"].clone()),
            "asset base:usdc",
        ),
        // No contract can be asked for these, and an amount of 0.001 BTC with 11 decimals would be a whole one.
        ("decimals of ETH", asset("base:eth", "/decimals", json!(21)), "asset base:eth"),
        ("decimals of TRX", asset("tron:trx", "/decimals", json!(9)), "asset tron:trx"),
        ("decimals of SOL", asset("solana:sol", "/decimals", json!(12)), "asset solana:sol"),
        ("decimals of SUI", asset("sui:sui", "/decimals", json!(12)), "asset sui:sui"),
        ("decimals of BTC", asset("bitcoin:btc", "/decimals", json!(11)), "asset bitcoin:btc"),
        ("decimals of LTC", asset("litecoin:ltc", "/decimals", json!(5)), "asset litecoin:ltc"),
        ("an HTLC that is zero", asset("base:usdc", "/htlc/address", zero.clone()), "asset base:usdc"),
        ("a token that is zero", asset("base:usdc", "/token/address", zero.clone()), "asset base:usdc"),
        ("an internal key that everybody knows", asset("bitcoin:btc", "/htlc/address", g), "asset bitcoin:btc"),
        (
            "a solver's key that everybody knows",
            entry("solvers", solver("bitcoin"), "/address", g2),
            "solver 0xcf0776776c4a75880aaaba155bb09b50e66cf91f on bitcoin",
        ),
        (
            "a solver that is zero",
            entry("solvers", solver("base"), "/address", zero),
            "solver 0xcf0776776c4a75880aaaba155bb09b50e66cf91f on base",
        ),
        (
            "a solver that is an HTLC",
            entry("solvers", solver("base"), "/address", htlc("base:eth")),
            "solver 0xcf0776776c4a75880aaaba155bb09b50e66cf91f on base",
        ),
        (
            "a solver that is the internal key",
            entry("solvers", solver("bitcoin"), "/address", htlc("bitcoin:btc")),
            "solver 0xcf0776776c4a75880aaaba155bb09b50e66cf91f on bitcoin",
        ),
    ] {
        let refusal = Registry::from_json(registry.to_string().as_bytes()).map(drop).expect_err(what);
        assert_eq!(refusal.code(), Code::RegistryMalformed, "{what}: {refusal}");
        let (pinned, notices) = served(&registry);
        let notice = &notices[0];
        assert!(notice.entry.starts_with(entry) && notice.code() == Code::RegistryMalformed, "{what}: {notices:?}");
        assert!(notice.to_string().starts_with(&format!("{} is not pinned: ", notice.entry)), "{notice}");
        assert!(!pinned.assets().is_empty() && pinned.assets().iter().all(|asset| entry != format!("asset {}", asset.record.id)), "{what}");
        assert!(pinned.chains().all(|chain| entry != format!("chain {}", chain.name())), "{what}");
        // What depends on it is named as well, and nothing of it is pinned.
        let chains: Vec<_> = pinned.chains().map(|chain| chain.name()).collect();
        assert!(pinned.assets().iter().all(|asset| chains.contains(&asset.record.chain.as_str())), "{what}");
        assert!(pinned.solvers().iter().all(|solver| chains.contains(&solver.chain.as_str())), "{what}");
        let listed = |list: &str| registry[list].as_array().unwrap().len();
        let all = listed("chains") + listed("assets") + listed("solvers");
        assert_eq!(chains.len() + pinned.assets().len() + pinned.solvers().len() + notices.len(), all, "{what}");
    }
}

/// Of entries that contradict each other none is pinned: nothing tells which is right.
#[test]
fn of_a_contradiction_neither_side_is_pinned() {
    let text = registry_json();
    let copy = |list: &str, index: usize, members: &[(&str, Value)]| {
        let mut entry = text[list][index].clone();
        for (member, value) in members {
            set(&mut entry, member, value.clone());
        }
        changed(&[(&format!("/{list}/-"), entry)])
    };
    let usdc = |members: &[(&str, Value)]| copy("assets", asset_index("base:usdc"), members);
    let tron = |members: &[(&str, Value)]| copy("assets", asset_index("tron:usdt"), members);
    let starknet = |members: &[(&str, Value)]| copy("assets", asset_index("starknet:wbtc"), members);
    let (id, token) = (json!("base:dai"), json!("0x1212121212121212121212121212121212121212"));
    for (what, registry, left_out) in [
        ("another token", usdc(&[("/id", id.clone()), ("/token/address", token.clone())]), &["asset base:usdc", "asset base:dai"][..]),
        (
            "no token",
            usdc(&[("/id", id.clone()), ("/token", Value::Null), ("/decimals", json!(18))]),
            &["asset base:usdc", "asset base:dai"],
        ),
        ("other decimals", usdc(&[("/id", id.clone()), ("/decimals", json!(18))]), &["asset base:usdc", "asset base:dai"]),
        ("other decimals on Tron", tron(&[("/id", json!("tron:x")), ("/decimals", json!(18))]), &["asset tron:usdt", "asset tron:x"]),
        (
            "other decimals on Starknet",
            starknet(&[("/id", json!("starknet:x")), ("/decimals", json!(18))]),
            &["asset starknet:wbtc", "asset starknet:x"],
        ),
        (
            "other decimals in another HTLC",
            usdc(&[("/id", id.clone()), ("/htlc/address", token.clone()), ("/decimals", json!(18))]),
            &["asset base:usdc", "asset base:dai"],
        ),
        (
            "other decimals where a program has all tokens",
            copy("assets", asset_index("solana:usdc"), &[("/id", json!("solana:x")), ("/decimals", json!(9))]),
            &["asset solana:usdc", "asset solana:x"],
        ),
        ("an asset twice", usdc(&[]), &["asset base:usdc", "asset base:usdc"]),
        ("an id of two chains", copy("chains", 0, &[("/chain", json!("ethereum"))]), &["chain ethereum", "chain ethereum"]),
    ] {
        let refusal = Registry::from_json(registry.to_string().as_bytes()).map(drop).expect_err(what);
        assert_eq!(refusal.code(), Code::RegistryMalformed, "{what}: {refusal}");
        let (pinned, notices) = served(&registry);
        assert_eq!(notices.iter().take(2).map(|notice| notice.entry.as_str()).collect::<Vec<_>>(), left_out, "{what}");
        let pinned: Vec<_> = pinned.assets().iter().map(|asset| format!("asset {}", asset.record.id)).collect();
        assert!(left_out.iter().all(|entry| !pinned.iter().any(|pinned| pinned == entry)), "{what}");
    }
    // Two chains of one id, neither of them known.
    let new = |name: &str| json!({"chain": name, "id": "evm:143", "name": name});
    let registry = changed(&[("/chains/-", new("monad")), ("/chains/-", new("nomad"))]);
    assert_eq!(served(&registry).1.iter().map(|notice| notice.entry.as_str()).collect::<Vec<_>>(), ["chain monad", "chain nomad"]);
    // A chain beside one of the same name that cannot be pinned, known name or not.
    for (name, id, other) in [("monad", "evm:143", "xrpl:mainnet"), ("base", "evm:8453", "evm:8454"), ("base", "evm:8453", "xrpl:mainnet")]
    {
        let chain = |id: &str| json!({"chain": name, "id": id, "name": name});
        let registry = changed(&[("/chains", json!([chain(id), chain(other)]))]);
        assert!(Registry::from_json(registry.to_string().as_bytes()).is_err(), "{name} {other}");
        let (pinned, notices) = served(&registry);
        assert_eq!((pinned.chains().count(), pinned.assets().len()), (0, 0), "{name} {other}");
        assert_eq!(notices.iter().filter(|notice| notice.entry == format!("chain {name}")).count(), 2, "{name} {other}");
    }
    // Two names of exactly the same asset do not contradict each other, nor do two tokens of one program.
    assert_eq!(served(&usdc(&[("/id", id)])).1, []);
    assert_eq!(served(&text).1, []);
}

/// One contract is of one generation: two assets on it cannot be judged by different ones.
#[test]
fn assets_on_one_htlc_name_one_generation() {
    let text = registry_json();
    for (id, other, [one, two]) in [
        ("base:usdc", "base:dai", ["old", "v3"]),
        ("starknet:wbtc", "starknet:x", ["2025_11", "client_3_1_3"]),
        ("solana:usdc", "solana:x", ["client_3_1_3", "audited_2025_11"]),
    ] {
        let index = asset_index(id);
        let at = format!("/assets/{index}/htlc/generation");
        let with = |first: Option<&str>, second: Option<&str>| {
            let mut entry = text["assets"][index].clone();
            set(&mut entry, "/id", json!(other));
            set(&mut entry, "/htlc/generation", json!(second));
            changed(&[(&at, json!(first)), ("/assets/-", entry)])
        };
        let read = |registry: &Value| Registry::from_json(registry.to_string().as_bytes());
        for (first, second) in [(Some(one), Some(one)), (Some(two), None), (None, Some(two)), (None, None)] {
            assert!(read(&with(first, second)).is_ok(), "{id} {first:?} {second:?}");
        }
        let refusal = read(&with(Some(one), Some(two))).map(drop).expect_err(id);
        let location = format!("/assets/{}/htlc/generation", text["assets"].as_array().unwrap().len());
        assert_eq!((refusal.code(), refusal.location()), (Code::RegistryMalformed, location.as_str()), "{id}: {refusal}");
        assert!(refusal.to_string().contains(other) && refusal.to_string().contains(id), "{refusal}");
        // What the service says about generations is not believed, so it contradicts nothing.
        assert_eq!(served(&with(Some(one), Some(two))).1, []);
    }
}

/// The service does not list generations, so a refreshed registry takes them from the older pins. A contract at another address may
/// be of another generation, and what is already pinned is not overwritten.
#[test]
fn generations_are_kept_only_for_contracts_that_are_the_same() {
    let base = asset_index("base:usdc");
    let at = |member: &str| format!("/assets/{base}/htlc/{member}");
    let read = |registry: &Value| Registry::from_json(registry.to_string().as_bytes()).unwrap();
    let generation = |registry: &Registry| registry.asset("base:usdc").unwrap().generation;
    let (old, v3) = (Some(Generation::Evm(EvmGeneration::OLD)), Some(Generation::Evm(EvmGeneration::V3)));
    let pinned = read(&changed(&[(&at("generation"), json!("old"))]));
    let (listed, _) = served(&registry_json());
    assert_eq!((generation(&pinned), generation(&listed)), (old, None));

    let refreshed = listed.clone().with_generations_of(&pinned);
    assert_eq!(generation(&refreshed), old);
    assert_eq!((refreshed.assets().len(), refreshed.solvers()), (listed.assets().len(), listed.solvers()), "everything else is kept");
    assert_eq!(read(&serde_json::from_slice(&refreshed.to_file()).unwrap()).asset("base:usdc").unwrap().generation, old);

    let (moved, _) = served(&changed(&[(&at("address"), json!("0x1111111111111111111111111111111111111111"))]));
    assert_eq!(generation(&moved.with_generations_of(&pinned)), None);
    let newer = read(&changed(&[(&at("generation"), json!("v3"))]));
    assert_eq!(generation(&newer.clone().with_generations_of(&pinned)), v3);

    // A generation of another family, or of an asset that is not pinned, changes nothing.
    let starknet = Some(Generation::Starknet(StarknetGeneration::CLIENT_3_1_3));
    assert_eq!(newer.clone().with_generation("base:usdc", starknet).to_file(), newer.to_file());
    assert_eq!(newer.clone().with_generation("base:nothing", old).to_file(), newer.to_file());
    assert_eq!(newer.with_generation("base:usdc", None).to_file(), read(&registry_json()).to_file());
}

/// What this library does not know, and what cannot be read, is named. Nothing else is lost.
#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_pinned() {
    let registry = changed(&[
        ("/chains/-", json!({"chain": "xrpl", "id": "xrpl:mainnet", "name": "XRPL"})),
        ("/chains/-", json!({"chain": "odd", "id": "evm:x", "name": "odd"})),
        ("/chains/-", json!(7)),
        ("/assets/-", json!({"id": "xrpl:xrp", "chain": "xrpl", "decimals": 6})),
        ("/assets/-", json!({"id": "odd:x", "chain": "odd", "decimals": 6})),
        ("/assets/-", json!({"id": "base:half"})),
        ("/solvers/-", json!({"solver_id": "s", "chain": "xrpl", "address": "r"})),
        ("/solvers/-", json!({"solver_id": "s"})),
    ]);
    assert!(Registry::from_json(registry.to_string().as_bytes()).is_err());
    let (pinned, notices) = served(&registry);
    assert_eq!(pinned.to_file(), {
        let (plain, none) = served(&registry_json());
        assert_eq!(none, []);
        plain.to_file()
    });
    let entries: Vec<_> = notices.iter().map(|notice| (notice.entry.as_str(), notice.code())).collect();
    // It comes after two others.
    let half = format!("/assets/{}", registry_json()["assets"].as_array().unwrap().len() + 2);
    assert_eq!(
        entries,
        [
            ("chain xrpl", Code::UnsupportedFamily),
            ("chain odd", Code::RegistryMalformed),
            ("/chains/22", Code::WrongType),
            ("asset xrpl:xrp", Code::RegistryMalformed),
            ("asset odd:x", Code::RegistryMalformed),
            (half.as_str(), Code::MissingField),
            ("solver s on xrpl, r", Code::RegistryMalformed),
            ("/liquidity/41", Code::MissingField),
        ]
    );
    assert!(notices.iter().all(|notice| notice.refusal.origin() == Origin::Service), "{notices:?}");
    let refusal = Registry::from_service(b"{}", b"[]", b"[]").expect_err("a body that is not a list");
    assert_eq!((refusal.blame(), refusal.remedy()), (Blame::Service, "do not sign; report the service"), "{refusal}");
    // The same in the wallet's own file is the wallet's.
    let own = Registry::from_json(br#"{"chains":7}"#).expect_err("not a list");
    assert_eq!((own.blame(), own.remedy()), (Blame::Caller, "correct the field"), "{own}");
}

/// The digest is that of the file, whatever the order in which the lists came.
#[test]
fn equal_pins_have_equal_digests() {
    let mut reversed = registry_json();
    for list in ["chains", "assets", "solvers"] {
        reversed[list].as_array_mut().unwrap().reverse();
    }
    assert_eq!(Registry::from_json(reversed.to_string().as_bytes()).unwrap().digest(), registry().digest());
    assert_eq!(Registry::from_json(&registry().to_file()).unwrap().to_file(), registry().to_file());
}

/// Any tool computes the digest from the file.
#[test]
fn python_computes_the_same_digest() {
    let script = "import sys, hashlib\nprint(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())";
    let child = Command::new("python3").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return countersign_testkit::skipped("python3 is not installed").unwrap() };
    child.stdin.take().unwrap().write_all(&registry().to_file()).unwrap();
    let output = child.wait_with_output().unwrap();
    let digest: String = registry().digest().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), digest);
}
