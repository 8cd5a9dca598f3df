//! Parses arbitrary bytes as the body of a JSON-RPC response. The first byte is the number of calls, and the second
//! chooses the status.
#![no_main]

use countersign::reader::json_rpc::{answers, decode, encode};
use countersign::reader::{Answer, Request};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [calls, status, body @ ..] = input else { return };
    let calls = usize::from(*calls % 9);
    let status = [200, 500, 429, 404][usize::from(*status % 4)];
    let read = answers(status, body, calls);
    assert_eq!(read.len(), calls);
    if status != 200 {
        assert!(read.iter().all(|answer| matches!(answer, Answer::Error(_) | Answer::Failed(_))));
    }
    for answer in &read {
        if let Answer::Error(error) = answer {
            assert!(error.message.chars().count() <= 8 * 160 + 1 && !error.message.contains(char::is_control));
        }
    }
    let Ok(decoded) = decode(body, calls) else { return };
    assert_eq!(decoded.len(), calls);
    if status == 200 {
        assert_eq!(decoded, read);
    }
    // Writes the results again in another order of the calls, as a node might, and parses them again.
    let results: Vec<_> =
        decoded.iter().map(|answer| if let Answer::Result(text) = answer { std::str::from_utf8(text).ok() } else { None }).collect();
    if let Some(results) = results.into_iter().collect::<Option<Vec<_>>>() {
        let requests: Vec<_> = results.iter().map(|text| Request::json_rpc("any", text)).collect();
        assert_eq!(encode(&requests).is_some(), calls > 0);
        let replies: Vec<_> = results.iter().enumerate().rev().map(|(id, text)| format!(r#"{{"id":{id},"result":{text}}}"#)).collect();
        // A single reply stays single, because its result may be as deep as a whole reply.
        let body = if let [reply] = replies.as_slice() { reply.clone() } else { format!("[{}]", replies.join(",")) };
        assert_eq!(decode(body.as_bytes(), calls).as_ref(), Ok(&decoded));
    }
});
