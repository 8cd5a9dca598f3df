//! Reports about wallets, tried through the program: what signers, wallets and people give, and the answer that is right.
//!
//! `fixtures/reports.jsonl` has a line for each, which names a case and an input of the folder `../shared/reports`. The inputs are made from
//! cases of these fixtures, and are not a part of this project. Without them the test is skipped.

use std::fs;

use countersign_testkit::{TestResult, project, shared, skipped};
use serde::Deserialize;
use serde_json::Value;

use crate::home::{Home, NOWHERE, out};

/// A line of `fixtures/reports.jsonl`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    /// `attach`, `match`, `prepare` or `explain`.
    command: String,
    registry: String,
    case: String,
    input: Option<String>,
    /// The code of a refusal, and what it must say.
    code: Option<String>,
    says: Option<String>,
    /// What a matched transaction does, and the codes of all that the wallet changed in it.
    role: Option<String>,
    #[serde(default)]
    changed: Vec<String>,
    /// Codes that are among the warnings.
    #[serde(default)]
    warnings: Vec<String>,
}

fn codes(answer: &Value, member: &str) -> Vec<String> {
    let list = answer[member].as_array().into_iter().flatten();
    list.map(|warning| warning["code"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn every_report_gives_the_right_answer() -> TestResult {
    if let Err(missing) = shared("reports/README.md") {
        return skipped(&missing);
    }
    let (home, reports) = (Home::new("reports"), project().join("../shared/reports"));
    let path = |name: &str| reports.join(name).to_str().unwrap().to_owned();
    let (mut count, mut wrong) = (0, Vec::new());
    for line in fs::read_to_string(project().join("fixtures/reports.jsonl"))?.lines() {
        let report: Report = serde_json::from_str(line)?;
        let mut arguments = vec![report.command.clone(), "--json".to_owned()];
        arguments.extend(["--registry".to_owned(), path(&report.registry), "--case".to_owned(), path(&report.case)]);
        if report.command == "attach" {
            arguments.push("--signatures".to_owned());
        }
        arguments.extend(report.input.as_deref().map(path));
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let answer: Value = serde_json::from_str(&out(&home.run(NOWHERE, &arguments)))?;
        let error = &answer["error"];
        let is_right = match &report.code {
            Some(code) => error["code"] == **code && report.says.iter().all(|says| error.to_string().contains(says)),
            None => {
                answer["ok"] == true
                    && answer["role"].as_str() == report.role.as_deref()
                    && codes(&answer, "changed") == report.changed
                    && report.warnings.iter().all(|code| codes(&answer, "warnings").contains(code))
            }
        };
        if !is_right {
            wrong.push(format!("{line}\n  {answer}"));
        }
        count += 1;
    }
    assert!(count > 80, "{count} reports");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
