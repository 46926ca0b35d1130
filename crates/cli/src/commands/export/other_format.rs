//! The formats of exports: signatures on `SHA256SUMS` for minisign, ssh-keygen, OpenPGP programs and openssl, each with
//! its script.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::values::key::{KeyFormat, PublicKey, Signature, encode_base64};
use countersign_core::values::other_format::{
    NAMESPACE, OpenpgpSignatures, OtherFormat, armor, openpgp_certificate, openpgp_file_packet,
    openpgp_fingerprint, openpgp_packet, parse_openpgp, parse_ssh, trusted_comment, write_public_key,
};
use countersign_core::values::{digest::Sha256, wire};
use countersign_core::{documents::layout, documents::signatures::OtherFormatsFile, rules::quorum};
use serde::Serialize;

use crate::commands::export::files::{ExportedFile, SCRIPT};
use crate::commands::export::release::{ExportedRelease, ExportedSigner, SHA256SUMS, ToolScript, expect};
use crate::{client::state::Shown, words::error::CliError};

/// Digests with the programs that every system has.
const PLAIN: &str = include_str!("plain.sh");

/// The signatures of a release in one format, by key. They verify, and they are enough.
fn find_signatures(
    shown: &Shown,
    release: &ExportedRelease<'_>,
    format: OtherFormat,
) -> Result<BTreeMap<PublicKey, String>, CliError> {
    let index = &release.artifact.path;
    let file = shown.parsed(&layout::other_formats_of(index), OtherFormatsFile::parse)?;
    let entries = file.unwrap_or_default().keep_verifying(&release.sums()).entries.into_iter();
    let texts = entries.filter_map(|(key, mut texts)| Some((key, texts.remove(&format)?)));
    let texts: BTreeMap<PublicKey, String> = texts.collect();
    let signed: BTreeSet<PublicKey> = texts.keys().copied().collect();
    if quorum::is_met(release.groups(), &signed) {
        return Ok(texts);
    }
    Err(CliError::other(
        format!("too few have signed {index} for {format}: {}", release.lacking_text(&signed)),
        format!(
            "`--for openssl` needs our own signatures only. For later releases, `countersign signers edit {} --format \
             {format}` asks signers for more",
            release.artifact.chain.project
        ),
    ))
}

/// The files of an export, and the script that verifies them.
pub(super) struct Export {
    pub(super) files: Vec<ExportedFile>,
    pub(super) script: String,
    pub(super) left_out: Vec<LeftOut>,
}

/// A file of the release that signers signed by itself and that gets no `FILE.asc`, and why.
#[derive(Debug, Serialize)]
pub(super) struct LeftOut {
    pub(super) file_name: String,
    pub(super) reason: String,
}

impl Export {
    /// Signatures on `SHA256SUMS`, which comes first. The tools read their files leniently, so the script has the
    /// digest of every file that was exported.
    fn on_sums(
        release: &ExportedRelease<'_>,
        signatures: &BTreeMap<PublicKey, String>,
        mut files: Vec<ExportedFile>,
        mut script: ToolScript<'_>,
    ) -> Self {
        let expected = files.iter().map(|file| expect(&file.name, &file.bytes));
        script.expected = expected.chain(std::mem::take(&mut script.expected)).collect();
        files.insert(0, ExportedFile::new(SHA256SUMS, release.sha256sums.as_str()));
        script.functions.push_str(PLAIN);
        let script = script
            .render(release, |signer| signatures.contains_key(&signer.signer.key).then_some("signature"));
        Self { files, script, left_out: Vec::new() }
    }

    /// `--for minisign`: signatures on `SHA256SUMS` as `minisign -V` reads them.
    pub(super) fn for_minisign(shown: &Shown, release: &ExportedRelease<'_>) -> Result<Self, CliError> {
        let signatures = find_signatures(shown, release, OtherFormat::Minisign)?;
        let mut files = Vec::new();
        for signer in &release.signers {
            let key = write_public_key(&signer.signer.key);
            files.push(ExportedFile::new(format!("keys/{}.pub", signer.id), key));
            if let Some(text) = signatures.get(&signer.signer.key) {
                files.push(ExportedFile::new(format!("signatures/{}.minisig", signer.id), text.as_str()));
            }
        }
        // A path is text from outside, so the script has its digest only.
        let comment = Sha256::of(trusted_comment(&release.artifact.path).as_bytes());
        let script = ToolScript {
            needs: "minisign 0.10 or newer",
            checks: "\
#   - every signature below holds: `minisign -V -H` over SHA256SUMS, with the trusted comment of this release,",
            functions: include_str!("minisign.sh").to_owned(),
            expected: vec![format!("comment {comment}")],
            // The second line of the file with the key.
            spell: &|signer| {
                write_public_key(&signer.signer.key).lines().nth(1).unwrap_or_default().to_owned()
            },
        };
        Ok(Self::on_sums(release, &signatures, files, script))
    }

