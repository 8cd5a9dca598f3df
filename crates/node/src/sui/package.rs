//! Describes a published package, for pinning.

use countersign::sui::address::from_account;
use countersign::sui::reader::{Package, PackageDescription};
use countersign::sui::sui_sdk_types::Address;
use countersign::{Code, Refusal, trust::Asset};
use countersign_transport::Transport;

use super::SuiChain;
use crate::contracts::Description;
use crate::error::NodeError;

impl<T: Transport> SuiChain<'_, T> {
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
        let description = self.connection.agreed::<Package>(&self.on(package)).await?.0;
        let refusal = || Refusal::new(Code::UnknownContract, "/package").with_actual(package.to_string());
        description.ok_or_else(|| refusal().with_reason("there is no package with this id").into())
    }
}
