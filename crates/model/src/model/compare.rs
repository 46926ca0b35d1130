//! Compares an answer with the specification.

use countersign_api::error_code::ErrorCode;
use serde_json::Value;

use super::{request::Request, server::ServerAnswer, spec::ExpectedAnswer};

pub(crate) fn compare(request: &Request, expected: &ExpectedAnswer, answer: &ServerAnswer) {
    let difference = match expected {
        ExpectedAnswer::Json { status, body } => {
            let is_same =
                answer.status == *status && sorted(answer.json()) == Some(sorted_value(body.clone()));
            (!is_same).then_some("another answer")
        }
        ExpectedAnswer::Bytes(bytes) => {
            (answer.status != 200 || answer.body != *bytes).then_some("another content, or none")
        }
        ExpectedAnswer::Error { statuses, says } => find_in_error(answer, statuses, says.as_deref()),
    };
    if let Some(difference) = difference {
        let body = String::from_utf8_lossy(&answer.body);
        panic!(
            "{difference}\nto       {request:#?}\nexpected {expected:#?}\ngot      {} {body}",
            answer.status
        );
    }
}

fn find_in_error(answer: &ServerAnswer, statuses: &[u16], says: Option<&str>) -> Option<&'static str> {
    if !statuses.contains(&answer.status) {
        return Some("another status");
    }
    let body = answer.json();
    let object = body.as_ref().and_then(Value::as_object).filter(|object| object.len() == 2);
    let text = |name| object.and_then(|object| object.get(name)).and_then(Value::as_str);
    let code = text("code").and_then(ErrorCode::parse);
    match text("error") {
        None => Some("an error that is not told as one"),
        Some(_) if code.is_none_or(|code| code.status() != answer.status) => {
            Some("an error without a code of its status")
        }
        Some(message) if says.is_some_and(|says| !message.contains(says)) => Some("another message"),
        Some(_) => None,
    }
}

/// The order of the required signers, and of those whose signatures were dropped, has no meaning.
fn sorted(body: Option<Value>) -> Option<Value> {
    body.map(sorted_value)
}

fn sorted_value(mut body: Value) -> Value {
    for list in ["/required_signers", "/replaced/signatures"] {
        if let Some(signers) = body.pointer_mut(list).and_then(Value::as_array_mut) {
            signers.sort_by_key(Value::to_string);
        }
    }
    body
}
