//! Processes that compete for a lock, and processes that are killed while they write. Each child is this test program itself.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use countersign_store::{Error, Store};

const PATH: &str = "COUNTERSIGN_STORE_TEST";

fn id(order: u64) -> String {
    format!("{order:064x}")
}

fn child(test: &str, path: &Path) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("processes::{test}"), "--ignored", "--nocapture"]).env(PATH, path);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Best effort: the parent may have closed the pipe.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

#[test]
#[ignore = "a child of one_of_many_processes_holds_the_lock"]
fn takes_the_lock() {
    let Some(path) = env::var_os(PATH) else { return };
    let order = Store::open(path).unwrap().open_order(&id(0)).unwrap();
    say("ready");
    std::io::stdin().read_exact(&mut [0]).unwrap();
    let lock = order.lock();
    say(match &lock {
        Ok(_) => "held",
        Err(Error::Busy { .. }) => "busy",
        Err(_) => "failed",
    });
    // Holds the lock until the parent has read every child's line.
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn one_of_many_processes_holds_the_lock() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    store.create(&id(0)).unwrap();
    for _ in 0..5 {
        let mut children: Vec<Child> = (0..4).map(|_| child("takes_the_lock", home.path())).collect();
        let mut outputs: Vec<_> =
            children.iter_mut().map(|child| BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap)).collect();
        for output in &mut outputs {
            output.find(|line| line.ends_with("ready")).unwrap();
        }
        for child in &mut children {
            child.stdin.as_mut().unwrap().write_all(b"!").unwrap();
        }
        let mut heard: Vec<String> = outputs.iter_mut().map(|output| output.next().unwrap()).collect();
        heard.sort();
        assert_eq!(heard, ["busy", "busy", "busy", "held"]);
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // The operating system has released the lock of the killed process.
        store.open_order(&id(0)).unwrap().lock_within(Duration::from_secs(5)).unwrap();
    }
}

#[test]
#[ignore = "a child of two_hundred_kills_lose_nothing"]
fn writes_until_it_is_killed() {
    let Some(path) = env::var_os(PATH) else { return };
    let store = Store::open(path).unwrap();
    for round in 0_u64.. {
        let index = store.take_index().unwrap().index;
        say(&format!("index {index}"));
        // The id is the index, which no other order has.
        let order = store.create(&id(index.into())).unwrap().lock().unwrap();
        say(&format!("order {index}"));
        order.create_new("request", text(index).as_bytes()).unwrap();
        say(&format!("request {index}"));
        for version in 0..3 {
            order.write("record", text(index + version).as_bytes()).unwrap();
            say(&format!("record {index} {version}"));
            order.append("journal", format!("{{\"v\":{version},\"text\":\"{}\"}}", text(index)).as_bytes()).unwrap();
            say(&format!("journal {index} {version}"));
        }
        assert!(round < 100_000);
    }
}

fn text(number: u32) -> String {
    format!("{number} ").repeat(usize::try_from(number % 97).unwrap() * 20 + 1)
}

#[test]
fn two_hundred_kills_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut told: BTreeMap<(String, u32), u32> = BTreeMap::new();
    let mut indices = 0;
    for round in 0..200_u64 {
        let mut child = child("writes_until_it_is_killed", home.path());
        let mut output = BufReader::new(child.stdout.take().unwrap());
        // Wait for some steps of the child, however slow the machine is, and then kill it at an arbitrary point.
        let mut rest = String::new();
        while rest.matches("\nrecord").count() < usize::try_from(round % 5).unwrap() || !rest.contains("index") {
            assert_ne!(output.read_line(&mut rest).unwrap(), 0);
        }
        std::thread::sleep(Duration::from_micros(round * 1237 % 3_000));
        child.kill().unwrap();
        child.wait().unwrap();
        output.read_to_string(&mut rest).unwrap();
        // An incomplete line does not count.
        for line in rest.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let words: Vec<&str> = line.rsplit("... ").next().unwrap().split(' ').collect();
            if !["index", "order", "request", "record", "journal"].contains(&words[0]) {
                continue;
            }
            let number: u32 = words[1].parse().unwrap();
            if words[0] == "index" {
                assert!(number >= indices, "index {number} was handed out twice");
                indices = number + 1;
            } else {
                told.insert((words[0].to_owned(), number), words.get(2).map_or(0, |version| version.parse().unwrap()));
            }
        }
        let store = Store::open(home.path()).unwrap();
        assert!(store.orders().unwrap().iter().all(Result::is_ok));
        let next = store.next_index().unwrap();
        assert!(next.branch == 0 && next.index >= indices, "{next:?}");
        // Check the most recent orders, and all of them in the last round.
        let last = told.keys().map(|(_, index)| *index).max().unwrap_or_default();
        check(&store, &told, if round == 199 { 0 } else { last.saturating_sub(3) });
    }
    assert!(told.len() > 200, "too little was written to prove anything: {}", told.len());
}

/// Compares every order from index `from` on with what its writer reported.
fn check(store: &Store, told: &BTreeMap<(String, u32), u32>, from: u32) {
    for ((what, index), version) in told.iter().filter(|((_, index), _)| *index >= from) {
        let order = store.open_order(&id((*index).into())).unwrap();
        let read = |name: &str| order.read(name).unwrap().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        match what.as_str() {
            "order" => {
                let request = read("request");
                assert!(request.is_none_or(|found| found == text(*index)));
            }
            "request" => assert_eq!(read("request").unwrap(), text(*index)),
            "record" => {
                let found = read("record").unwrap();
                assert!((*version..3).any(|version| found == text(index + version)), "order {index}: half a record");
            }
            "journal" => {
                let journal = order.read_journal("journal").unwrap();
                assert!(journal.entries.len() > usize::try_from(*version).unwrap());
                for (entry, version) in journal.entries.iter().zip(0..) {
                    assert_eq!(**entry, format!("{{\"v\":{version},\"text\":\"{}\"}}", text(*index)).into_bytes());
                }
                assert!(journal.damaged_lines.len() <= 1);
            }
            other => panic!("{other}"),
        }
    }
}
