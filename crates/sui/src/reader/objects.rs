//! Objects and transactions, requested by their ids.

use countersign_core::reader::{Fault, Reply, Request, RpcError};
use countersign_core::{Code, Refusal};
use sui_sdk_types::{Address, Digest, ObjectReference};

use super::fields::{bcs, found_objects, found_transaction, method, object, result, status, transaction};
use super::proto::{Field, Message, Writer};
use super::{address, digest, grpc};

/// Requests objects at their newest version.
pub(super) fn request(ids: &[Address], members: &[&str]) -> Request {
    let message = ids.iter().fold(Writer::default(), |message, id| message.bytes(1, Writer::default().bytes(1, id.to_string())));
    grpc::request(method::BATCH_GET_OBJECTS, &message.mask(2, members))
}

/// Requests objects at these versions, which may be old ones.
pub(super) fn request_versions(objects: &[ObjectReference], members: &[&str]) -> Request {
    let one = |used: &ObjectReference| Writer::default().bytes(1, used.object_id().to_string()).number(2, used.version());
    let message = objects.iter().fold(Writer::default(), |message, used| message.bytes(1, one(used)));
    grpc::request(method::BATCH_GET_OBJECTS, &message.mask(2, members))
}

/// Reads the objects with these ids; `None` for one that does not exist.
pub(super) fn read<'a>(reply: &Reply<'a>, ids: &[Address]) -> Result<Vec<Option<Message<'a>>>, Fault> {
    let results = grpc::read(reply)?.all(found_objects::OBJECTS, ids.len())?;
    if results.len() != ids.len() {
        let expected = format!("{} objects", ids.len());
        let refusal = Refusal::new(Code::WrongType, found_objects::OBJECTS.1).with_expected(expected);
        return Err(refusal.with_actual(results.len()).into());
    }
    results.into_iter().zip(ids).map(|(result, id)| one(result, *id)).collect()
}

fn one(result: Message<'_>, id: Address) -> Result<Option<Message<'_>>, Fault> {
    let error: Option<Message<'_>> = result.get(result::ERROR)?;
    match (result.get::<Message<'_>>(result::OBJECT)?, error) {
        (Some(object), None) => {
            if address(object.need(object::OBJECT_ID)?, object::OBJECT_ID)? != id {
                let refusal = Refusal::new(Code::WrongType, object::OBJECT_ID.1);
                return Err(refusal.with_reason("the node returned another object than the requested one").into());
            }
            Ok(Some(object))
        }
        (None, Some(error)) => {
            // A missing code, or one that exceeds 63 bits, counts as 0.
            let code = i64::try_from(error.get::<u64>(status::CODE)?.unwrap_or_default()).unwrap_or_default();
            if code == grpc::NOT_FOUND {
                return Ok(None);
            }
            Err(Fault::Rpc(RpcError::new(code, error.get(status::MESSAGE)?.unwrap_or_default(), None)))
        }
        _ => Err(result::OBJECT.missing()),
    }
}

/// Returns the BCS contents of an object or event; empty if it has none.
pub(super) fn contents(message: Message<'_>, field: Field) -> Result<&[u8], Fault> {
    let Some(contents) = message.get::<Message<'_>>(field)? else { return Ok(&[]) };
    Ok(contents.get(bcs::VALUE)?.unwrap_or_default())
}

/// Requests a transaction.
pub(super) fn request_transaction(id: Digest, members: &[&str]) -> Request {
    grpc::request(method::GET_TRANSACTION, &Writer::default().bytes(1, id.to_base58()).mask(2, members))
}

/// Reads the transaction with this id; `None` if the node does not know it.
pub(super) fn read_transaction<'a>(reply: &Reply<'a>, id: Digest) -> Result<Option<Message<'a>>, Fault> {
    let Some(message) = grpc::find(reply)? else { return Ok(None) };
    requested(message, id).map(Some)
}

/// Returns the transaction of a response, which must be the one with this id.
pub(super) fn requested(message: Message<'_>, id: Digest) -> Result<Message<'_>, Fault> {
    let executed: Message<'_> = message.need(found_transaction::TRANSACTION)?;
    let actual = digest(executed.need(transaction::DIGEST)?, transaction::DIGEST)?;
    if actual == id {
        return Ok(executed);
    }
    let refusal = Refusal::new(Code::TransactionMismatch, transaction::DIGEST.1);
    Err(refusal.with_expected(id.to_base58()).with_actual(actual.to_base58()).into())
}
