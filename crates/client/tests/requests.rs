//! Every request, compared byte for byte where the interface fixes the bytes.
use countersign_client::countersign::wire::BasisPoints;
use countersign_client::countersign::{AssetId, CreateOrder, GaslessSubmission, U256};
use countersign_client::{Action, Api, AppId, Error, List, OrderFilter, OrderId, OrderStatus, QuoteAmount, QuoteRequest, Request, Secret};

const ID: &str = "f8a12d1320fce93c5888b6014abeb5f5de85ecc8c0eef8133f3da03822592121";

fn api() -> Api {
    Api::new("https://service.example/base/", Some(AppId::new("app-1").unwrap())).unwrap()
}

fn asset(text: &str) -> AssetId {
    AssetId::parse(text).unwrap()
}

/// Method, path with query, and body.
fn shown(request: &Request) -> (String, String) {
    let query = request.url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let body = request.body.as_ref().map(|body| String::from_utf8(body.to_vec()).unwrap()).unwrap_or_default();
    (format!("{} {}{query}", request.method.name(), request.url.path()), body)
}

fn headers(request: &Request) -> Vec<(&'static str, String)> {
    request.headers.iter().map(|(name, value)| (*name, value.to_string())).collect()
}

#[test]
fn each_endpoint_has_its_method_path_and_query() {
    let (api, id) = (api(), OrderId::parse(ID).unwrap());
    let mut quote = QuoteRequest::new(asset("bitcoin_testnet:btc"), asset("base_sepolia:wbtc"), QuoteAmount::From(U256::from(50_000)));
    let plain = api.quote(&quote).unwrap();
    quote.affiliate_fee = Some(BasisPoints::new(30));
    quote.slippage = Some(BasisPoints::new(50));
    quote.indicative = true;
    let full = api.quote(&quote).unwrap();
    quote.amount = QuoteAmount::To(U256::from(1));
    let filter = OrderFilter {
        from_owner: Some("0xA b&c".into()),
        to_owner: Some("t".into()),
        address: Some("a".into()),
        tx_hash: Some("h".into()),
        from_chain: Some("ethereum".into()),
        to_chain: Some("bitcoin".into()),
        status: ["in-progress", "display"].map(|name| name.parse().unwrap()).to_vec(),
        page: Some(2),
        per_page: Some(50),
    };
    for (request, line) in [
        (plain, "GET /base/v2/quote?from=bitcoin_testnet%3Abtc&to=base_sepolia%3Awbtc&from_amount=50000".to_owned()),
        (
            full,
            "GET /base/v2/quote?from=bitcoin_testnet%3Abtc&to=base_sepolia%3Awbtc&from_amount=50000&affiliate_fee=30&slippage=50&indicative=true"
                .to_owned(),
        ),
        (
            api.quote(&quote).unwrap(),
            "GET /base/v2/quote?from=bitcoin_testnet%3Abtc&to=base_sepolia%3Awbtc&to_amount=1&affiliate_fee=30&slippage=50&indicative=true"
                .to_owned(),
        ),
        (api.order(&id), format!("GET /base/v2/orders/{ID}")),
        (api.orders(&OrderFilter::default()), "GET /base/v2/orders".to_owned()),
        (
            api.orders(&filter),
            "GET /base/v2/orders?from_owner=0xA+b%26c&to_owner=t&address=a&tx_hash=h&from_chain=ethereum&to_chain=bitcoin&page=2&per_page=50&status=in-progress%2Cdisplay"
                .to_owned(),
        ),
        (api.instant_refund_hash(&id), format!("GET /base/v2/orders/{ID}/instant-refund-hash")),
        (api.earnings(), "GET /base/v2/apps/earnings".to_owned()),
        (api.list(List::Chains, &[("network", "testnet")]), "GET /base/v2/chains?network=testnet".to_owned()),
        (api.list(List::Assets, &[]), "GET /base/v2/assets".to_owned()),
        (api.list(List::Liquidity, &[]), "GET /base/v2/liquidity".to_owned()),
        (api.list(List::Fee, &[("from", "1"), ("to", "2")]), "GET /base/v2/fee?from=1&to=2".to_owned()),
        (api.list(List::Fees, &[]), "GET /base/v2/fees".to_owned()),
        (api.list(List::Volume, &[]), "GET /base/v2/volume".to_owned()),
        (api.list(List::Schemas, &[]), "GET /base/v2/schemas".to_owned()),
        (api.schema("evm:htlc_erc20").unwrap(), "GET /base/v2/schemas/evm:htlc_erc20".to_owned()),
        (api.list(List::Policy, &[]), "GET /base/v2/policy".to_owned()),
        (api.health(), "GET /base/v2/health".to_owned()),
    ] {
        assert_eq!(shown(&request), (line, String::new()));
        assert_eq!(request.url.host_str(), Some("service.example"));
    }
}

#[test]
fn a_status_is_one_of_the_names_of_the_service() {
    assert!(OrderStatus::ALL.into_iter().all(|status| status.name().parse() == Ok(status)));
    for name in ["", "Completed", "in-progress,display", "done"] {
        let error = name.parse::<OrderStatus>().unwrap_err();
        assert!(error.to_string().starts_with("expected one of not-initiated, in-progress, "), "{error}");
    }
}

