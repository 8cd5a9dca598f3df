//! One swap in the four forms of the programs: native and SPL, of the client generation and the audited one.
//!
//! Every value is computed by tools other than this project: addresses by @solana/web3.js, bytes by the layouts of the programs'
//! interfaces.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]

use countersign_solana::address::{self, TOKEN_PROGRAM};
use countersign_solana::htlc::{Htlc, HtlcAccount, SolanaGeneration, Token};
use countersign_solana::{Address, htlc};

pub const AMOUNT: u64 = 357_000_000;
pub const TIMELOCK: u64 = 216_000;
/// The slot of `initiate`, and the timelock.
pub const EXPIRY: u64 = 400_000_000 + TIMELOCK;
pub const OWNER: &str = "YH4btvqb4JBWSEJh22MuA231ekpJ5JqbBXQY1apJtKH";
pub const REDEEMER: &str = "J8ZXZNo93vftqi734Z7gJRamiBgyRMEwx2z1q5D14YhW";
pub const SPONSOR: &str = "HvfL5KkqjWdmrKJT1RyhQ4TNvB4ZYdDPFthjiEzDRQzy";
pub const MINT: &str = "5JbWjyLdYKTuykpq2itWbdRcZkhK3hs6fiH62pkmLYZi";
pub const SECRET_HASH: &str = "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd";

/// Returns the bytes 0 to 31.
pub fn secret() -> [u8; 32] {
    std::array::from_fn(|index| u8::try_from(index).unwrap_or_default())
}

