//! WebSocket messages in every encoding: the answer is in the encoding of the request.

use serde_json::{Value as Json, json};

use crate::common::Running;

const ID: &str = "41d2e28a-20a4-4ab0-b379-d810dede3786";

fn request(script: &str, more: Json) -> String {
    let mut arguments = json!({ "gremlin": script });
    for (name, value) in more.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    json!({ "requestId": ID, "op": "eval", "processor": "", "args": arguments }).to_string()
}

fn framed(media_type: &str, text: &str) -> Vec<u8> {
    [&[media_type.len() as u8], media_type.as_bytes(), text.as_bytes()].concat()
}

fn read(text: &str) -> Json {
    let answer: Json = serde_json::from_str(text).unwrap();
    assert_eq!(answer["requestId"], ID);
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_message_is_typed_json_and_answered_in_text() {
    let server = Running::start(|limits| limits.batch_size = 2).await;
    let mut client = server.connect().await;
    client.send_text(&request("g.inject('range', 3)", json!({}))).await;
    let (first, last) = (read(&client.text().await), read(&client.text().await));
    assert_eq!((&first["status"]["code"], &last["status"]["code"]), (&json!(206), &json!(200)));
    assert_eq!(last["result"]["data"], json!({ "@type": "g:List", "@value": [{ "@type": "g:Int64", "@value": 2 }] }));
    client.send_text(&request("g.dance()", json!({}))).await;
    assert_eq!(read(&client.text().await)["status"]["code"], 597);
    client.send_text("[1, ").await;
    let refused: Json = serde_json::from_str(&client.text().await).unwrap();
    assert_eq!((&refused["requestId"], &refused["status"]["code"]), (&Json::Null, &json!(498)));
    assert_eq!(client.eval("g.inject('count')").await.values(), [0], "GraphBinary on the same connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binary_message_is_answered_in_the_encoding_its_media_type_names() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    let typed = json!({ "@type": "g:Int64", "@value": 1 });
    for (media_type, data) in [
        (
            "application/vnd.gremlin-v3.0+json",
            json!({ "@type": "g:List", "@value": [json!({"@type": "g:Int64", "@value": 0}), typed] }),
        ),
        ("application/vnd.gremlin-v2.0+json", json!([json!({"@type": "g:Int64", "@value": 0}), typed])),
        ("application/vnd.gremlin-v3.0+json;types=false", json!([0, 1])),
    ] {
        client.send_bytes(framed(media_type, &request("g.inject('range', 2)", json!({})))).await;
        let answer = read(&client.binary_text().await);
        assert_eq!(answer["result"]["data"], data, "{media_type}");
    }
    let other = json!({ "accepts": "application/vnd.gremlin-v2.0+json;types=false" });
    client.send_bytes(framed("application/json", &request("g.inject('range', 1)", other))).await;
    assert_eq!(read(&client.binary_text().await)["result"]["data"], json!([0]));
    client.send_bytes(framed("application/json", &request("g.V()", json!({ "accepts": "text/html" })))).await;
    assert_eq!(read(&client.binary_text().await)["status"]["code"], 499);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_media_type_nobody_knows_is_answered_in_graphbinary_with_those_there_are() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    client.send_bytes(framed("text/html", "<p>")).await;
    let response = client.response().await.unwrap();
    assert_eq!((response.code, response.request), (498, None));
    assert!(response.message.contains("application/vnd.gremlin-v3.0+json"), "{response:?}");
}
