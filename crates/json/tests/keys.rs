//! No copy of a key stays behind: the whole memory of the process is searched after a key was used.
#![cfg(all(target_os = "linux", feature = "evm", feature = "tron", feature = "starknet", feature = "bitcoin", feature = "sui"))]
use crate::documents;

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;

use countersign::FAMILIES;
use countersign_json::objects;

use documents::{fixtures, registry};

/// The complement of 32 bytes, so that what is searched for is itself not found.
type Needle = [u8; 32];

fn needle(hex: &str) -> Needle {
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = !u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    }
    bytes
}

/// Returns the addresses of the bytes whose complement is a needle, in everything that this process can write to.
fn find(needles: &[Needle]) -> Vec<String> {
    let memory = File::open("/proc/self/mem").unwrap();
    let mut part = vec![0; 1 << 20];
    let mut found = Vec::new();
    for line in fs::read_to_string("/proc/self/maps").unwrap().lines().filter(|line| line.contains(" rw")) {
        let (range, _) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [mut start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
        while start < end {
            let room = part.len().min(usize::try_from(end - start).unwrap());
            let Ok(len) = memory.read_at(&mut part[..room], start) else { break };
            for byte in &mut part[..len] {
                *byte = !*byte;
            }
            let hits = part[..len].windows(32).enumerate().filter(|(_, window)| needles.iter().any(|needle| needle == window));
            found.extend(hits.map(|(at, _)| format!("{:#x} in {line}", start + u64::try_from(at).unwrap())));
            // What lies across the end of a part is found with the next.
            start = if len < 64 { end } else { start + u64::try_from(len - 31).unwrap() };
        }
    }
    found
}

/// Does the work in a thread that is still there while memory is searched: its stack is as the work has left it.
fn left_behind(needles: &[Needle], work: impl FnOnce() + Send) -> Vec<String> {
    let ((done, is_done), (end, may_end)) = (channel(), channel::<()>());
    thread::scope(|scope| {
        scope.spawn(move || {
            work();
            done.send(()).unwrap();
            let _ = may_end.recv();
        });
        is_done.recv().unwrap();
        let found = find(needles);
        drop(end);
        found
    })
}

/// In a process of its own: other tests of this program use the same keys, and have them in memory while they run.
#[test]
fn no_copy_of_a_key_stays_behind() {
    let alone = Command::new(env::current_exe().unwrap()).args(["--exact", "keys::the_whole_memory_is_searched", "--ignored"]).output();
    let alone = alone.unwrap();
    let said = String::from_utf8_lossy(&alone.stdout);
    assert!(alone.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "the test above runs it in a process of its own"]
fn the_whole_memory_is_searched() {
    let (registry, policy) = (registry(), objects::policy(b"{}").unwrap());
    let planted = needle(&"5a".repeat(32));
    assert!(
        !left_behind(&[planted], || drop(std::hint::black_box(vec![planted.map(|byte| !byte); 4]))).is_empty(),
        "the search finds nothing"
    );
    for family in FAMILIES {
        let keyed = fixtures(family.name()).into_iter().filter_map(|case| {
            let wallet = case.value("wallet");
            let key = wallet["secret_key"].as_str()?.trim_start_matches("0x").to_owned();
            (key.len() == 64).then_some((case, key))
        });
        for (case, key) in keyed.take(4) {
            let mut needles = [needle(&key); 2];
            // Curves keep numbers with the lowest byte first.
            needles[1].reverse();
            let members = ["id", "request", "response", "order", "wallet"];
            let members = members.map(|member| format!("\"{member}\":{}", str::from_utf8(case.text(member)).unwrap()));
            let line = format!("{{{}}}", members.join(","));
            let found = left_behind(&needles, || {
                let result = objects::verify_line(line.as_bytes(), &registry, &policy);
                assert!(result.contains(r#""ok":true"#), "{result}");
            });
            assert!(found.is_empty(), "{} by a line: {found:#?}", case.value("id"));
            let found = left_behind(&needles, || {
                let order = objects::verify(&case.documents(), &registry, &policy).unwrap();
                let mut unsigned = objects::prepare(&order, case.text("wallet")).unwrap();
                objects::sign(&mut unsigned, &key).unwrap();
                objects::finish(unsigned).unwrap();
            });
            assert!(found.is_empty(), "{} step by step: {found:#?}", case.value("id"));
            let found = left_behind(&needles, || {
                let parsed = objects::Key::parse(key.as_bytes(), *family).unwrap();
                let order = objects::verify(&case.documents(), &registry, &policy).unwrap();
                for _ in 0..2 {
                    let mut unsigned = objects::prepare(&order, case.text("wallet")).unwrap();
                    objects::sign_with(&mut unsigned, &parsed).unwrap();
                }
            });
            assert!(found.is_empty(), "{} by a key that was parsed and dropped: {found:#?}", case.value("id"));
        }
    }
}
