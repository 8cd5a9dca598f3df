//! Tests the program at a terminal of its own, with a user who answers.

use std::process::Command;

use serde_json::{Value, json};

use crate::home::{APP_ID, Home};

/// Runs a program at a terminal. Each step is a text to wait for and what is typed then; `{word}` is the word of the rescue phrase that is asked
/// for. Prints the exit code, everything that was on the screen, and the steps that were not reached.
const AT_A_TERMINAL: &str = r#"
import json, os, pty, re, select, signal, sys, time
steps, arguments = json.loads(sys.argv[1]), sys.argv[2:]
child, master = pty.fork()
if child == 0:
    os.execv(arguments[0], arguments)
said, seen, end = b"", 0, time.time() + 60
def answer(text):
    if text != "{word}":
        return text.encode()
    screen = said.decode(errors="replace")
    words = re.search(r"shows again:\s+((?:[a-z]+ ){11}[a-z]+)", screen).group(1).split()
    number = int(re.findall(r"which is word (\d+) of", screen)[-1])
    return (words[number - 1] + "\n").encode()
while time.time() < end:
    if select.select([master], [], [], 0.2)[0]:
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        if not data:
            break
        said += data
    if steps and steps[0][0].encode() in said[seen:]:
        wait, text = steps.pop(0)
        seen = said.index(wait.encode(), seen) + len(wait)
        time.sleep(0.1)
        os.write(master, answer(text))
else:
    os.kill(child, signal.SIGKILL)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps({"code": code, "said": said.decode(errors="replace"), "left": steps}))
"#;

/// The text on the screen, and how the program ended.
pub struct Screen {
    pub code: i64,
    pub said: String,
}

impl Screen {
    /// Returns the text on the screen before another text.
    pub fn before(&self, text: &str) -> &str {
        self.said.split_once(text).unwrap_or_else(|| panic!("{text:?} in {}", self.said)).0
    }
}

/// Runs the program at a terminal and answers its questions: each step is a text to wait for, and what is typed then. `None` without Python.
pub fn answer(home: &Home, base: &str, arguments: &[&str], steps: &[(&str, &str)]) -> Option<Screen> {
    let steps: Vec<_> = steps.iter().map(|(wait, text)| json!([wait, text])).collect();
    let mut python = Command::new("python3");
    python.args(["-c", AT_A_TERMINAL, &Value::from(steps).to_string(), env!("CARGO_BIN_EXE_countersign")]).args(arguments);
    python.env_remove("COUNTERSIGN_CONFIG").env("HOME", &home.path).env("NO_COLOR", "1").env_remove("XDG_CONFIG_HOME");
    python.env_remove("XDG_DATA_HOME").env("COUNTERSIGN_APP_ID", APP_ID).current_dir(&home.path);
    if !base.is_empty() {
        python.env("COUNTERSIGN_BASE_URL", base);
    }
    let Ok(output) = python.output() else {
        countersign_testkit::skipped("python3 is not installed").unwrap();
        return None;
    };
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let said = told["said"].as_str().unwrap().replace("\r\n", "\n");
    assert_eq!(told["left"], json!([]), "{arguments:?}: not asked: {said}");
    Some(Screen { code: told["code"].as_i64().unwrap(), said })
}