    /// `--for ssh`: signatures on `SHA256SUMS` as `ssh-keygen -Y verify` reads them.
    pub(super) fn for_ssh(shown: &Shown, release: &ExportedRelease<'_>) -> Result<Self, CliError> {
        let signatures = find_signatures(shown, release, OtherFormat::Ssh)?;
        // One line a signer. None is good for another namespace than that of files.
        let spell = |signer: &ExportedSigner<'_>| {
            let key = &signer.signer.key;
            let made = signatures.get(key).and_then(|text| parse_ssh(text, key));
            let format = made.map_or(signer.signer.format, |signature| signature.format());
            format!("{} {}", format.ssh_type(), encode_base64(&key.to_ssh_blob(format)))
        };
        let allowed = release
            .signers
            .iter()
            .map(|signer| format!("{} namespaces=\"{NAMESPACE}\" {}\n", signer.id, spell(signer)));
        let mut files = vec![ExportedFile::new("allowed_signers", allowed.collect::<String>())];
        for signer in &release.signers {
            if let Some(text) = signatures.get(&signer.signer.key) {
                files.push(ExportedFile::new(format!("signatures/{}.sig", signer.id), text.as_str()));
            }
        }
        let script = ToolScript {
            needs: "OpenSSH 8.1 or newer",
            checks: "#   - every signature below holds: `ssh-keygen -Y verify` over SHA256SUMS, namespace `file`,",
            functions: include_str!("ssh.sh").to_owned(),
            expected: Vec::new(),
            spell: &spell,
        };
        Ok(Self::on_sums(release, &signatures, files, script))
    }

    /// `--for openpgp`: signatures on `SHA256SUMS`, and on files by themselves, as sqv and gpgv read them. A keyring
    /// has the keys of those who signed, since only they have made a certificate.
    pub(super) fn for_openpgp(shown: &Shown, release: &ExportedRelease<'_>) -> Result<Self, CliError> {
        let signatures = find_signatures(shown, release, OtherFormat::Openpgp)?;
        let sums = release.sums();
        let (mut packets, mut certificates, mut signed) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for signer in &release.signers {
            let key = &signer.signer.key;
            if let Some(found) = signatures.get(key).and_then(|text| parse_openpgp(text, key, &sums)) {
                packets.extend(openpgp_packet(key, &sums, &found.signature));
                certificates.insert(*key, openpgp_certificate(key, &found.certification));
                signed.insert(*key, found);
            }
        }
        let mut files = vec![ExportedFile::new("SHA256SUMS.asc", armor("SIGNATURE", &packets))];
        let mut add_keyring = |name: &str, keys: &mut dyn Iterator<Item = &PublicKey>| {
            let keyring: Vec<u8> = keys.filter_map(|key| certificates.get(key)).flatten().copied().collect();
            files.push(ExportedFile::new(format!("{name}.asc"), armor("PUBLIC KEY BLOCK", &keyring)));
            files.push(ExportedFile::new(format!("{name}.pgp"), keyring));
        };
        add_keyring("keys", &mut release.signers.iter().map(|signer| &signer.signer.key));
        let mut counts = Vec::new();
        for (number, group) in (1..).zip(release.groups()) {
            let name = if release.groups().len() == 1 { "keys".to_owned() } else { format!("keys-{number}") };
            if name != "keys" {
                add_keyring(&name, &mut group.signers.iter().map(|signer| &signer.key));
            }
            counts.push(format!("count {} {name}.pgp", group.threshold));
        }
        let left_out = add_openpgp_files(release, &signed, &mut files);
        let script = ToolScript {
            needs: "sqv 1.0 or newer, or gpgv 2.2 or newer",
            checks: "#   - every signature below holds: `sqv` or `gpgv` over SHA256SUMS, with the keys in keys.pgp,",
            functions: include_str!("openpgp.sh").to_owned(),
            expected: counts,
            spell: &|signer| {
                openpgp_fingerprint(&signer.signer.key).iter().map(|byte| format!("{byte:02X}")).collect()
            },
        };
        Ok(Self { left_out, ..Self::on_sums(release, &signatures, files, script) })
    }

    /// `--for openssl`: raw signatures and PEM keys, as `openssl pkeyutl -verify -rawin` reads them.
    pub(super) fn for_openssl(release: &ExportedRelease<'_>) -> Result<Self, CliError> {
        let index_digest = &release.artifact.index_digest;
        let mut files = vec![
            ExportedFile::new(wire::INDEX_FILE, release.index),
            ExportedFile::new("svc.index.json.sha512", *index_digest.as_bytes()),
            ExportedFile::new(wire::SIGNERS_FILE, release.signers_file),
            ExportedFile::new(SHA256SUMS, release.sha256sums.as_str()),
        ];
        for ExportedSigner { id, signer, signature } in &release.signers {
            files.push(ExportedFile::new(format!("keys/{id}.pem"), pem(&signer.key)));
            let signature = signature.iter();
            files.extend(signature.flat_map(|made| ExportedFile::of_signature(id, made, index_digest)));
        }
        let rebuilds = release.rebuilds.as_ref();
        if let Some(rebuilds) = rebuilds {
            rebuilds.refuse_unreadable()?;
            files.extend(rebuilds.files(pem));
        }
        let builders = rebuilds.map(|rebuilds| rebuilds.builders.as_slice()).unwrap_or_default();
        let signed = release.signers.iter().filter_map(|signer| signer.signature.as_ref());
        let stated = builders.iter().map(|builder| &builder.said.signature);
        let is_touched = signed.chain(stated).any(|signature| signature.format() == KeyFormat::Fido);
        let check: fn(&Signature) -> &'static str = |signature| match signature.format() {
            KeyFormat::Ed25519 => "signature",
            KeyFormat::Fido => "touched",
        };
        let expected =
            [expect("svc.signers.json", release.signers_file.as_bytes()), format!("index {index_digest}")];
        let rebuilt = rebuilds.map(|rebuilds| rebuilds.lines(spki_base64, check)).unwrap_or_default();
        let expected = expected.into_iter().chain(rebuilt).collect();
        let script = ToolScript {
            needs: "OpenSSL 3",
            checks: "\
#   - every signature below holds: Ed25519 over the 64 bytes of the SHA-512 of svc.index.json,
#   - SHA256SUMS is the one of this release, and the signed index has each of its digests,
#   - what builders state is signed and about this index; if the project requires it, enough of them got each file,",
            functions: [
                include_str!("openssl.sh"),
                if is_touched { include_str!("fido.sh") } else { "" },
                if !builders.is_empty() { include_str!("rebuilds.sh") } else { "" },
            ]
            .concat(),
            expected,
            spell: &|signer| spki_base64(&signer.signer.key),
        };
        let script = script.render(release, |signer| signer.signature.as_ref().map(check));
        Ok(Self { files, script, left_out: Vec::new() })
    }
}

