//! Bundles that hold: verified, or rightly revoked.

use countersign_core::{proof::bundle::Bundle, proof::verify::Evidence, values::verifier_key::VerifierKey};
use countersign_testing::evidence::{
    Past, checksums_index, evidence, file, founded, founders, good, noon, release_index,
    revocation_by_request, revocation_of, revoked, rotated, signed_by,
};
use countersign_testing::fido::{SignsDigests, fido};
use countersign_testing::{
    INDEX, PROJECT, alice, bob, carol, dave, key, log_key, mallory, path, signer_text, signers, witness_key,
};

use super::{staples, vector::Vector, vector::bundle};

const GITLAB: &str = "https/gitlab.com/443/acme/tools/app";
const FILES: &str = "https/files.example/8443/app";

pub(super) fn all() -> Vec<Vector> {
    vec![
        bundle("good-plain", good()),
        bundle("good-with-a-staple", good()).edited(with_staple),
        bundle(
            "good-after-a-rotation",
            evidence(&rotated(PROJECT), INDEX, &release_index("v1"), &[&carol(), &key(6)]),
        ),
        bundle("good-signed-before-a-rotation", signed_before()),
        bundle("good-several-groups", several_groups()),
        bundle(
            "good-rotated-by-master-keys",
            evidence(&rotated_by_master(), INDEX, &release_index("v1"), &[&key(5)]),
        ),
        bundle("good-signatures-that-nobody-needs", with_strangers()),
        bundle("good-keys-in-other-spellings", other_spellings()),
        bundle("good-signers-file-with-a-log", with_log()),
        bundle("good-gitlab-release-with-a-slash-in-its-tag", gitlab()),
        bundle("good-checksums-with-a-sub-directory", checksums()),
        bundle("good-asset-from-elsewhere", linked_asset()),
        bundle("good-with-fido-keys", fido_team()),
        bundle("revoked-with-subject-digest", revoked()),
        bundle("revoked-with-a-stored-request", revoked_by_request()),
        bundle("revoked-with-explicit-revocation-thresholds", revoked_by_two()),
        bundle("revoked-after-a-rotation", revoked_later()),
        bundle("revoked-by-a-fido-key", revoked_by_touch()),
    ]
}

fn with_staple(text: String) -> String {
    let bundle = Bundle::parse(text.as_bytes()).expect("a bundle");
    let staple = Some(staples::staple_of(&staples::log()));
    String::from_utf8(Bundle { staple, ..bundle }.write()).expect("our documents are text")
}

fn signed_before() -> Evidence {
    let past = rotated(PROJECT);
    let governed_by = past.digest(0);
    Evidence { governed_by, ..evidence(&past, INDEX, &release_index("v1"), &[&alice(), &carol()]) }
}

fn several_groups() -> Evidence {
    let team = signers("2026-01-01T00:00:00Z")
        .artifact(2, [&alice(), &bob(), &carol()])
        .artifact(1, [&alice(), &dave()]);
    let past = Past::of(PROJECT).then(&team, &[&alice(), &bob(), &carol(), &dave()]);
    evidence(&past, INDEX, &release_index("v1"), &[&alice(), &bob()])
}

fn rotated_by_master() -> Past {
    let next = signers("2026-01-02T00:00:00Z").artifact(1, [&key(5)]).master(1, [&dave()]);
    founded(PROJECT).then(&next, &[&dave(), &key(5)])
}

fn with_strangers() -> Evidence {
    let shown = good();
    let signatures = signed_by(&shown.index, &[&alice(), &bob(), &mallory(), &dave()]);
    Evidence { signatures, ..shown }
}

fn other_spellings() -> Evidence {
    let (alices, bobs) = (alice().public_key(), bob().public_key());
    let entries = [signer_text(&alices.to_base64()), signer_text(&bobs.to_ssh_line("bob@example"))];
    let text = format!(
        "{{\"version\": 1, \"timestamp\": \"2026-01-01T00:00:00Z\", \"artifact_signers\": [{{\"threshold\": 2, \"signers\": [{}]}}]}}\n",
        entries.join(", ")
    );
    let past = Past::of(PROJECT).then_text(text, &[&alice(), &bob()]);
    evidence(&past, INDEX, &release_index("v1"), &[&alice(), &bob()])
}

