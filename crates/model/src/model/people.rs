//! People with fixed keys.

use std::{convert::Infallible, sync::LazyLock};

use countersign_core::values::{
    digest::Sha512,
    key::{PublicKey, SecretKey},
    other_format::{OtherFormat, ReleaseSums},
    path::RepoPath,
};

/// A person, by number.
pub(crate) type Person = usize;

/// The last one has no role in any generated signers file. Some name it as their registrar.
pub(crate) const PEOPLE: usize = 7;
pub(crate) const STRANGER: Person = PEOPLE - 1;
/// The person who is mostly a master, and then in no other role.
pub(crate) const MASTER: Person = 5;

static KEYS: LazyLock<Vec<(SecretKey, PublicKey)>> = LazyLock::new(|| {
    let keys = (0..PEOPLE).map(|person| SecretKey::from_seed(&[person as u8 + 1; 32]));
    keys.map(|key| {
        let public = key.public_key();
        (key, public)
    })
    .collect()
});

pub(crate) fn secret(person: Person) -> &'static SecretKey {
    &KEYS[person].0
}

pub(crate) fn public(person: Person) -> PublicKey {
    KEYS[person].1
}

/// The key as `svc-pub:` and unpadded base64.
pub(crate) fn canonical(person: Person) -> String {
    KEYS[person].1.to_string()
}

/// The key as padded base64.
pub(crate) fn base64(person: Person) -> String {
    KEYS[person].1.to_base64()
}

pub(crate) fn openssh(person: Person) -> String {
    KEYS[person].1.to_ssh_line("of a person")
}

/// This person's signature in another format on the `SHA256SUMS` of the release at `index` (D101).
pub(crate) fn format_text(person: Person, format: OtherFormat, index: &str, sums: &str) -> String {
    let index = RepoPath::parse(index).expect("the path of an index");
    let sums = ReleaseSums { index: &index, text: sums };
    let Ok(text) =
        format.sign(&KEYS[person].1, &sums, |message| Ok::<_, Infallible>(message.sign_with(secret(person))));
    text
}

/// This person's signature on these bytes (D3), in padded base64.
pub(crate) fn signature(person: Person, bytes: &[u8]) -> String {
    secret(person).sign(&Sha512::of(bytes)).to_base64()
}
