//! Requests with the proof of their sender, valid or not (spec §5).

use countersign_core::{rules::auth::request_digest, values::time::Timestamp};

use crate::model::cast::{Choices, Person, canonical, secret};

pub(crate) const SECOND: i128 = 1_000_000_000;
pub(crate) const MINUTE: i128 = 60 * SECOND;
pub(crate) const DAY: i128 = 24 * 60 * MINUTE;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    /// The target below `/v1/`.
    pub(crate) target: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    Right,
    /// The request is signed at another time than the server's.
    At(i128),
    NotCanonical,
    WrongSignature,
    OtherBody,
    /// One of the four headers is missing.
    Without(usize),
    Twice(usize),
    /// A nonce that was used already.
    UsedNonce,
    UsedNonceInCapitals,
    NotRandom,
    OtherKey,
}

/// Chooses a proof, mostly a valid one.
pub(crate) fn choose_proof(choices: &mut Choices<'_>) -> Proof {
    let choice = choices.byte();
    match choice {
        0..=199 => Proof::Right,
        200..=203 => Proof::At(-6 * MINUTE),
        204..=209 => Proof::At(-6 * MINUTE + 1),
        210..=213 => Proof::At(10 * SECOND),
        214..=217 => Proof::At(10 * SECOND + 1),
        218..=221 => Proof::At(-90 * SECOND - 500_000_000),
        222..=224 => Proof::NotCanonical,
        225..=227 => Proof::WrongSignature,
        228..=230 => Proof::OtherBody,
        231..=234 => Proof::Without(usize::from(choice - 231)),
        235..=238 => Proof::Twice(usize::from(choice - 235)),
        239..=243 => Proof::UsedNonce,
        244..=248 => Proof::UsedNonceInCapitals,
        249..=251 => Proof::NotRandom,
        252..=255 => Proof::OtherKey,
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Signing<'a> {
    pub(crate) caller: Person,
    pub(crate) proof: Proof,
    pub(crate) now: i128,
    pub(crate) nonce: &'a str,
}

impl Request {
    pub(crate) fn get(target: impl Into<String>) -> Self {
        Self { method: "GET", target: target.into(), headers: Vec::new(), body: String::new() }
    }

    pub(crate) fn post(target: impl Into<String>, body: String) -> Self {
        Self { method: "POST", target: target.into(), headers: Vec::new(), body }
    }

    pub(crate) fn sign(&mut self, signing: Signing<'_>) {
        let Signing { caller, proof, now, nonce } = signing;
        let offset = if let Proof::At(offset) = proof { offset } else { 0 };
        let time = Timestamp::from_unix_nanos(now + offset).expect("a time");
        let time = if proof == Proof::NotCanonical { time.to_string() } else { time.to_header() };
        let signed_body =
            if proof == Proof::OtherBody { format!("{} ", self.body) } else { self.body.clone() };
        let signer = if proof == Proof::OtherKey { (caller + 1) % 3 } else { caller };
        let digest = request_digest(&time, nonce, signed_body.as_bytes());
        let mut signature = secret(signer).sign(&digest).to_header();
        if proof == Proof::WrongSignature {
            let first = if signature.starts_with('A') { "B" } else { "A" };
            signature.replace_range(..1, first);
        }
        let values = [time, nonce.to_owned(), signature, canonical(caller)];
        let names = ["x-svc-timestamp", "x-svc-nonce", "x-svc-sig", "x-svc-pk"];
        self.headers = names.into_iter().zip(values).collect();
        match proof {
            Proof::Without(header) => drop(self.headers.remove(header)),
            Proof::Twice(header) => self.headers.push(self.headers[header].clone()),
            _ => {}
        }
    }
}