fn with_log() -> Evidence {
    let groups: &[(usize, &[VerifierKey])] =
        &[(2, &[witness_key(1), witness_key(2), witness_key(3)]), (1, &[witness_key(4)])];
    let everyone = [&alice(), &bob(), &carol(), &dave()];
    let past = Past::of(PROJECT).then(&founders().log(&log_key(), groups), &everyone);
    evidence(&past, INDEX, &release_index("v1"), &[&alice(), &bob()])
}

/// A team of Alice and two FIDO keys, one listed by its line and one by its format. Two of three sign, she and the
/// first.
pub(super) fn fido_team() -> Evidence {
    let (alice, by_line, by_format) = (alice(), fido(9), fido(10));
    let key = |entry: String| format!(r#"{{"kind": "key", "data": {{{entry}}}}}"#);
    let entries = [
        key(format!(r#""pubkey": "{}""#, alice.public_key())),
        key(format!(r#""pubkey": "{}""#, by_line.line())),
        key(format!(r#""format": "sk-ssh-ed25519", "pubkey": "{}""#, by_format.public_key())),
    ];
    let text = format!(
        "{{\"version\": 1, \"timestamp\": \"2026-01-01T00:00:00Z\", \"artifact_signers\": [{{\"threshold\": 2, \"signers\": [{}]}}]}}\n",
        entries.join(", ")
    );
    let everyone: [&dyn SignsDigests; 3] = [&alice, &by_line, &by_format];
    let past = Past::of(PROJECT).then_text(text, &everyone);
    evidence(&past, INDEX, &release_index("v1"), &everyone[..2])
}

fn revoked_by_touch() -> Evidence {
    let shown = fido_team();
    let revocation = Some(revocation_of(&shown, &[&fido(10)]));
    Evidence { revocation, ..shown }
}

fn gitlab() -> Evidence {
    let base = "https://gitlab.com/acme/tools/app/-/releases/app%2Fv1";
    let mut index = release_index("v1");
    index.project_id = path(GITLAB);
    index.release_url = Some(base.to_owned());
    index.published_files = vec![file("app.tar.gz", &format!("{base}/downloads/bin/app.tar.gz"), "one")];
    let at = format!("{GITLAB}/releases/tag/app/v1/svc.index.json");
    evidence(&founded(GITLAB), &at, &index, &[&alice(), &bob()])
}

fn checksums() -> Evidence {
    let base = "https://files.example:8443/app/1.0";
    let mut plain = file("app 1.0.tar.gz", &format!("{base}/app%201.0.tar.gz"), "one");
    (plain.size, plain.digests.sha256) = (None, None);
    let nested = file("linux/x86_64/app", &format!("{base}/linux/x86_64/app"), "two");
    let index = checksums_index(FILES, vec![plain, nested]);
    let at = format!("{FILES}/1.0/svc.index.json");
    evidence(&founded(FILES), &at, &index, &[&alice(), &bob()])
}

fn linked_asset() -> Evidence {
    let mut index = release_index("v1");
    index.published_files = vec![file("app.tar.gz", "https://cdn.example/acme/v1.tar.gz?download=1", "one")];
    evidence(&founded(PROJECT), INDEX, &index, &[&alice(), &bob()])
}

fn revoked_by_request() -> Evidence {
    let shown = good();
    let revocation = revocation_by_request(&shown, &bob(), &path(INDEX));
    Evidence { revocation: Some(revocation), ..shown }
}

fn revoked_by_two() -> Evidence {
    let team = founders().revocation(2, [&carol(), &key(5), &key(6)]);
    let everyone = [&alice(), &bob(), &carol(), &dave(), &key(5), &key(6)];
    let past = Past::of(PROJECT).then(&team, &everyone);
    let shown = evidence(&past, INDEX, &release_index("v1"), &[&alice(), &bob()]);
    let mut revocation = revocation_of(&shown, &[&carol(), &key(6)]);
    revocation.document = revocation.document.replace(&format!("\"{}\"", noon()), "1769947200");
    revocation.signatures = signed_by(&revocation.document, &[&carol(), &key(6)]);
    Evidence { revocation: Some(revocation), ..shown }
}

fn revoked_later() -> Evidence {
    let shown = signed_before();
    let revocation = revocation_of(&shown, &[&carol()]);
    Evidence { revocation: Some(revocation), ..shown }
}
