//! Turns shown evidence into a release that this computer accepts: core's verification, then the root of trust.

use countersign_core::proof::trust::{AsOf, Pin, Root, SeenRevocation, TrustError, TrustStore};
use countersign_core::proof::verify::{Evidence, VerifiedArtifact, VerifyError, verify};
use countersign_core::values::shown::{quoted, shown_text};
use countersign_core::values::{bounds::SIGNERS_FILE_BYTES, digest::Sha512, path::RepoPath, time::Timestamp};
use countersign_core::{
    documents::signers::SignersOrigin, rules::chain::VerifiedChain, rules::stored::ReleaseState,
};
use countersign_explain::{reproduction::is_reproducible, reproduction::lack_text, words::shown_release};
use countersign_forge::{fetch::Fetcher, fetch::Timeouts, forges::SignersSource, forges::locate_claimed};
use serde_json::json;

use crate::words::{error::CliError, error::ErrorKind, output::quote};
use crate::{client::now, settings::trust::TrustFile};

/// A release that was verified, and whose signers this computer accepts.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) artifact: VerifiedArtifact,
    pub(crate) root: Root,
    pub(crate) since: Timestamp,
    pub(crate) is_first_use: bool,
}

/// Decides where the root of trust may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    /// The project's own forge may be asked; what is shown is the newest.
    Online,
    /// No server is asked, so what is shown may be old.
    Offline,
}

/// Verifies evidence, establishes the root of trust and remembers what was accepted. A revocation counts, and is
/// remembered, if the project is one that this computer accepts: a stranger's is not the project's word.
pub(crate) async fn accept(
    evidence: &Evidence,
    signers_digest: Option<Sha512>,
    network: Network,
) -> Result<Accepted, CliError> {
    let trust = TrustFile::locate()?;
    let (artifact, revoked) = match verify(evidence) {
        Ok(artifact) => (artifact, None),
        Err(VerifyError::Revoked(revoked)) => (revoked.artifact.clone(), Some(revoked)),
        // It is the project's own wish, so whether this is the project comes first.
        Err(VerifyError::NotReproduced(artifact)) => (*artifact, None),
        Err(error) => {
            return Err(CliError::unverified(
                format!("{} is not verified", evidence.path),
                "do not use the file: the server lies or is broken, or the release was tampered with",
            )
            .because(error));
        }
    };
    let (chain, store, now) = (&artifact.chain, trust.read()?, now()?);
    let pin = check_pin(&store, chain, network)?;
    if revoked.is_none() {
        check_digest(&artifact.chain, signers_digest)?;
        check_not_seen_revoked(&store, &artifact, network)?;
    }
    let root = match pin {
        Some(pin) => pin.root.clone(),
        None => find_root(chain, signers_digest, network).await?,
    };
    // Everything is decided again, on what other processes may have learned while this one asked servers.
    let (root, since, is_first_use) = trust.try_change(|store| {
        let is_first_use = !store.projects.contains_key(&chain.project);
        let pin = store.accept(chain, network.shown(), root.clone(), now).map_err(untrusted)?;
        let accepted = (pin.root.clone(), pin.accepted_at, is_first_use);
        if revoked.is_none() {
            check_not_seen_revoked(store, &artifact, network)?;
        }
        Ok(accepted)
    })?;
    if let Some(revoked) = &revoked {
        trust.change(|store| store.remember_revocation(revoked))?;
        let document = &revoked.revocation.document;
        return Err(revoked_error(&artifact.path, &chain.project, &document.reason, document.timestamp, ""));
    }
    check_reproduced(&artifact)?;
    Ok(Accepted { artifact, root, since, is_first_use })
}

/// Refuses a release that its project wants to be reproduced first (D261).
fn check_reproduced(artifact: &VerifiedArtifact) -> Result<(), CliError> {
    let Some(lacking) = artifact.reproduction.as_ref().filter(|reproduction| reproduction.is_lacking())
    else {
        return Ok(());
    };
    let project = &artifact.chain.project;
    let name = shown_release(&artifact.path, project);
    Err(CliError::unverified(
        format!(
            "{name} is not reproduced: {}, and its project wants that before anyone uses it",
            lack_text(lacking)
        ),
        match is_reproducible(lacking, ReleaseState::Complete) {
            true => {
                format!(
                    "wait for the builders; `countersign status {}` shows them",
                    quote(artifact.path.as_str())
                )
            }
            false => "no builder can change that: look for another release, or ask the project".to_owned(),
        },
    ))
}

fn check_not_seen_revoked(
    store: &TrustStore,
    artifact: &VerifiedArtifact,
    network: Network,
) -> Result<(), CliError> {
    let Some(SeenRevocation { reason, revoked_at, .. }) = store.seen_revocation(artifact) else {
        return Ok(());
    };
    let note = match network {
        Network::Online => ", as this computer has seen before; the server does not show it",
        Network::Offline => ", as this computer has seen before; the bundle does not know of it",
    };
    Err(revoked_error(&artifact.path, &artifact.chain.project, reason, *revoked_at, note))
}

impl Network {
    fn shown(self) -> AsOf {
        match self {
            Self::Online => AsOf::Now,
            Self::Offline => AsOf::Earlier,
        }
    }
}

/// What is shown must continue what this computer has accepted before.
pub(crate) fn check_pin<'a>(
    store: &'a TrustStore,
    chain: &VerifiedChain,
    network: Network,
) -> Result<Option<&'a Pin>, CliError> {
    store.check(chain, network.shown()).map_err(untrusted)
}

