//! Reads the description of a published package, for pinning.

use countersign_core::Refusal;
use countersign_core::reader::{Equal, Fault, Identity, Known, Machine, Replies, Request, Turn};
use sui_sdk_types::{Address, Digest, StructTag};

use super::fields::{changed_object, effects, method, object, owner, package, transaction, version, versions};
use super::proto::{Message, Writer};
use super::{On, address, digest, grpc, identity, objects};

/// The fields that are read of a package.
const PACKAGE: [&str; 5] = ["object_id", "version", "digest", "previous_transaction", "package"];
/// The fields that are read of an upgrade capability.
const CAPABILITY: [&str; 4] = ["object_id", "owner", "object_type", "contents"];
/// The number of versions in a page. Only the first page is read.
const PAGE: u16 = 1_000;
/// The maximum number of objects that a transaction changes (Sui's `max_num_new_move_object_ids`).
const MAX_CHANGED: usize = 2_048;
/// `Owner.kind` of an object that an account owns.
const ACCOUNT: u64 = 1;

/// The versions and the upgrade authority of a package.
///
/// A package never changes. But the owner of its upgrade capability can publish another version, which may treat the same objects
/// differently.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackageDescription {
    /// The digest of the package.
    pub digest: Digest,
    /// The version of the contract, which begins with 1.
    pub version: u64,
    /// The id of version 1 of the package. The contract's types contain this id.
    pub original: Address,
    /// The newest version of the contract that is published.
    pub newest_version: u64,
    /// The capability to publish another version. `None` if it cannot be read, because it was destroyed or another object holds it.
    pub upgrade_authority: Option<UpgradeAuthority>,
}

/// The capability to publish another version of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpgradeAuthority {
    /// The object id of the capability.
    pub capability: Address,
    /// The account that owns the capability; `None` if the owner is not an account.
    pub owner: Option<Address>,
    /// The upgrades that the capability allows: 0 for compatible changes, 128 for additions only, 192 for changes of dependencies only.
    pub policy: u8,
}

/// Reads the description of a package; `None` if there is no package with this id.
///
/// The rounds are the package; its versions, and the transaction that published it; and the upgrade capability, which that transaction
/// created or used.
#[derive(Debug)]
pub struct Package {
    id: Address,
    identity: Identity,
    state: State,
}

#[derive(Debug)]
enum State {
    Package,
    Versions { description: PackageDescription, published: Digest },
    Capability { description: PackageDescription, capability: Address },
}

impl Machine for Package {
    type Subject = On<Address>;
    type Output = Equal<Option<PackageDescription>>;
    const MAX_ROUNDS: usize = 3;

    fn start(on: &On<Address>, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let machine = Self { id: on.subject, identity: identity(&on.network)?, state: State::Package };
        Ok((machine, vec![objects::request(&[on.subject], &PACKAGE)]))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Self::Output>, Fault> {
        let first = replies.get(0)?;
        match &self.state {
            State::Package => {
                let Some(found) = objects::read(&first, &[self.id])?.pop().flatten() else { return Ok(Turn::Done(Equal(None))) };
                let Some(package) = found.get(object::PACKAGE)? else { return Ok(Turn::Done(Equal(None))) };
                let published = digest(found.need(object::PREVIOUS_TRANSACTION)?, object::PREVIOUS_TRANSACTION)?;
                self.state = State::Versions { description: describe(found, package)?, published };
                let versions = Writer::default().bytes(1, self.id.to_string()).number(2, PAGE.into());
                let versions = grpc::request(method::LIST_PACKAGE_VERSIONS, &versions);
                Ok(Turn::Ask(vec![objects::request_transaction(published, &["digest", "effects"]), versions]))
            }
            State::Versions { description, published } => {
                let mut description = description.clone();
                for listed in grpc::read(&replies.get(1)?)?.all(versions::VERSIONS, PAGE.into())? {
                    description.newest_version = description.newest_version.max(listed.get(version::VERSION)?.unwrap_or_default());
                }
                let capability = objects::read_transaction(&first, *published)?.map(capability).transpose()?.flatten();
                let Some(capability) = capability else { return Ok(Turn::Done(Equal(Some(description)))) };
                self.state = State::Capability { description, capability };
                Ok(Turn::Ask(vec![objects::request(&[capability], &CAPABILITY)]))
            }
            State::Capability { description, capability } => {
                let found = objects::read(&first, &[*capability])?.pop().flatten();
                let upgrade_authority = found.map(|found| authority(*capability, found)).transpose()?;
                Ok(Turn::Done(Equal(Some(PackageDescription { upgrade_authority, ..description.clone() }))))
            }
        }
    }
}

fn describe(found: Message<'_>, package: Message<'_>) -> Result<PackageDescription, Fault> {
    let version = package.need(package::VERSION)?;
    let original = address(package.need(package::ORIGINAL_ID)?, package::ORIGINAL_ID)?;
    let digest = digest(found.need(object::DIGEST)?, object::DIGEST)?;
    Ok(PackageDescription { digest, version, original, newest_version: version, upgrade_authority: None })
}

/// Returns the upgrade capability that a transaction changed; `None` if there is none.
fn capability(executed: Message<'_>) -> Result<Option<Address>, Fault> {
    let Some(effects) = executed.get::<Message<'_>>(transaction::EFFECTS)? else { return Ok(None) };
    for changed in effects.all(effects::CHANGED_OBJECTS, MAX_CHANGED)? {
        let tag: Option<StructTag> = changed.get::<&str>(changed_object::OBJECT_TYPE)?.and_then(|text| text.parse().ok());
        let is_capability =
            |tag: StructTag| *tag.address() == Address::TWO && tag.module().as_str() == "package" && tag.name().as_str() == "UpgradeCap";
        if tag.is_some_and(is_capability) {
            return address(changed.need(changed_object::OBJECT_ID)?, changed_object::OBJECT_ID).map(Some);
        }
    }
    Ok(None)
}

fn authority(capability: Address, found: Message<'_>) -> Result<UpgradeAuthority, Fault> {
    // The contents are the capability's id, the package's id, the version (8 bytes) and the policy (1 byte).
    let contents = objects::contents(found, object::CONTENTS)?;
    let (Some((policy, _)), 73) = (contents.split_last(), contents.len()) else { return Err(object::CONTENTS.missing()) };
    let owner = match found.get::<Message<'_>>(object::OWNER)? {
        Some(owner) if owner.get(owner::KIND)? == Some(ACCOUNT) => Some(address(owner.need(owner::ADDRESS)?, owner::ADDRESS)?),
        _ => None,
    };
    Ok(UpgradeAuthority { capability, owner, policy: *policy })
}
