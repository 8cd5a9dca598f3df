//! The parameters of each EVM chain.

/// The parameters of an EVM chain. Change those of a known chain to define another.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "whoever describes a chain of their own fills in every member")]
pub struct Network {
    /// The name in asset ids, for example `base`.
    pub chain: String,
    /// The EIP-155 chain id.
    pub id: u64,
    /// The display name.
    pub name: String,
    /// Nominal milliseconds between blocks.
    pub interval: u64,
    /// The number of the block in which everything is deployed.
    pub start: u64,
    /// The base fee per gas, in wei.
    pub base_fee: u64,
    /// How many blocks the safe block is behind the newest one.
    pub safe: u64,
    /// How many blocks the final block is behind the newest one.
    pub finalized: u64,
    /// Whether blocks also show Ethereum's height, as Arbitrum's do.
    pub has_l1_number: bool,
    /// The timelocks of a user's payment and of the solver's, in blocks.
    pub timelocks: (u64, u64),
    /// The chain's own coin.
    pub coin: &'static str,
    /// Tokens and their decimals.
    pub tokens: Vec<(&'static str, u8)>,
}

impl Network {
    /// Returns the parameters of an EVM chain, given its name and id. The known chains resemble their main network,
    /// and their test networks and `_localnet` do too. Any other chain resembles Base.
    #[must_use]
    pub fn new(chain: &str, id: u64) -> Self {
        let root = chain.split('_').next().unwrap_or(chain);
        let mut network = Self {
            chain: chain.to_owned(),
            id,
            name: title(chain),
            interval: 2_000,
            start: 1_000_000,
            base_fee: 10_000_000,
            safe: 20,
            finalized: 40,
            has_l1_number: false,
            timelocks: (43_200, 3_600),
            coin: "eth",
            tokens: vec![("usdc", 6), ("wbtc", 8)],
        };
        match root {
            "ethereum" => {
                network = Self { interval: 12_000, start: 26_000_000, base_fee: 1_000_000_000, safe: 32, finalized: 64, ..network };
                network.timelocks = (7_200, 600);
                network.tokens.push(("usdt", 6));
            }
            "base" => network = Self { start: 39_000_000, tokens: vec![("usdc", 6), ("cbbtc", 8)], ..network },
            "arbitrum" => {
                // The contracts count the chain's own blocks. The timelocks are six hours and two hours.
                let timelocks = (86_400, 28_800);
                network = Self { interval: 250, start: 460_000_000, base_fee: 100_000_000, has_l1_number: true, timelocks, ..network };
            }
            "bnbchain" => {
                network = Self { interval: 3_000, start: 76_000_000, base_fee: 50_000_000, safe: 2, finalized: 3, ..network };
                network = Self { name: "BNB Chain".to_owned(), coin: "bnb", timelocks: (28_800, 2_400), ..network };
                network.tokens = vec![("usdc", 18), ("btcb", 18)];
            }
            "botanix" | "corn" => network.coin = "btc",
            _ => {}
        }
        if chain.ends_with("_localnet") {
            (network.safe, network.finalized) = (1, 2);
        }
        network
    }

    /// Returns Ethereum's height at a time in Unix milliseconds.
    pub(crate) fn l1_number(&self, millis: u64) -> Option<u64> {
        self.has_l1_number.then(|| 26_000_000_u64.saturating_add(millis.saturating_sub(1_795_000_000_000) / 12_000))
    }
}

/// Returns a display name, for example `Base Sepolia` for `base_sepolia`.
fn title(chain: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    };
    chain.split('_').map(word).collect::<Vec<_>>().join(" ")
}
