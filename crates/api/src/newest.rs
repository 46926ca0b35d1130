//! Which release of a project is the newest (D77), and the order that people expect of versions: `v1.10` comes after
//! `v1.9`, and `v2.0-rc1` before `v2.0`.

use std::cmp::Ordering;

use crate::catalogue::ReleaseState;

/// What the choice of the newest release depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseVersion<'a> {
    /// The directory of the release, below that of its project.
    pub dir: &'a str,
    pub state: ReleaseState,
    /// A revocation waits for more signatures.
    pub is_revoking: bool,
}

/// The highest version that is complete, and that no one has begun to revoke.
pub fn find_newest<'a, T>(
    releases: impl IntoIterator<Item = T>,
    version_of: impl Fn(&T) -> ReleaseVersion<'a>,
) -> Option<T> {
    let is_offered = |release: &T| {
        let ReleaseVersion { state, is_revoking, .. } = version_of(release);
        state == ReleaseState::Complete && !is_revoking
    };
    let offered = releases.into_iter().filter(is_offered);
    offered.max_by(|a, b| compare_versions(version_of(a).dir, version_of(b).dir))
}

/// Compares names, with numbers in them compared as numbers. Only equal names are equal.
pub fn compare_versions(left: &str, right: &str) -> Ordering {
    let start = count_common(left.as_bytes(), right.as_bytes());
    let (mut a, mut b) = (&left.as_bytes()[start..], &right.as_bytes()[start..]);
    loop {
        let ((token_a, rest_a), (token_b, rest_b)) = (split_token(a), split_token(b));
        let order = token_a.compare(&token_b);
        if order.is_ne() {
            return order;
        }
        if matches!(token_a, Token::End) {
            return left.cmp(right);
        }
        (a, b) = (rest_a, rest_b);
    }
}

/// How much two names have in common, up to the end of a piece. A digit or a hyphen never ends a piece.
fn count_common(a: &[u8], b: &[u8]) -> usize {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let is_whole = |byte: &u8| !byte.is_ascii_digit() && *byte != b'-';
    a[..common].iter().rposition(is_whole).map_or(0, |last| last + 1)
}

/// A piece of a name. Comparing piece by piece gives a total order, which sorting needs.
enum Token<'a> {
    /// The hyphen of `-rc1` and `-beta`, or a tilde. Such a version comes before the one that ends here.
    BeforeTheRelease,
    End,
    Hyphen,
    /// A number without leading zeros.
    Number(&'a [u8]),
    Byte(u8),
}

impl Token<'_> {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            // The longer number is the greater.
            (Self::Number(a), Self::Number(b)) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }

    /// A number ranks where its first digit would.
    fn rank(&self) -> (u8, u8) {
        match self {
            Self::BeforeTheRelease => (0, 0),
            Self::End => (1, 0),
            Self::Hyphen => (2, 0),
            Self::Number(_) => (3, b'0'),
            Self::Byte(byte) => (3, *byte),
        }
    }
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
            (Token::Number(&number[zeros..]), rest)
        }
        [byte, rest @ ..] => (Token::Byte(*byte), rest),
    }
}
