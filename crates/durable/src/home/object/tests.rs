//! The contract on the client's own store in memory and, if one is named, on a real store; what errors say; what is sent
//! again.

#![allow(clippy::single_range_in_vec_init, reason = "a list of one range is what is meant")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use object_store::memory::InMemory;

use super::super::contract::{self, name, pieces};
use super::super::settle::{Likeness, NewObject, Settled, put_settled};
use super::super::{HomeErrorKind, WaitHome};
use super::*;

fn in_memory(prefix: Option<&str>) -> Arc<dyn Home> {
    let store = Arc::new(InMemory::new());
    let prefix = prefix.map(name);
    Arc::new(ObjectHome::over(store.clone(), store, "s3://memory".into(), "here".into(), prefix.as_ref()).unwrap())
}

#[test]
fn the_stores_of_the_client_keep_the_contract() {
    for prefix in [None, Some("graphs/modern")] {
        let home = in_memory(prefix);
        contract::check(&home);
        contract::put_before_opening_again(&*home);
        contract::check_after_opening_again(&*home);
    }
}

/// The options of the store that the environment names, for `conformance/stores/run.sh`.
fn real_store(directory: &str) -> Option<ObjectOptions> {
    let variable = |key: &str| std::env::var(format!("MANGROVE_S3_{key}")).ok();
    let endpoint = variable("ENDPOINT")?;
    let required = |key: &str| variable(key).unwrap_or_else(|| panic!("set MANGROVE_S3_{key} beside the endpoint"));
    let mut options = ObjectOptions::new(required("BUCKET"));
    options.endpoint = Some(endpoint);
    options.region = Some("us-east-1".to_owned());
    options.keys = Some((required("ACCESS_KEY"), required("SECRET_KEY")));
    options.prefix = Some(name(directory));
    Some(options)
}

/// Returns true if this part of the test is to be run: the script runs one part, restarts the store, and runs the other.
fn is_part(part: &str) -> bool {
    std::env::var("MANGROVE_S3_PART").is_ok_and(|wanted| wanted == part)
}

#[test]
fn a_real_store_keeps_the_contract() {
    let Some(options) = real_store("contract") else {
        println!("left out, because MANGROVE_S3_ENDPOINT names no store: the contract on a real store");
        return;
    };
    let home: Arc<dyn Home> = Arc::new(ObjectHome::new(&options).unwrap());
    if is_part("before") {
        contract::check(&home);
        contract::put_before_opening_again(&*home);
    }
    if is_part("after") {
        contract::check_after_opening_again(&*home);
    }
    assert!(is_part("before") || is_part("after"), "set MANGROVE_S3_PART to `before` or `after`");
}

#[test]
fn a_real_store_settles_a_race() {
    let Some(options) = real_store("race") else {
        return println!("left out, because MANGROVE_S3_ENDPOINT names no store: settling on a real store");
    };
    let homes: Vec<_> = (0..8).map(|_| ObjectHome::new(&options).unwrap()).collect();
    for round in 0..10 {
        let settle = |writer: usize| {
            let bytes = Bytes::from(format!("nonce {writer} {}", std::env::var("MANGROVE_S3_PART").unwrap()));
            let object = NewObject { bytes, likeness: Likeness::Whole };
            put_settled(&homes[writer], &name(&format!("{round}")), object, Some(50), &mut std::thread::sleep).unwrap()
        };
        let own = std::thread::scope(|scope| {
            let settle = &settle;
            let threads: Vec<_> = (0..homes.len()).map(|writer| scope.spawn(move || settle(writer))).collect();
            let ends = threads.into_iter().map(|thread| thread.join().unwrap());
            ends.filter(|end| *end == Settled::Own).count()
        });
        // After the restart, the objects of the first part are there.
        assert_eq!(own, usize::from(is_part("before")), "round {round}");
    }
}

