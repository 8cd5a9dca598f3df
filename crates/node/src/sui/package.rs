//! Describes a published package, for pinning.

use countersign::sui::address::from_account;
use countersign::sui::sui_sdk_types::{Address, Digest, StructTag};
use countersign::{Asset, Code, Refusal};
use countersign_client::Transport;

use super::htlc::transaction;
use super::messages::{ListPackageVersionsRequest, Object};
use super::{SuiChain, address, digest, missing, objects};
use crate::contracts::Description;
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::quorum::agree;

/// The fields that are read of a package.
const PACKAGE: [&str; 5] = ["object_id", "version", "digest", "previous_transaction", "package"];
/// The fields that are read of an upgrade capability.
const CAPABILITY: [&str; 4] = ["object_id", "owner", "object_type", "contents"];
/// The number of versions in a page. Only the first page is read.
const PAGE: u32 = 1_000;
/// `Owner.kind` of an object that an account owns.
const ADDRESS: i32 = 1;

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

impl<'n, T: Transport> SuiChain<'n, T> {
    pub(crate) async fn describe(&self, asset: &Asset) -> Result<Description, NodeError> {
        let Some(package) = asset.htlc.as_ref().and_then(from_account) else { return Ok(Description::default()) };
        let package = self.describe_package(package).await?;
        let authority = package.upgrade_authority;
        Ok(Description::default()
            .with("digest", Some(package.digest))
            .with("version", Some(package.version))
            .with("newest_version", Some(package.newest_version))
            .with("upgrade_capability", authority.map(|authority| authority.capability))
            .with("upgrade_authority", authority.and_then(|authority| authority.owner)))
    }

    /// Reads the description of a package. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::UnknownContract`] if there is no package with this id, and another [`NodeError`] if no
    /// endpoint answers or too few of them agree.
    pub async fn describe_package(&self, package: Address) -> Result<PackageDescription, NodeError> {
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            describe(caller, package).await
        };
        let mut descriptions = agree(self.connection.each(ask).await, self.connection.needed(), Clone::clone)?;
        let refusal = || Refusal::new(Code::UnknownContract, "/package").with_actual(package.to_string());
        descriptions.pop().flatten().ok_or_else(|| refusal().with_reason("there is no package with this id").into())
    }
}

async fn describe<T: Transport>(caller: Caller<'_, T>, id: Address) -> Result<Option<PackageDescription>, NodeError> {
    let Some(object) = objects(caller, &[id], &PACKAGE).await?.pop().flatten() else { return Ok(None) };
    let Some(package) = object.package else { return Ok(None) };
    let published = digest(caller, object.previous_transaction, "/object/previous_transaction")?;
    let version = package.version.ok_or_else(|| missing(caller, "/object/package/version"))?;
    let request = ListPackageVersionsRequest { package_id: Some(id.to_string()), page_size: Some(PAGE), page_token: None };
    let versions = caller.grpc(&request).await?.versions;
    Ok(Some(PackageDescription {
        digest: digest(caller, object.digest, "/object/digest")?,
        version,
        original: address(caller, package.original_id.as_deref(), "/object/package/original_id")?,
        newest_version: versions.iter().filter_map(|listed| listed.version).fold(version, u64::max),
        upgrade_authority: authority(caller, published).await?,
    }))
}

/// Finds the upgrade capability in the transaction that published the package, which created the capability or used it.
async fn authority<T: Transport>(caller: Caller<'_, T>, published: Digest) -> Result<Option<UpgradeAuthority>, NodeError> {
    let transaction = transaction(caller, published, &["digest", "effects"]).await?;
    let changed = transaction.and_then(|transaction| transaction.effects).map(|effects| effects.changed_objects).unwrap_or_default();
    let is_capability = |text: Option<&str>| {
        let tag: Option<StructTag> = text.and_then(|text| text.parse().ok());
        tag.is_some_and(|tag| *tag.address() == Address::TWO && tag.module().as_str() == "package" && tag.name().as_str() == "UpgradeCap")
    };
    let Some(found) = changed.iter().find(|object| is_capability(object.object_type.as_deref())) else { return Ok(None) };
    let capability = address(caller, found.object_id.as_deref(), "/transaction/effects/changed_objects/object_id")?;
    let Some(object) = objects(caller, &[capability], &CAPABILITY).await?.pop().flatten() else { return Ok(None) };
    let Object { owner, contents, .. } = object;
    // The contents are the capability's id, the package's id, the version (8 bytes) and the policy (1 byte).
    let contents = contents.and_then(|contents| contents.value).unwrap_or_default();
    let (Some((policy, _)), 73) = (contents.split_last(), contents.len()) else { return Err(missing(caller, "/object/contents")) };
    let owner = match owner {
        Some(owner) if owner.kind == Some(ADDRESS) => Some(address(caller, owner.address.as_deref(), "/object/owner/address")?),
        _ => None,
    };
    Ok(Some(UpgradeAuthority { capability, owner, policy: *policy }))
}
