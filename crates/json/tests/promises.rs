//! What the library promises of every family: one suite, run for all that are built.

use countersign_testkit::{TestResult, promises};

macro_rules! each_family {
    ($suite:ident $arguments:tt: $($feature:literal $module:ident $family:ident;)*) => {
        mod $suite {
            use super::{TestResult, promises};

            $(
                #[cfg(feature = $feature)]
                #[test]
                fn $module() -> TestResult {
                    promises::$suite::<countersign::$module::$family> $arguments
                }
            )*
        }
    };
}

each_family! { keys_are_never_printed():
    "evm" evm Evm;
    "tron" tron Tron;
    "starknet" starknet Starknet;
    "solana" solana Solana;
    "sui" sui Sui;
    "bitcoin" bitcoin Bitcoin;
}

each_family! { deadlines_are_kept():
    "evm" evm Evm;
    "tron" tron Tron;
    "starknet" starknet Starknet;
    "solana" solana Solana;
    "sui" sui Sui;
    "bitcoin" bitcoin Bitcoin;
}

each_family! { nothing_else_is_attached(500):
    "evm" evm Evm;
    "tron" tron Tron;
    "starknet" starknet Starknet;
    "solana" solana Solana;
    "sui" sui Sui;
    "bitcoin" bitcoin Bitcoin;
}
