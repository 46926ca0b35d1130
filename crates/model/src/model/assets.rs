//! Generates checksums files, mostly valid ones.

use std::collections::BTreeMap;

use countersign_core::values::digest::{Sha256, Sha512};

use super::{choices::Choices, paths::FilePlace, spec::Published};

/// Chooses two checksums files, with their combined meaning.
pub(crate) fn choose_checksums(
    choices: &mut Choices<'_>,
    place: &FilePlace,
    dir: &str,
) -> ([Option<String>; 2], Option<Vec<Published>>) {
    let variant = choices.below(3);
    let names = choices.of(&[vec!["app.tar.gz"], vec!["b c.zip", "app.tar.gz"], vec!["sub/é.bin"]]);
    let (mut sha256, mut sha512, mut published) = (String::new(), "# none here\n".to_owned(), Vec::new());
    let both = choices.one_in(2);
    for name in names {
        let content = format!("{name} {variant}");
        let hex = Sha256::of(content.as_bytes()).to_string();
        let long = Sha512::of(content.as_bytes()).to_string();
        sha256 += &format!("{hex}  ./{name}\r\n");
        sha512 += &format!("SHA512 ({name}) = {}\n", long.to_uppercase());
        let encoded = name.replace(' ', "%20").replace('é', "%C3%A9");
        let mut digests = BTreeMap::from([("sha256", hex)]);
        if both {
            digests.insert("sha512", long);
        }
        let source = place.url_of(&format!("{dir}/{encoded}"));
        published.push(Published { name: name.to_owned(), source, digests });
    }
    published.sort_by(|a, b| a.name.cmp(&b.name));
    let second = if both { sha512 } else { sha256.replace("  ./", " *") };
    match choices.byte() {
        0..=239 => ([Some(sha256), Some(second)], Some(published)),
        240..=245 => ([Some(sha256), None], None),
        246..=250 => ([Some(sha256 + "what?\n"), Some(second)], None),
        251..=255 => ([Some(format!("{}  ../up\n{sha256}", "0".repeat(64))), Some(second)], None),
    }
}
