//! The measurements, in the form of results.json.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::process::Command;

use serde::{Deserialize, Serialize};

#[derive(Serialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    pub(crate) quick: bool,
    pub(crate) families: Vec<FamilyResult>,
    /// Criterion's medians, by group and row.
    pub(crate) steps: Vec<Steps>,
    /// The size of an empty program, in bytes.
    pub(crate) empty_program_bytes: Option<u64>,
    pub(crate) cold_start: Vec<ColdStart>,
}

#[derive(Serialize)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    system: &'static str,
    /// The load average of the last minute before the run.
    load: Option<String>,
    rustc: Option<String>,
    node: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct FamilyResult {
    pub(crate) family: &'static str,
    pub(crate) orders: usize,
    /// The average number of signatures per order.
    pub(crate) signatures: f64,
    /// By name: `batch`, `facade`, `peer`, `js`, and `signature` for a single signature.
    pub(crate) contenders: BTreeMap<&'static str, Measured>,
    /// How many times faster `batch` is than `peer` and `js`.
    pub(crate) ratios: BTreeMap<&'static str, Ratio>,
    pub(crate) program_bytes: Option<u64>,
}

/// The cost of an order. Times are the best and the median of all rounds, in nanoseconds.
#[derive(Default, Serialize)]
pub(crate) struct Measured {
    pub(crate) best_ns: f64,
    pub(crate) median_ns: f64,
    pub(crate) allocations: Option<f64>,
    /// The instructions per order, without one-time work in the process.
    pub(crate) instructions: Option<f64>,
}

#[derive(Serialize, Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) best: f64,
    pub(crate) median: f64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Steps {
    pub(crate) group: Cow<'static, str>,
    pub(crate) baseline: Cow<'static, str>,
    pub(crate) median_ns: Vec<(String, f64)>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ColdStart {
    pub(crate) program: String,
    pub(crate) best_ms: f64,
    pub(crate) median_ms: f64,
}

impl Results {
    pub(crate) fn new(quick: bool) -> Self {
        let machine = Machine {
            processor: processor(),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            system: std::env::consts::OS,
            load: std::fs::read_to_string("/proc/loadavg").ok().and_then(|text| text.split(' ').next().map(str::to_owned)),
            rustc: version("rustc"),
            node: version("node"),
        };
        Self { machine, quick, families: Vec::new(), steps: Vec::new(), empty_program_bytes: None, cold_start: Vec::new() }
    }

    pub(crate) fn family(&mut self, name: &str) -> Option<&mut FamilyResult> {
        self.families.iter_mut().find(|family| family.family == name)
    }

    /// Copies everything except the paths from earlier results.
    pub(crate) fn keep(&mut self, earlier: &str) -> serde_json::Result<()> {
        #[derive(Deserialize)]
        struct Earlier {
            families: Vec<EarlierFamily>,
            steps: Vec<Steps>,
            empty_program_bytes: Option<u64>,
            cold_start: Vec<ColdStart>,
        }
        #[derive(Deserialize)]
        struct EarlierFamily {
            family: String,
            program_bytes: Option<u64>,
        }

        let earlier: Earlier = serde_json::from_str(earlier)?;
        (self.steps, self.cold_start, self.empty_program_bytes) = (earlier.steps, earlier.cold_start, earlier.empty_program_bytes);
        for EarlierFamily { family, program_bytes } in earlier.families {
            if let Some(family) = self.family(&family) {
                family.program_bytes = program_bytes;
            }
        }
        Ok(())
    }

    pub(crate) fn steps_of(&self, group: &str) -> Option<&Steps> {
        self.steps.iter().find(|steps| steps.group == group)
    }
}

impl Steps {
    pub(crate) fn median(&self, row: &str) -> Option<f64> {
        self.median_ns.iter().find(|(name, _)| name == row).map(|(_, nanos)| *nanos)
    }
}

impl Machine {
    pub(crate) fn describe(&self) -> String {
        let versions = [&self.rustc, &self.node].into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ");
        let load = self.load.as_ref().map_or(String::new(), |load| format!("; load average before the run: {load}"));
        format!("{} ({} cores, {}); {versions}{load}", self.processor, self.cores, self.system)
    }
}

impl FamilyResult {
    /// Returns the ratio of two contenders' times.
    pub(crate) fn ratio(&self, of: &str, to: &str) -> Option<Ratio> {
        let (of, to) = (self.contenders.get(of)?, self.contenders.get(to)?);
        Some(Ratio { best: of.best_ns / to.best_ns, median: of.median_ns / to.median_ns })
    }

    /// Returns the ratio of two contenders' instructions.
    pub(crate) fn instructions(&self, of: &str, to: &str) -> Option<f64> {
        let [of, to] = [of, to].map(|name| self.contenders.get(name)?.instructions);
        Some(of? / to?)
    }
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned()));
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let number = text.split_whitespace().find(|word| word.trim_start_matches('v').starts_with(|digit: char| digit.is_ascii_digit()))?;
    Some(format!("{program} {}", number.trim_start_matches('v')))
}