#[test]
fn a_real_store_refuses_wrong_keys_and_buckets() {
    let Some(options) = real_store("refused") else {
        return println!("left out, because MANGROVE_S3_ENDPOINT names no store: errors of a real store");
    };
    let mut wrong_keys = options.clone();
    wrong_keys.keys = Some(("nobody".to_owned(), "wrong".to_owned()));
    let mut wrong_bucket = options;
    wrong_bucket.bucket = "no-such-bucket".to_owned();
    for (options, way_out) in [(wrong_keys, "access key"), (wrong_bucket, "make the bucket")] {
        let home = ObjectHome::new(&options).unwrap();
        let errors = [
            home.put_new(&name("a/b"), Bytes::from_static(b"x")).unwrap_err(),
            home.get(&name("a/b")).unwrap_err(),
            home.head(&name("a/b")).unwrap_err(),
            home.ranges(&name("a/b"), vec![0..1]).unwrap_err(),
            home.list(&name("a")).unwrap_err(),
            home.put_unique(&name("a/b"), pieces(&[b"x"])).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), HomeErrorKind::Refused, "{error}");
            let text = error.message();
            assert!(text.contains(&options.bucket) && text.contains("refused/a") && text.contains(way_out), "{error}");
            assert!(!text.contains("<Code>") && !text.contains("wrong\""), "{error}");
        }
    }
}

/// A store on loopback that gives these answers, one a connection, and then closes the connection without one.
/// Returns its options; `count` has the number of requests that it read.
fn answering(answers: Vec<String>, count: Arc<AtomicUsize>) -> ObjectOptions {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = ObjectOptions::new("bucket");
    options.endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
    options.keys = Some(("access".to_owned(), "hidden".to_owned()));
    let serve = move || {
        let mut answers = answers.into_iter();
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut request = [0; 16 << 10];
            if connection.read(&mut request).unwrap() == 0 {
                continue;
            }
            count.fetch_add(1, Ordering::Relaxed);
            match answers.next() {
                Some(answer) => connection.write_all(answer.as_bytes()).unwrap(),
                None => drop(connection),
            }
        }
    };
    // It ends with the process of the test.
    std::thread::Builder::new().name("store".to_owned()).spawn(serve).unwrap();
    options
}

fn http(status: &str, body: &str) -> String {
    let date = "last-modified: Sat, 28 Nov 2026 12:00:00 GMT\r\netag: \"1\"";
    format!("HTTP/1.1 {status}\r\n{date}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn a_put_if_absent_is_sent_once_and_its_failures_say_what_is_known() {
    let cases = [
        (Some(http("200 OK", "")), Ok(Put::Done)),
        (Some(http("412 Precondition Failed", "")), Ok(Put::Taken)),
        (Some(http("409 Conflict", "<Error><Code>ConditionalRequestConflict</Code></Error>")), Ok(Put::Taken)),
        (Some(http("403 Forbidden", "<Error><Code>AccessDenied</Code></Error>")), Err(HomeErrorKind::Refused)),
        (Some(http("404 Not Found", "<Error><Code>NoSuchBucket</Code></Error>")), Err(HomeErrorKind::Refused)),
        (Some(http("400 Bad Request", "")), Err(HomeErrorKind::Refused)),
        (Some(http("429 Too Many Requests", "")), Err(HomeErrorKind::Unknown)),
        (Some(http("503 Slow Down", "")), Err(HomeErrorKind::Unknown)),
        (Some(http("500 Internal Server Error", "")), Err(HomeErrorKind::Unknown)),
        // The connection ends before the answer.
        (None, Err(HomeErrorKind::Unknown)),
    ];
    for (answer, expected) in cases {
        let count = Arc::new(AtomicUsize::new(0));
        let home = ObjectHome::new(&answering(answer.clone().into_iter().collect(), count.clone())).unwrap();
        let put = home.put_new(&name("log/1"), Bytes::from_static(b"x"));
        assert_eq!(put.clone().map_err(|error| error.kind()), expected, "{answer:?}: {put:?}");
        assert_eq!(count.load(Ordering::Relaxed), 1, "{answer:?}");
        if let Err(error) = put {
            let text = error.message();
            assert!(text.contains("s3://bucket/log/1 at http://127.0.0.1:") && text.contains("; "), "{text}");
            assert!(!text.contains("hidden"), "{text}");
        }
    }
}

#[test]
fn reads_and_unique_puts_are_sent_again() {
    let count = Arc::new(AtomicUsize::new(0));
    let busy = || http("503 Slow Down", "");
    let answers = vec![busy(), busy(), http("200 OK", "content"), busy(), http("200 OK", "")];
    let home = ObjectHome::new(&answering(answers, count.clone())).unwrap();
    assert_eq!(home.get(&name("log/1")).unwrap().unwrap(), "content");
    assert_eq!(count.load(Ordering::Relaxed), 3);
    home.put_unique(&name("pack/1"), pieces(&[b"x"])).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 5);
}

