//! Address balances in SUI. As on the real chain, each is a field of the accumulator. It costs no storage.

use std::sync::Arc;

use sui_sdk_types::{Address, Digest, Identifier, MoveStruct, Object, ObjectData, ObjectReference, Owner, StructTag, TypeTag};

use super::ledger::Objects;

/// The object whose fields are the address balances.
const ACCUMULATOR: Address = Address::from_static("0xacc");
/// The last bytes of a reservation's digest.
const MARK: [u8; 20] = [0xac; 20];

fn tag(module: &'static str, name: &'static str, of: Vec<TypeTag>) -> StructTag {
    StructTag::new(Address::TWO, Identifier::from_static(module), Identifier::from_static(name), of)
}

fn key() -> TypeTag {
    tag("accumulator", "Key", vec![tag("balance", "Balance", vec![StructTag::sui().into()]).into()]).into()
}

fn kind() -> StructTag {
    tag("dynamic_field", "Field", vec![key(), tag("accumulator", "U128", vec![]).into()])
}

/// Returns the id of the object that holds an account's balance.
pub(super) fn holder(owner: Address) -> Address {
    ACCUMULATOR.derive_dynamic_child_id(&key(), owner.as_bytes())
}

/// Returns the account and balance in an object, or `None` for any other object.
pub(super) fn held(object: &Object) -> Option<(Address, u64)> {
    let data = object.as_struct().filter(|data| *data.object_type() == kind())?;
    let (owner, balance) = data.contents().get(32..)?.split_first_chunk()?;
    Some((Address::new(*owner), u128::from_le_bytes(balance.try_into().ok()?).try_into().ok()?))
}

/// Returns an account's address balance.
pub(super) fn balance(objects: &Objects, owner: Address) -> u64 {
    objects.get(&holder(owner)).and_then(|object| held(object)).map_or(0, |(_, balance)| balance)
}

/// Returns the object of a balance, or `None` if the balance is zero.
pub(super) fn object(owner: Address, balance: u64, version: u64, by: Digest) -> Option<Arc<Object>> {
    let contents = [holder(owner).as_ref(), owner.as_ref(), &u128::from(balance).to_le_bytes()[..]].concat();
    let data = ObjectData::Struct(MoveStruct::new(kind(), false, version, contents)?);
    (balance > 0).then(|| Arc::new(Object::new(data, Owner::Object(ACCUMULATOR), by, 0)))
}

/// Returns the amount and the epoch of a reservation, or `None` if the reference is to an object.
pub(super) fn reserved(reference: &ObjectReference) -> Option<(u64, u64)> {
    let (amount, rest) = reference.digest().as_bytes().split_first_chunk()?;
    let (epoch, mark) = rest.split_first_chunk()?;
    (mark == MARK).then(|| (u64::from_le_bytes(*amount), u32::from_le_bytes(*epoch).into()))
}

/// Returns whether a reference is a reservation of this account on the network with this genesis checkpoint.
pub(super) fn is_of(reference: &ObjectReference, owner: Address, genesis: Digest) -> bool {
    let masked = holder(owner).into_inner().into_iter().zip(genesis.into_inner()).map(|(id, mask)| id ^ mask);
    reference.object_id().as_bytes().iter().copied().eq(masked)
}
