//! `--for ssh`: signatures on `SHA256SUMS` as `ssh-keygen -Y verify` reads them.

use countersign_core::values::key::{PublicKey, encode_base64};
use countersign_core::values::{other_format::ssh::NAMESPACE, wire};

use super::directory::ExportedFile;
use super::other_format::FormatSignatures;
use super::release::{ExportedRelease, SHA256SUMS, ToolScript};

const CHECKS: &str =
    "#   - every signature below holds: `ssh-keygen -Y verify` over SHA256SUMS, namespace `file`,";

pub(super) fn list_files(release: &ExportedRelease<'_>, signatures: &FormatSignatures) -> Vec<ExportedFile> {
    let mut files = vec![
        ExportedFile::new(SHA256SUMS, release.sha256sums.as_str()),
        ExportedFile::new("allowed_signers", list_allowed(release)),
    ];
    for signer in &release.signers {
        if let Some(text) = signatures.text_of(signer) {
            files.push(ExportedFile::new(format!("signatures/{}.sig", signer.id), text));
        }
    }
    files
}

pub(super) fn script() -> ToolScript {
    ToolScript {
        needs: "OpenSSH 8.1 or newer",
        checks: CHECKS,
        functions: include_str!("ssh.sh").to_owned(),
        expected: Vec::new(),
        spell: encode_key,
    }
}

/// One line a signer. None is good for another namespace than that of files.
fn list_allowed(release: &ExportedRelease<'_>) -> String {
    let line = |id: &str, key: &PublicKey| {
        format!("{id} namespaces=\"{NAMESPACE}\" {} {}\n", wire::SSH_KEY_TYPE, encode_key(key))
    };
    release.signers.iter().map(|signer| line(&signer.id, &signer.signer.key)).collect()
}

fn encode_key(key: &PublicKey) -> String {
    encode_base64(&key.to_ssh_blob())
}