/// Adds `FILE.asc` for each file that enough signers have signed by itself (D254). They must have signed one digest:
/// without the content no one can say here which of two is right.
fn add_openpgp_files(
    release: &ExportedRelease<'_>,
    signed: &BTreeMap<PublicKey, OpenpgpSignatures>,
    files: &mut Vec<ExportedFile>,
) -> Vec<LeftOut> {
    let published = &release.artifact.index.published_files;
    let own = files.iter().map(|file| file.name.as_str()).chain([SCRIPT, SHA256SUMS]);
    let released = published.iter().map(|file| file.file_name.as_str());
    let mut taken: Vec<String> = own.chain(released).map(str::to_lowercase).collect();
    let mut left_out = Vec::new();
    for file in published {
        let mut by_digest: BTreeMap<Sha256, Vec<&ExportedSigner<'_>>> = BTreeMap::new();
        let mut packets = Vec::new();
        for signer in &release.signers {
            let key = &signer.signer.key;
            let signatures = signed.get(key).zip(file.digests.sha256);
            let found = signatures.and_then(|(signatures, content)| signatures.files.get(&content));
            if let Some(found) = found {
                packets.extend(openpgp_file_packet(key, &release.sums(), found));
                by_digest.entry(found.digest).or_default().push(signer);
            }
        }
        let name = format!("{}.asc", file.file_name);
        let signers: BTreeSet<PublicKey> =
            by_digest.values().flatten().map(|signer| signer.signer.key).collect();
        let reason = if signers.is_empty() {
            continue;
        } else if by_digest.len() > 1 {
            let said = by_digest.iter().map(|(digest, signers)| {
                let names: Vec<String> = signers.iter().map(|signer| signer.name()).collect();
                format!("{digest} by {}", names.join(" and "))
            });
            let said: Vec<String> = said.collect();
            format!("its signers signed different digests: {}", said.join(", "))
        } else if !quorum::is_met(release.groups(), &signers) {
            format!("too few have signed it by itself: {}", release.lacking_text(&signers))
        } else if !is_plain(&name) {
            "its name has other characters than ASCII letters, digits and -._/:@+~, or begins with - or ~"
                .to_owned()
        } else if taken.iter().any(|taken| collide(taken, &name.to_lowercase())) {
            format!("{name} is the name of another file")
        } else {
            taken.push(name.to_lowercase());
            files.push(ExportedFile::new(name, armor("SIGNATURE", &packets)));
            continue;
        };
        left_out.push(LeftOut { file_name: file.file_name.to_string(), reason });
    }
    left_out
}

/// Whether a name can stand in a script as it is, and beside a command. A shell replaces `~` at the beginning of a
/// word, and programs take `-` there for an option.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/:@+~".contains(&byte))
        && !name.starts_with(['~', '-'])
}

/// Whether two paths cannot be files of one directory, because they are the same or one is a directory of the other.
fn collide(one: &str, other: &str) -> bool {
    let is_inside =
        |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    one == other || is_inside(one, other) || is_inside(other, one)
}

/// What stands before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410).
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

fn pem(key: &PublicKey) -> String {
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", spki_base64(key))
}

fn spki_base64(key: &PublicKey) -> String {
    encode_base64(&[SPKI_HEAD.as_slice(), key.as_bytes()].concat())
}