/// A program, and the swap in its form.
pub struct Form {
    pub generation: &'static SolanaGeneration,
    pub program: &'static str,
    pub swap_account: &'static str,
    /// Identity account and vault of an SPL program.
    pub own: Option<[&'static str; 2]>,
    /// The account that pays the rent.
    pub sponsor: &'static str,
    /// The accounts of each instruction: name, and permissions, `s` for signer and `w` for writable.
    pub initiate: &'static str,
    pub redeem: &'static str,
    pub refund: &'static str,
    pub initiate_data: &'static str,
    /// With the destination data `0102ff`, if the program takes them.
    pub with_destination_data: Option<&'static str>,
    /// The swap account, open.
    pub account: &'static str,
    /// The events `Redeemed`, `Refunded` and `InstantRefunded`, after `Program data: `.
    pub events: [&'static str; 3],
    /// The event `Initiated`.
    pub initiated: &'static str,
}

pub const FORMS: [Form; 4] = [
    Form {
        generation: SolanaGeneration::CLIENT_3_1_3,
        program: "2bag6xpshpvPe7SJ9nSDLHpxqhEAoHPGpEkjNSv7gxoF",
        swap_account: "5uWvJ3VSnaeEtPFCsUpokxDobh921EPT8quRay9Dxudy",
        own: None,
        sponsor: OWNER,
        initiate: "SWAP:w OWNER:sw SYSTEM",
        redeem: "SWAP:w OWNER:w REDEEMER:w",
        refund: "SWAP:w OWNER:w",
        initiate_data: "053f7b71994b940e4063471500000000c04b030000000000fe86858b39d601b249df91e2882b59642bcacb9e35ba62175656a42af4bf8981630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd",
        with_destination_data: None,
        account: "357e090e0ec569b64063471500000000c0cfda170000000008032aa331a727d64421581d1ec2ea7cdde7ac7bb04a7ab7bb5e7f4ea5992f08fe86858b39d601b249df91e2882b59642bcacb9e35ba62175656a42af4bf8981630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd",
        events: [
            "Dh23Rx+layYIAyqjMacn1kQhWB0ewup83eese7BKere7Xn9OpZkvCAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
            "I2eV9sR73WMIAyqjMacn1kQhWB0ewup83eese7BKere7Xn9OpZkvCGMNzSlmxDNmkRJUSLuyW0/0EqSccy2yyKvBuFgb1xDd",
            "3DISz7fo2hkIAyqjMacn1kQhWB0ewup83eese7BKere7Xn9OpZkvCGMNzSlmxDNmkRJUSLuyW0/0EqSccy2yyKvBuFgb1xDd",
        ],
        initiated: "BmzUW0M8z91AY0cVAAAAAMBLAwAAAAAACAMqozGnJ9ZEIVgdHsLqfN3nrHuwSnq3u15/TqWZLwj+hoWLOdYBsknfkeKIK1lkK8rLnjW6YhdWVqQq9L+JgWMNzSlmxDNmkRJUSLuyW0/0EqSccy2yyKvBuFgb1xDd",
    },
    Form {
        generation: SolanaGeneration::NOVEMBER_2025,
        program: "6eksgdCnSjUaGQWZ6iYvauv1qzvYPF33RTGTM1ZuyENx",
        swap_account: "Gj5w2HYnsrS76dPZ5qNXSnMR4xo2nrP5GyGg8gCLJGU9",
        own: None,
        sponsor: OWNER,
        initiate: "SWAP:w OWNER:sw SPONSOR:sw SYSTEM",
        redeem: "SWAP:w REDEEMER:w SPONSOR:w",
        refund: "SWAP:w OWNER:w SPONSOR:w",
        initiate_data: "053f7b71994b940efe86858b39d601b249df91e2882b59642bcacb9e35ba62175656a42af4bf898108032aa331a727d64421581d1ec2ea7cdde7ac7bb04a7ab7bb5e7f4ea5992f08630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd4063471500000000c04b03000000000000",
        with_destination_data: Some(
            "053f7b71994b940efe86858b39d601b249df91e2882b59642bcacb9e35ba62175656a42af4bf898108032aa331a727d64421581d1ec2ea7cdde7ac7bb04a7ab7bb5e7f4ea5992f08630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd4063471500000000c04b03000000000001030000000102ff",
        ),
        account: "357e090e0ec569b6c0cfda1700000000fcfe86858b39d601b249df91e2882b59642bcacb9e35ba62175656a42af4bf898108032aa331a727d64421581d1ec2ea7cdde7ac7bb04a7ab7bb5e7f4ea5992f08630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd406347150000000008032aa331a727d64421581d1ec2ea7cdde7ac7bb04a7ab7bb5e7f4ea5992f08c04b030000000000",
        events: [
            "Dh23Rx+layb+hoWLOdYBsknfkeKIK1lkK8rLnjW6YhdWVqQq9L+JgQgDKqMxpyfWRCFYHR7C6nzd56x7sEp6t7tef06lmS8IAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9AY0cVAAAAAMBLAwAAAAAA",
            "I2eV9sR73WP+hoWLOdYBsknfkeKIK1lkK8rLnjW6YhdWVqQq9L+JgQgDKqMxpyfWRCFYHR7C6nzd56x7sEp6t7tef06lmS8IYw3NKWbEM2aRElRIu7JbT/QSpJxzLbLIq8G4WBvXEN1AY0cVAAAAAMBLAwAAAAAA",
            "3DISz7fo2hn+hoWLOdYBsknfkeKIK1lkK8rLnjW6YhdWVqQq9L+JgQgDKqMxpyfWRCFYHR7C6nzd56x7sEp6t7tef06lmS8IYw3NKWbEM2aRElRIu7JbT/QSpJxzLbLIq8G4WBvXEN1AY0cVAAAAAMBLAwAAAAAA",
        ],
        initiated: "BmzUW0M8z93+hoWLOdYBsknfkeKIK1lkK8rLnjW6YhdWVqQq9L+JgQgDKqMxpyfWRCFYHR7C6nzd56x7sEp6t7tef06lmS8IYw3NKWbEM2aRElRIu7JbT/QSpJxzLbLIq8G4WBvXEN1AY0cVAAAAAMBLAwAAAAAAAAgDKqMxpyfWRCFYHR7C6nzd56x7sEp6t7tef06lmS8I",
    },
    Form {
        generation: SolanaGeneration::CLIENT_3_1_3,
        program: "gdnvdMCHJgnidtU7SL8RkRshHPvDJU1pdfZEpoLvqdU",
        swap_account: "3usSN1wXUsVZtmQqKhGvULgAwzeN74pq6bjY9PcYuVWf",
        own: Some(["6HcFVjPz1VbjzMe8fmQT9gEoHmGmkpkvqFXjUbKk99Tz", "HVDtmB38jm7dvdqHotYp5QNraNjTCUT2vryejEmbjNyo"]),
        sponsor: SPONSOR,
        initiate: "IDENTITY:w SWAP:w VAULT:w OWNER:s OWNER_TOKENS:w MINT SPONSOR:sw TOKEN SYSTEM",
        redeem: "IDENTITY SWAP:w VAULT:w REDEEMER_TOKENS:w SPONSOR:w TOKEN",
        refund: "IDENTITY SWAP:w VAULT:w OWNER_TOKENS:w SPONSOR:w TOKEN",
        initiate_data: "053f7b71994b940ec04b030000000000fe86858b39d601b249df91e2882b59642bcacb9e35ba62175656a42af4bf8981630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd406347150000000000",
        with_destination_data: Some(
            "053f7b71994b940ec04b030000000000fe86858b39d601b249df91e2882b59642bcacb9e35ba62175656a42af4bf8981630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd406347150000000001030000000102ff",
        ),
        account: "357e090e0ec569b6c0cfda170000000008032aa331a727d64421581d1ec2ea7cdde7ac7bb04a7ab7bb5e7f4ea5992f08fe86858b39d601b249df91e2882b59642bcacb9e35ba62175656a42af4bf8981630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd4063471500000000fefb7a1cbf68b03b8d81a35e5292f91539aa04e6815a32e1bc9a000d5053d1b23e",
        events: [
            "Dh23Rx+layYIAyqjMacn1kQhWB0ewup83eese7BKere7Xn9OpZkvCAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
            "I2eV9sR73WMIAyqjMacn1kQhWB0ewup83eese7BKere7Xn9OpZkvCGMNzSlmxDNmkRJUSLuyW0/0EqSccy2yyKvBuFgb1xDd",
            "3DISz7fo2hkIAyqjMacn1kQhWB0ewup83eese7BKere7Xn9OpZkvCGMNzSlmxDNmkRJUSLuyW0/0EqSccy2yyKvBuFgb1xDd",
        ],
        initiated: "BmzUW0M8z91AY0cVAAAAAMBLAwAAAAAACAMqozGnJ9ZEIVgdHsLqfN3nrHuwSnq3u15/TqWZLwg/8KUqWr3e+6bU+KMcFGXRim7zegRwaWgJXVcL0b8pnf6GhYs51gGySd+R4ogrWWQrysueNbpiF1ZWpCr0v4mBYw3NKWbEM2aRElRIu7JbT/QSpJxzLbLIq8G4WBvXEN0A",
    },
    Form {
        generation: SolanaGeneration::NOVEMBER_2025,
        program: "2WXpY8havGjfRxme9LUxtjFHTh1EfU3ur4v6wiK4KdNC",
        swap_account: "9yymadRKNJ47nqWjUwtTZTShgeCY8Z9F4zM3LnWpfDEy",
        own: Some(["7953oPpkXxJzPtDWRbB2ZRV3ZQmkZWzubpgYLek7jJoU", "HzGF5nrNfW5ig13viwgUqarGUv4irG3wZ3M9pWyipKVR"]),
        sponsor: SPONSOR,
        initiate: "IDENTITY SWAP:w VAULT:w OWNER:s OWNER_TOKENS:w MINT SPONSOR:sw TOKEN SYSTEM",
        redeem: "IDENTITY SWAP:w VAULT:w REDEEMER_TOKENS:w SPONSOR:w TOKEN",
        refund: "IDENTITY SWAP:w VAULT:w OWNER_TOKENS:w SPONSOR:w TOKEN",
        initiate_data: "053f7b71994b940efe86858b39d601b249df91e2882b59642bcacb9e35ba62175656a42af4bf898108032aa331a727d64421581d1ec2ea7cdde7ac7bb04a7ab7bb5e7f4ea5992f08630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd4063471500000000c04b03000000000000",
        with_destination_data: Some(
            "053f7b71994b940efe86858b39d601b249df91e2882b59642bcacb9e35ba62175656a42af4bf898108032aa331a727d64421581d1ec2ea7cdde7ac7bb04a7ab7bb5e7f4ea5992f08630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd4063471500000000c04b03000000000001030000000102ff",
        ),
        account: "357e090e0ec569b6fcc0cfda1700000000fffb7a1cbf68b03b8d81a35e5292f91539aa04e6815a32e1bc9a000d5053d1b23e3ff0a52a5abddefba6d4f8a31c1465d18a6ef37a04706968095d570bd1bf299dfe86858b39d601b249df91e2882b59642bcacb9e35ba62175656a42af4bf898108032aa331a727d64421581d1ec2ea7cdde7ac7bb04a7ab7bb5e7f4ea5992f08630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd4063471500000000c04b030000000000",
        events: [
            "Dh23Rx+layY/8KUqWr3e+6bU+KMcFGXRim7zegRwaWgJXVcL0b8pnf6GhYs51gGySd+R4ogrWWQrysueNbpiF1ZWpCr0v4mBCAMqozGnJ9ZEIVgdHsLqfN3nrHuwSnq3u15/TqWZLwgAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eH0BjRxUAAAAAwEsDAAAAAAA=",
            "I2eV9sR73WM/8KUqWr3e+6bU+KMcFGXRim7zegRwaWgJXVcL0b8pnf6GhYs51gGySd+R4ogrWWQrysueNbpiF1ZWpCr0v4mBCAMqozGnJ9ZEIVgdHsLqfN3nrHuwSnq3u15/TqWZLwhjDc0pZsQzZpESVEi7sltP9BKknHMtssirwbhYG9cQ3UBjRxUAAAAAwEsDAAAAAAA=",
            "3DISz7fo2hk/8KUqWr3e+6bU+KMcFGXRim7zegRwaWgJXVcL0b8pnf6GhYs51gGySd+R4ogrWWQrysueNbpiF1ZWpCr0v4mBCAMqozGnJ9ZEIVgdHsLqfN3nrHuwSnq3u15/TqWZLwhjDc0pZsQzZpESVEi7sltP9BKknHMtssirwbhYG9cQ3UBjRxUAAAAAwEsDAAAAAAA=",
        ],
        initiated: "BmzUW0M8z90/8KUqWr3e+6bU+KMcFGXRim7zegRwaWgJXVcL0b8pnf6GhYs51gGySd+R4ogrWWQrysueNbpiF1ZWpCr0v4mBCAMqozGnJ9ZEIVgdHsLqfN3nrHuwSnq3u15/TqWZLwhjDc0pZsQzZpESVEi7sltP9BKknHMtssirwbhYG9cQ3UBjRxUAAAAAwEsDAAAAAAAACAMqozGnJ9ZEIVgdHsLqfN3nrHuwSnq3u15/TqWZLwg=",
    },
];

/// The owner's and the redeemer's associated token accounts.
const TOKEN_ACCOUNTS: [&str; 2] = ["7hDSmgrVJFxipM4ec8tjKS4ZWw5AQ5Le6KdVkC1EdNYs", "GoVs5Woit1X42j8T7BnGaJW8ubCPbxgh1zxviZvxx7eB"];

pub fn key(text: &str) -> Address {
    address::parse(text).expect(text)
}

pub fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text).expect(text)
}