#[test]
fn a_store_that_does_not_run_is_unavailable_to_a_put_that_was_not_sent() {
    // A port that was free a moment ago.
    let endpoint = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let mut options = ObjectOptions::of_url("s3://bucket/graphs/modern/").unwrap();
    options.endpoint = Some(endpoint.clone());
    options.keys = Some(("access".to_owned(), "hidden".to_owned()));
    assert!(!format!("{options:?}").contains("hidden"));
    let home = ObjectHome::new(&options).unwrap();
    let error = home.put_new(&name("log/1"), Bytes::from_static(b"x")).unwrap_err();
    assert_eq!(error.kind(), HomeErrorKind::Unavailable, "{error}");
    let expected = format!("cannot put s3://bucket/graphs/modern/log/1 at {endpoint}: ");
    assert!(error.message().starts_with(&expected), "{error}");
    assert!(error.message().ends_with("check the endpoint, and whether the store runs"), "{error}");
    assert_eq!(home.get(&name("log/1")).unwrap_err().kind(), HomeErrorKind::Unavailable);
    // The client has tried several times, and cannot say what became of the first ones.
    assert_eq!(home.put_unique(&name("log/1"), pieces(&[b"x"])).unwrap_err().kind(), HomeErrorKind::Unknown);
}

#[test]
fn requests_under_way_are_answered_when_the_home_is_dropped() {
    // It takes connections and answers none.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = ObjectOptions::new("bucket");
    options.endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
    options.keys = Some(("access".to_owned(), "hidden".to_owned()));
    let home = ObjectHome::new(&options).unwrap();
    let (sender, answers) = channel();
    for n in 0..10 {
        let sender = sender.clone();
        let put = Request::PutNew { name: name(&format!("log/{n}")), bytes: Bytes::new() };
        home.submit(put, Box::new(move |answer| sender.send(answer).unwrap()));
    }
    drop((sender, home));
    let answers: Vec<_> = answers.iter().collect();
    assert_eq!(answers.len(), 10);
    for answer in answers {
        assert_eq!(answer.unwrap_err().kind(), HomeErrorKind::Unknown);
    }
}

#[test]
fn a_store_that_does_not_answer_is_given_up_after_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = ObjectOptions::new("bucket");
    options.endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
    options.keys = Some(("access".to_owned(), "hidden".to_owned()));
    options.answer_timeout = Duration::from_millis(50);
    let home = ObjectHome::new(&options).unwrap();
    let error = home.put_new(&name("log/1"), Bytes::from_static(b"x")).unwrap_err();
    assert_eq!(error.kind(), HomeErrorKind::Unknown, "{error}");
}

#[test]
fn urls_name_a_bucket_and_a_directory() {
    let place = |url| ObjectOptions::of_url(url).map(|options| (options.bucket, options.prefix));
    assert_eq!(place("s3://graphs").unwrap(), ("graphs".to_owned(), None));
    assert_eq!(place("s3://graphs/").unwrap(), ("graphs".to_owned(), None));
    assert_eq!(place("s3://graphs/a/b/").unwrap(), ("graphs".to_owned(), Some(name("a/b"))));
    for url in ["", "graphs", "s3://", "s3:///a", "http://graphs/a", "s3://graphs/a//b", "s3://graphs/../b"] {
        assert_eq!(place(url).unwrap_err().kind(), HomeErrorKind::Invalid, "{url}");
    }
}

#[test]
fn near_ranges_are_read_as_one() {
    let far = GAP_BYTES + 1;
    assert_eq!(merge(&[]), []);
    assert_eq!(merge(&[10..20, 5..5, 0..3]), [0..20]);
    assert_eq!(merge(&[0..100, 10..20, 100..110]), [0..110]);
    assert_eq!(merge(&[0..10, 10 + far..20 + far]), [0..10, 10 + far..20 + far]);
    assert_eq!(merge(&[0..10, 9 + far..20 + far]), [0..20 + far]);
    assert_eq!(merge(&[5..u64::MAX, 0..1]), [0..u64::MAX]);
}