/// A server that shows less than this computer has seen is behind. One that shows something else at the same entry
/// rewrites history (D234).
pub(crate) fn untrusted(error: TrustError) -> CliError {
    let project = match &error {
        TrustError::OlderHistory { .. } => return behind(format!("the server is behind: {error}")),
        TrustError::Overlaps { accepted: project, .. } | TrustError::ChangedPast { project, .. } => {
            quote(project.as_str())
        }
    };
    CliError::unverified(
        format!("THE PAST DOES NOT MATCH: {error}"),
        format!(
            "someone rewrites history. Do not use the file, and tell the project. Only if the project itself says, in a \
             place that you trust, that it began anew: `countersign trust remove {project}`"
        ),
    )
}

/// What a server shows is older than what this computer has seen, which can happen on any copy.
pub(crate) fn behind(message: String) -> CliError {
    CliError::unreachable(message, "try again later, or ask another server: --server URL")
        .with_detail("behind", json!(true))
}

fn check_digest(chain: &VerifiedChain, given: Option<Sha512>) -> Result<(), CliError> {
    match given {
        Some(digest) if chain.position(&digest).is_none() => Err(CliError::unverified(
            format!("no signers file of {} has the digest that you gave", chain.project),
            "check that --signers-digest is the SHA-512 of this project's signers file; if it is, the server lies",
        )),
        Some(_) | None => Ok(()),
    }
}

/// A chain that is signed by keys that it introduces itself proves nothing: someone else must vouch for a part of it.
///
/// Any signers file of the chain will do. Who stands in a file has signed the digest of the file before it, so that a
/// true file has a true past; and what comes after it was agreed to by those in it.
async fn find_root(
    chain: &VerifiedChain,
    signers_digest: Option<Sha512>,
    network: Network,
) -> Result<Root, CliError> {
    if let Some(digest) = signers_digest {
        check_digest(chain, Some(digest))?;
        return Ok(Root::Digest(digest));
    }
    match network {
        Network::Online => fetch_root(chain).await,
        Network::Offline => Err(CliError::unverified(
            format!(
                "this computer has not accepted {} before, and a bundle cannot vouch for itself",
                chain.project
            ),
            "pass --signers-digest sha512:…, the digest of the project's signers file, from a place that you trust",
        )),
    }
}

/// Reads the signers file where the project publishes it: by the URL that the first entry names or, only if there is
/// nothing any more, by the last one's. Whatever else the first place says stands: the server, which chooses what the
/// last entry is, must not be able to choose a place that agrees with it.
async fn fetch_root(chain: &VerifiedChain) -> Result<Root, CliError> {
    let (first, last) = (&chain.links[0].metadata.origin, &chain.last().metadata.origin);
    match fetch_root_from(chain, locate_root(chain, first)?).await {
        Err(Unproven::Gone(error)) if first.url != last.url => match locate_root(chain, last) {
            Ok(source) => fetch_root_from(chain, source).await.map_err(|_| error),
            Err(_) => Err(error),
        },
        Err(Unproven::Gone(error) | Unproven::Otherwise(error)) => Err(error),
        Ok(root) => Ok(root),
    }
}

/// Why a place does not vouch for a chain.
enum Unproven {
    /// The place says that it has no such file.
    Gone(CliError),
    Otherwise(CliError),
}

/// Finds the root of a chain. It must be a place that speaks for this very project, and so on the host of the download.
fn locate_root(chain: &VerifiedChain, origin: &SignersOrigin) -> Result<SignersSource, CliError> {
    let source =
        locate_claimed(&origin.url, origin.kind).map_err(|error| unproven(chain, &error.to_string()))?;
    if source.project != chain.project {
        let url = shown_text(&origin.url);
        return Err(unproven(chain, &format!("their file, {url}, speaks for {}", source.project)));
    }
    Ok(source)
}

async fn fetch_root_from(chain: &VerifiedChain, source: SignersSource) -> Result<Root, Unproven> {
    let fetcher = Fetcher::for_user(Timeouts::default());
    let fetcher = fetcher.map_err(|error| Unproven::Otherwise(CliError::no_https(error)))?;
    let url = shown_text(&source.url);
    let fetched = fetcher.fetch_signers(&source, SIGNERS_FILE_BYTES as u64).await.map_err(|error| {
        let is_gone = error.is_absence();
        let error = unproven(chain, &format!("{url} could not be read")).because(error);
        if is_gone { Unproven::Gone(error) } else { Unproven::Otherwise(error) }
    })?;
    let digest = Sha512::of(&fetched.bytes);
    if chain.position(&digest).is_none() {
        let shown = chain.links.iter().map(|link| link.digest.to_prefixed()).collect::<Vec<_>>().join(", ");
        let found = digest.to_prefixed();
        let what = format!(
            "{url} has {found}, and the server shows {shown}. Is a change of signers under way there?"
        );
        return Err(Unproven::Otherwise(unproven(chain, &what)));
    }
    Ok(Root::Origin(source.url))
}

fn unproven(chain: &VerifiedChain, what: &str) -> CliError {
    CliError::unverified(
        format!("it is not proven that these are the signers of {}: {what}", chain.project),
        "take the digest of the project's signers file from a place that you trust (`sha512sum svc.signers.json`), \
         and pass it as --signers-digest sha512:…",
    )
}

pub(crate) fn revoked_error(
    path: &RepoPath,
    project: &RepoPath,
    reason: &str,
    at: Timestamp,
    note: &str,
) -> CliError {
    CliError::new(
        ErrorKind::Revoked,
        format!("{} was REVOKED on {at}{note}: {}", shown_release(path, project), quoted(reason)),
        "do not use the file; look for a newer release",
    )
}
