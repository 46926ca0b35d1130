//! The order that people expect of versions: `v1.10` comes after `v1.9`, and `v2.0-rc1` before `v2.0`.

use std::cmp::Ordering;

/// Compares names with the numbers inside them as numbers. Equal only where the names are.
pub fn compare_versions(left: &str, right: &str) -> Ordering {
    let (mut a, mut b) = (left.as_bytes(), right.as_bytes());
    loop {
        let ((token_a, rest_a), (token_b, rest_b)) = (split_token(a), split_token(b));
        match token_a.cmp(&token_b) {
            Ordering::Equal if token_a == Token::End => return left.cmp(right),
            Ordering::Equal => (a, b) = (rest_a, rest_b),
            order @ (Ordering::Less | Ordering::Greater) => return order,
        }
    }
}

/// A piece of a name. Comparing one by one gives an order without contradictions, which sorting needs.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Token<'a> {
    /// The hyphen of `-rc1` and `-beta`, or a tilde: such a version comes before the one that ends here.
    BeforeTheRelease,
    End,
    Hyphen,
    /// A number lies where its first digit would. Without leading zeros, the longer number is the greater.
    Text(u8, usize, &'a [u8]),
}

fn split_token(text: &[u8]) -> (Token<'_>, &[u8]) {
    match text {
        [] => (Token::End, text),
        [b'~', rest @ ..] => (Token::BeforeTheRelease, rest),
        [b'-', rest @ ..] if rest.first().is_some_and(u8::is_ascii_alphabetic) => {
            (Token::BeforeTheRelease, rest)
        }
        [b'-', rest @ ..] => (Token::Hyphen, rest),
        [digit, ..] if digit.is_ascii_digit() => {
            let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
            let (number, rest) = text.split_at(end);
            let zeros = number.iter().take_while(|byte| **byte == b'0').count();
            let number = &number[zeros..];
            (Token::Text(b'0', number.len(), number), rest)
        }
        [byte, rest @ ..] => (Token::Text(*byte, 0, &[]), rest),
    }
}
