//! The search for the indices of orders in a rescue phrase.
use std::collections::BTreeMap;

use countersign_store::KeyIndex;
use countersign_store::rescue::{Extent, IndexError, MAX_INDICES, OrderKeys, Phrase, Rescue, Search};

fn rescue() -> Rescue {
    Rescue::new(&Phrase::parse("legal winner thank year wave sausage worth useful legal winner thank yellow").unwrap()).unwrap()
}

/// The hash of an index, and no keys.
fn hash(rescue: &Rescue, branch: u16, index: u32) -> OrderKeys {
    let secret_hash = rescue.branch(branch).unwrap().secret_hash(index).unwrap();
    OrderKeys { secret_hash, refund_key: None, redeem_key: None }
}

fn key(public_key: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    hex::decode_to_slice(public_key, &mut key).unwrap();
    Some(key)
}

fn refund_key(rescue: &Rescue, branch: u16, index: u32) -> Option<[u8; 32]> {
    key(&rescue.branch(branch).unwrap().refund_key(index).unwrap().public_key())
}

fn redeem_key(rescue: &Rescue, branch: u16, index: u32) -> Option<[u8; 32]> {
    key(&rescue.branch(branch).unwrap().redeem_key(index).unwrap().public_key())
}

const FOREIGN: [u8; 32] = [7; 32];

fn extent(look_ahead: u32, branch_look_ahead: u32, branches: &[u16]) -> Extent {
    Extent { look_ahead, branch_look_ahead, branches: branches.to_vec() }
}

fn search(rescue: &Rescue, orders: &[(&str, OrderKeys)], extent: &Extent) -> Search {
    let orders: BTreeMap<_, _> = orders.iter().map(|(id, keys)| ((*id).to_owned(), *keys)).collect();
    Search::run(rescue, &orders, extent, &mut |_, _| {}).unwrap()
}

fn at(search: &Search, id: &str) -> Result<(u16, u32), IndexError> {
    search.index_of(id).map(|found| (found.at.branch, found.at.index))
}

#[test]
fn the_search_of_a_branch_goes_on_after_each_match() {
    let rescue = rescue();
    let orders = [("a", hash(&rescue, 0, 4)), ("b", hash(&rescue, 0, 9)), ("c", hash(&rescue, 0, 15))];
    let found = search(&rescue, &orders, &extent(5, 1, &[0]));
    assert_eq!((at(&found, "a"), at(&found, "b")), (Ok((0, 4)), Ok((0, 9))));
    // Five indices after the last match are unused.
    assert_eq!((at(&found, "c"), found.branches()), (Err(IndexError::NotFound), 1));
    assert_eq!(at(&search(&rescue, &orders, &extent(6, 1, &[0])), "c"), Ok((0, 15)));
}

#[test]
fn a_branch_in_which_an_order_is_found_is_searched_further_than_others() {
    let rescue = rescue();
    let orders = [("first", hash(&rescue, 9, 1)), ("later", hash(&rescue, 9, 8)), ("hidden", hash(&rescue, 3, 8))];
    let found = search(&rescue, &orders, &extent(10, 2, &[0, 1, 2, 3, 9]));
    assert_eq!((at(&found, "first"), at(&found, "later")), (Ok((9, 1)), Ok((9, 8))));
    // Nothing leads to branch 3: its first two indices are unused.
    assert_eq!(at(&found, "hidden"), Err(IndexError::NotFound));
    assert_eq!(found.branches(), 5);
    assert_eq!(at(&search(&rescue, &orders, &extent(10, 2, &[4])), "first"), Err(IndexError::NotFound));
}

#[test]
fn an_order_whose_hash_is_not_of_the_phrase_is_found_by_its_keys() {
    let rescue = rescue();
    let keys = |branch, index| OrderKeys {
        secret_hash: FOREIGN,
        refund_key: refund_key(&rescue, branch, index),
        redeem_key: redeem_key(&rescue, branch, index),
    };
    let found = search(&rescue, &[("both", keys(5, 1)), ("swapped", OrderKeys { refund_key: None, ..keys(0, 2) })], &extent(5, 3, &[0, 5]));
    let both = found.index_of("both").unwrap();
    assert_eq!(both.at, KeyIndex { branch: 5, index: 1 });
    assert!(!both.has_secret && both.has_refund_key && both.has_redeem_key);
    let one = found.index_of("swapped").unwrap();
    assert!((one.at.index, one.has_secret, one.has_refund_key, one.has_redeem_key) == (2, false, false, true));
    // A redeem key is not looked for among the refund keys.
    let wrong = OrderKeys { secret_hash: FOREIGN, refund_key: redeem_key(&rescue, 0, 1), redeem_key: None };
    assert_eq!(at(&search(&rescue, &[("wrong", wrong)], &extent(5, 3, &[0])), "wrong"), Err(IndexError::NotFound));
}

#[test]
fn an_index_belongs_to_one_order_and_an_order_to_one_index() {
    let rescue = rescue();
    let split = OrderKeys { refund_key: refund_key(&rescue, 0, 2), ..hash(&rescue, 0, 1) };
    let found = search(&rescue, &[("split", split)], &extent(5, 1, &[0]));
    assert_eq!(at(&found, "split"), Err(IndexError::Contradictory));
    let orders = [("a", hash(&rescue, 0, 1)), ("b", hash(&rescue, 0, 1))];
    let mut found = search(&rescue, &orders, &extent(5, 1, &[0]));
    assert_eq!(at(&found, "a"), Err(IndexError::Shared(vec!["b".to_owned()])));
    found.retain(|id| id == "a");
    assert_eq!(at(&found, "a"), Ok((0, 1)));
    assert_eq!(at(&found, "b"), Err(IndexError::Shared(vec!["a".to_owned()])), "the other one is still not certain");
}

#[test]
fn progress_is_reported_only_in_a_long_search() {
    let rescue = rescue();
    let orders = BTreeMap::from([("a".to_owned(), OrderKeys { secret_hash: FOREIGN, refund_key: None, redeem_key: None })]);
    let count = |branches: &[u16]| {
        let mut reports = Vec::new();
        Search::run(&rescue, &orders, &extent(1, 1, branches), &mut |done, all| reports.push((done, all))).unwrap();
        reports
    };
    assert_eq!(count(&[0, 1, 2]), []);
    assert_eq!(count(&(0..=4_100).collect::<Vec<_>>()), [(4_096, 4_100), (4_100, 4_100)]);
    // Without orders there is nothing to look for.
    let nothing = Search::run(&rescue, &BTreeMap::new(), &extent(MAX_INDICES, 1, &[]), &mut |_, _| {}).unwrap();
    assert_eq!(nothing.branches(), 1);
}