#[test]
fn each_action_has_its_body() {
    let (api, id) = (api(), OrderId::parse(ID).unwrap());
    // The captured secret of a finished order.
    let secret = Secret::parse("8cb8a02d5592b0b1556978e1d778b7eff2c23519b8aa65970fa6ac3daa33fb40").unwrap();
    let signatures = ["ab".repeat(65), "cd".repeat(65)];
    let submission = GaslessSubmission::new("0x\"1b".to_owned());
    for (action, name, body) in [
        (Action::Initiate(&submission), "initiate", r#"{"signature":"0x\"1b"}"#.to_owned()),
        (
            Action::Redeem { secret: &secret },
            "redeem",
            r#"{"secret":"8cb8a02d5592b0b1556978e1d778b7eff2c23519b8aa65970fa6ac3daa33fb40"}"#.to_owned(),
        ),
        (Action::Refund, "refund", "{}".to_owned()),
        (
            Action::InstantRefund { signatures: &signatures },
            "instant-refund",
            format!(r#"{{"signatures":["{}","{}"]}}"#, "ab".repeat(65), "cd".repeat(65)),
        ),
    ] {
        let request = api.act(&id, &action);
        assert_eq!(shown(&request), (format!("PATCH /base/v2/orders/{ID}?action={name}"), body));
        assert!(headers(&request).contains(&("content-type", "application/json".into())));
    }
}

#[test]
fn an_order_is_asked_for_in_the_documented_form() {
    // The values are those of the documentation's affiliate example.
    let text = r#"{"source":{"asset":"bitcoin_testnet:btc","owner":"tb1p4pr78swsn60y4ushe05v28mqpqppxxkfkxu2wun5jw6duc8unj3sjrh4gd","amount":"50000"},"destination":{"asset":"base_sepolia:wbtc","owner":"0x004Cc75ACF4132Fc08cB6a252E767804F303F729","amount":"49850"},"affiliate_fees":[{"asset":"base_sepolia:wbtc","address":"0x7A3d05c70581bD345fe117c06e45f9669205384f","fee":30}]}"#;
    let mut order = CreateOrder::from_json(text.as_bytes()).unwrap();
    assert_eq!(shown(&api().create_order(&order).unwrap()), ("POST /base/v2/orders".into(), text.to_owned()));

    let fee = order.affiliate_fees[0].clone();
    order.affiliate_fees = vec![fee.clone(); 334];
    let error = api().create_order(&order).unwrap_err();
    let at = |error: &Error| if let Error::Input(refusal) = error { refusal.location().to_owned() } else { panic!("{error:?}") };
    assert_eq!((error.code().name(), at(&error).as_str()), ("number_too_large", "/affiliate_fees"));
    order.affiliate_fees.truncate(2);
    order.affiliate_fees[1].fee = BasisPoints::new(10_001);
    let error = api().create_order(&order).unwrap_err();
    assert_eq!(at(&error), "/affiliate_fees/1/fee");
}

#[test]
fn the_application_id_goes_everywhere_but_to_health() {
    let id = OrderId::parse(ID).unwrap();
    let common =
        vec![("accept", "application/json".to_owned()), ("accept-encoding", "identity".into()), ("cache-control", "no-cache".into())];
    let with = |more: &[(&'static str, &str)]| {
        let mut all = common.clone();
        all.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        all
    };
    assert_eq!(headers(&api().order(&id)), with(&[("service-app-id", "app-1")]));
    assert_eq!(headers(&api().act(&id, &Action::Refund)), with(&[("content-type", "application/json"), ("service-app-id", "app-1")]));
    assert_eq!(headers(&api().health()), common);
    assert_eq!(headers(&Api::new("https://service.example", None).unwrap().order(&id)), common);
}

#[test]
fn nothing_private_is_printed() {
    let secret = Secret::parse(&"5a".repeat(31).replace("5a", "6b").chars().chain("01".chars()).collect::<String>()).unwrap();
    let api = api();
    let request = api.act(&OrderId::parse(ID).unwrap(), &Action::Redeem { secret: &secret });
    let printed = format!("{request:?} {api:?} {:?}", Action::Redeem { secret: &secret });
    // A path can hold the key of an account.
    assert!(printed.contains("Request(PATCH service.example)") && !printed.contains("base/") && !printed.contains("/base"), "{printed}");
    assert!(!printed.contains("app-1") && !printed.contains("6b6b"), "{printed}");
}

#[test]
fn only_safe_addresses_are_sent_to() {
    for base in [
        "http://service.example",
        "http://10.0.0.1",
        "ftp://service.example",
        "service.example",
        "https://user:pass@service.example",
        "https://service.example/?q=1",
        "https://service.example/#x",
        "file:///etc/passwd",
        "http://localhost.evil.example",
    ] {
        assert_eq!(Api::new(base, None).unwrap_err().code().name(), "transport_insecure", "{base}");
    }
    for base in ["https://service.example", "http://127.0.0.1:8080", "http://localhost:1/a/b/", "http://[::1]:9"] {
        assert!(Api::new(base, None).is_ok(), "{base}");
    }
}

#[test]
fn only_ids_and_names_become_part_of_a_path() {
    for id in ["", "abc", &"g".repeat(64), &format!("../{}", "a".repeat(61)), &format!("{}?", "a".repeat(63)), &"a".repeat(65)] {
        assert_eq!(OrderId::parse(id).unwrap_err().code().name(), "order_id_malformed", "{id}");
    }
    for name in ["", "..", "a/b", "a?b", "a b", "%2e", &"a".repeat(65)] {
        assert_eq!(api().schema(name).unwrap_err().code().name(), "text_not_plain", "{name}");
    }
}

#[test]
fn fees_and_slippage_are_at_most_the_whole() {
    let mut quote = QuoteRequest::new(asset("a:x"), asset("b:y"), QuoteAmount::From(U256::MAX));
    quote.affiliate_fee = Some(BasisPoints::new(10_001));
    assert_eq!(api().quote(&quote).unwrap_err().code().name(), "number_too_large");
    quote.affiliate_fee = Some(BasisPoints::WHOLE);
    quote.slippage = Some(BasisPoints::new(u64::MAX));
    assert_eq!(api().quote(&quote).unwrap_err().code().name(), "number_too_large");
}
