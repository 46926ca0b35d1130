//! People with fixed keys, and the signers files that list them.

use std::fmt::Write as _;

use countersign_core::log::note::{NoteSignature, cosigned_bytes};
use countersign_core::values::key::{PublicKey, SecretKey};
use countersign_core::values::verifier_key::{KeyKind, MlDsaKey, TypedKey, VerifierKey};
use ml_dsa::signature::{Keypair as _, Signer as _};
use ml_dsa::{MlDsa44, Seed, SigningKey};

/// The key that grows from the seed of 32 times `n`.
pub fn key(n: u8) -> SecretKey {
    SecretKey::from_seed(&[n; 32])
}

pub fn alice() -> SecretKey {
    key(1)
}

pub fn bob() -> SecretKey {
    key(2)
}

pub fn carol() -> SecretKey {
    key(3)
}

pub fn dave() -> SecretKey {
    key(4)
}

/// A person in none of the signers files.
pub fn mallory() -> SecretKey {
    key(66)
}

pub fn public<const N: usize>(keys: [&SecretKey; N]) -> std::collections::BTreeSet<PublicKey> {
    keys.into_iter().map(SecretKey::public_key).collect()
}

/// The key of the log `sign.example.org/log`.
pub fn log_key() -> VerifierKey {
    VerifierKey::new("sign.example.org/log", KeyKind::Log, key(100).public_key()).expect("a name")
}

/// The key of the witness `witnessN.example/w`.
pub fn witness_key(n: u8) -> VerifierKey {
    let name = format!("witness{n}.example/w");
    VerifierKey::new(&name, KeyKind::Witness, key(100 + n).public_key()).expect("a name")
}

/// The ML-DSA-44 key of the witness of this name, which grows from the seed of 32 times `n`.
pub fn ml_dsa_key(name: &str, n: u8) -> VerifierKey {
    let public = SigningKey::<MlDsa44>::from_seed(&Seed::from([n; 32])).verifying_key().encode();
    VerifierKey::of(name, TypedKey::MlDsaWitness(MlDsaKey::from_bytes(public.into()))).expect("a name")
}

/// Cosigns the text of a checkpoint with that key.
pub fn ml_dsa_cosign(name: &str, n: u8, text: &str, time: u64) -> NoteSignature {
    let signed = cosigned_bytes(text, name, time).expect("a checkpoint");
    let signature = SigningKey::<MlDsa44>::from_seed(&Seed::from([n; 32])).try_sign(&signed);
    NoteSignature::of_ml_dsa(&ml_dsa_key(name, n), time, &signature.expect("a signature").encode().into())
}

const BUILDERS: &str = "builders";