pub fn swap() -> HtlcAccount {
    let hash = bytes(SECRET_HASH).try_into().expect("32 bytes");
    HtlcAccount::new(key(OWNER), key(REDEEMER), hash, AMOUNT, TIMELOCK)
}

impl Form {
    pub fn is_audited(&self) -> bool {
        self.generation == SolanaGeneration::NOVEMBER_2025
    }

    pub fn htlc(&self) -> Htlc {
        let token = self.own.map(|_| Token::new(key(MINT), TOKEN_PROGRAM));
        Htlc::new(key(self.program), token).with_generation(self.generation)
    }

    pub fn call(&self) -> htlc::Initiate {
        let swap = swap();
        let call = htlc::Initiate::new(&swap);
        if self.is_audited() { call.with_refundee(swap.initiator) } else { call }
    }

    /// Returns the accounts of a list: address, and whether it is a signer and writable.
    pub fn accounts(&self, list: &str) -> Vec<(Address, bool, bool)> {
        let own = self.own.unwrap_or_default();
        let read = |account: &str| {
            let (name, flags) = account.split_once(':').unwrap_or((account, ""));
            let address = match name {
                "SWAP" => self.swap_account,
                "OWNER" => OWNER,
                "REDEEMER" => REDEEMER,
                "SPONSOR" => self.sponsor,
                "MINT" => MINT,
                "IDENTITY" => own[0],
                "VAULT" => own[1],
                "OWNER_TOKENS" => TOKEN_ACCOUNTS[0],
                "REDEEMER_TOKENS" => TOKEN_ACCOUNTS[1],
                "TOKEN" => "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
                "SYSTEM" => "11111111111111111111111111111111",
                other => panic!("{other}"),
            };
            (key(address), flags.contains('s'), flags.contains('w'))
        };
        list.split(' ').map(read).collect()
    }
}
