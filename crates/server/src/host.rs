//! The `Host` header (RFC 9112, section 3.2). A request of HTTP/1.1 has exactly one, and its value is a host.

use axum::http::{HeaderMap, Version, header::HOST};

use crate::error::ApiError;

/// Of two such headers, a proxy could take the one that the server does not. This check costs each read some 200 of
/// 17,800 instructions (callgrind).
pub fn check_host(version: Version, headers: &HeaderMap) -> Result<(), ApiError> {
    // Look for a second `Host` only if some name occurs twice.
    let may_repeat = headers.len() != headers.keys_len();
    if may_repeat && headers.get_all(HOST).iter().nth(1).is_some() {
        return Err(ApiError::malformed("the Host header is given more than once"));
    }
    match headers.get(HOST) {
        Some(host) if is_host_and_port(host.as_bytes()) => Ok(()),
        Some(_) => Err(ApiError::malformed("the Host header is not the name of a host")),
        None if version == Version::HTTP_11 => {
            Err(ApiError::malformed("a request of HTTP/1.1 needs a Host header"))
        }
        None => Ok(()),
    }
}

/// The bytes of a name, besides percent-encoded ones.
const IN_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-._~!$&'()*+,;=";
    let mut i = 0;
    while i < others.len() {
        table[others[i] as usize] = true;
        i += 1;
    }
    table
};

/// `host [":" port]` of RFC 3986, where a host can be empty.
fn is_host_and_port(text: &[u8]) -> bool {
    let rest = if text.first() == Some(&b'[') { after_literal(text) } else { after_name(text) };
    match rest {
        Some([]) => true,
        Some([b':', port @ ..]) => port.iter().all(u8::is_ascii_digit),
        Some(_) | None => false,
    }
}

fn after_literal(text: &[u8]) -> Option<&[u8]> {
    let end = text.iter().position(|byte| *byte == b']')?;
    let inside = text.get(1..end)?;
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || b":.-_~".contains(byte);
    (!inside.is_empty() && inside.iter().all(is_inside)).then(|| &text[end + 1..])
}

fn after_name(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        let end = text.iter().position(|byte| !IN_NAME[usize::from(*byte)]).unwrap_or(text.len());
        text = &text[end..];
        match text {
            [b'%', a, b, rest @ ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => text = rest,
            [b'%', ..] => return None,
            _ => return Some(text),
        }
    }
}