/// A signers file in the making.
#[derive(Debug, Clone)]
pub struct Signers {
    timestamp: String,
    roles: Vec<(&'static str, Vec<String>)>,
    /// What stands beside the builders, each with a comma before it.
    rebuilds: String,
    transparency: Option<String>,
    rotation_delay_hours: Option<u64>,
}

pub fn signers(timestamp: &str) -> Signers {
    Signers {
        timestamp: timestamp.to_owned(),
        roles: Vec::new(),
        rebuilds: String::new(),
        transparency: None,
        rotation_delay_hours: None,
    }
}

impl Signers {
    pub fn artifact<'k>(self, threshold: usize, keys: impl AsRef<[&'k SecretKey]>) -> Self {
        self.group("artifact_signers", threshold, keys.as_ref())
    }

    pub fn admin<const N: usize>(self, threshold: usize, keys: [&SecretKey; N]) -> Self {
        self.group("admin_keys", threshold, &keys)
    }

    pub fn master<const N: usize>(self, threshold: usize, keys: [&SecretKey; N]) -> Self {
        self.group("master_keys", threshold, &keys)
    }

    pub fn revocation<const N: usize>(self, threshold: usize, keys: [&SecretKey; N]) -> Self {
        self.group("revocation_keys", threshold, &keys)
    }

    /// Builders, in one more group.
    pub fn builders<const N: usize>(self, threshold: usize, keys: [&SecretKey; N]) -> Self {
        self.group(BUILDERS, threshold, &keys)
    }

    /// Patterns of the files that builders make.
    pub fn rebuilt(mut self, patterns: &[&str]) -> Self {
        write!(self.rebuilds, r#", "files": {}"#, serde_json::Value::from(patterns))
            .expect("a string takes all");
        self
    }

    /// A release counts only once it is reproduced.
    pub fn reproduced_first(mut self) -> Self {
        self.rebuilds += r#", "required": true"#;
        self
    }

    /// Keys that register releases, and nothing else.
    pub fn registrars<const N: usize>(mut self, keys: [&SecretKey; N]) -> Self {
        let entries = keys.iter().map(|key| signer_text(&key.public_key().to_string())).collect();
        self.roles.push(("registrars", entries));
        self
    }

    /// Calls a key by a name, wherever it is listed so far.
    pub fn named(mut self, key: &SecretKey, name: &str) -> Self {
        let plain = signer_text(&key.public_key().to_string());
        let end = format!(r#", "name": {}}}"#, serde_json::Value::from(name));
        let named = plain.strip_suffix('}').expect("an object").to_owned() + &end;
        for group in self.roles.iter_mut().flat_map(|(_, groups)| groups) {
            *group = group.replace(&plain, &named);
        }
        self
    }

    /// Adds one more group; a second group of a role joins its first.
    fn group(mut self, role: &'static str, threshold: usize, keys: &[&SecretKey]) -> Self {
        let members: Vec<String> =
            keys.iter().map(|key| signer_text(&key.public_key().to_string())).collect();
        let group = format!(r#"{{"threshold": {threshold}, "signers": [{}]}}"#, members.join(", "));
        match self.roles.iter_mut().find(|(name, _)| *name == role) {
            Some((_, groups)) => groups.push(group),
            None => self.roles.push((role, vec![group])),
        }
        self
    }

    /// A log and its witnesses, in groups of a threshold and keys; with witnesses, a proof can be a day old.
    pub fn log(mut self, log: &VerifierKey, groups: &[(usize, &[VerifierKey])]) -> Self {
        let quoted = |key: &VerifierKey| format!("\"{key}\"");
        let mut text = format!(r#"{{"log": {}"#, quoted(log));
        let group = |(threshold, keys): &(usize, &[VerifierKey])| {
            let keys: Vec<String> = keys.iter().map(quoted).collect();
            format!(r#"{{"threshold": {threshold}, "keys": [{}]}}"#, keys.join(", "))
        };
        let groups: Vec<String> = groups.iter().map(group).collect();
        if !groups.is_empty() {
            text += &format!(r#", "witnesses": [{}], "max_age_seconds": 86400"#, groups.join(", "));
        }
        self.transparency = Some(text + "}");
        self
    }

    /// Sets how long rotations wait.
    pub fn delay(mut self, hours: u64) -> Self {
        self.rotation_delay_hours = Some(hours);
        self
    }

    pub fn text(&self) -> String {
        let mut text = format!(r#"{{"version": 1, "timestamp": "{}""#, self.timestamp);
        for (role, groups) in &self.roles {
            let groups = groups.join(", ");
            match *role {
                BUILDERS => write!(text, r#", "rebuilds": {{"{role}": [{groups}]{}}}"#, self.rebuilds),
                role => write!(text, ", \"{role}\": [{groups}]"),
            }
            .expect("a string takes all");
        }
        if let Some(transparency) = &self.transparency {
            write!(text, ", \"transparency\": {transparency}").expect("a string takes all");
        }
        if let Some(hours) = self.rotation_delay_hours {
            write!(text, ", \"rotation_delay_hours\": {hours}").expect("a string takes all");
        }
        text + "}\n"
    }
}

pub fn signer_text(pubkey: &str) -> String {
    format!(r#"{{"kind": "key", "data": {{"pubkey": "{pubkey}"}}}}"#)
}
