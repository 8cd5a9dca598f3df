//! The gRPC methods that are called, with their request and response messages.

use super::grpc::Method;
use super::messages::{
    BatchGetObjectsRequest, BatchGetObjectsResponse, ExecuteTransactionRequest, ExecuteTransactionResponse, GetBalanceRequest,
    GetBalanceResponse, GetCheckpointRequest, GetCheckpointResponse, GetEpochRequest, GetEpochResponse, GetServiceInfoRequest,
    GetServiceInfoResponse, GetTransactionRequest, GetTransactionResponse, ListOwnedObjectsRequest, ListOwnedObjectsResponse,
    ListPackageVersionsRequest, ListPackageVersionsResponse, SimulateTransactionRequest, SimulateTransactionResponse,
};

/// Implements [`Method`] for the request of each method.
macro_rules! methods {
    ($($service:literal { $($method:literal $request:ident -> $answer:ident,)* })*) => {
        $($(impl Method for $request {
            const PATH: &'static str = concat!("/sui.rpc.v2.", $service, "/", $method);
            type Answer = $answer;
        })*)*
    };
}

methods! {
    "LedgerService" {
        "GetServiceInfo" GetServiceInfoRequest -> GetServiceInfoResponse,
        "GetCheckpoint" GetCheckpointRequest -> GetCheckpointResponse,
        "BatchGetObjects" BatchGetObjectsRequest -> BatchGetObjectsResponse,
        "GetTransaction" GetTransactionRequest -> GetTransactionResponse,
        "GetEpoch" GetEpochRequest -> GetEpochResponse,
    }
    "TransactionExecutionService" {
        "ExecuteTransaction" ExecuteTransactionRequest -> ExecuteTransactionResponse,
        "SimulateTransaction" SimulateTransactionRequest -> SimulateTransactionResponse,
    }
    "StateService" {
        "ListOwnedObjects" ListOwnedObjectsRequest -> ListOwnedObjectsResponse,
        "GetBalance" GetBalanceRequest -> GetBalanceResponse,
    }
    "MovePackageService" {
        "ListPackageVersions" ListPackageVersionsRequest -> ListPackageVersionsResponse,
    }
}
