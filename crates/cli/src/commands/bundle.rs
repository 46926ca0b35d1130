//! `countersign bundle`

use serde_json::json;

use crate::client::{session::Session, targets::ReleaseName};
use crate::{
    args::BundleArgs, commands::download::find_evidence, evidence::report::release_name,
    settings::config_dir::write, words::error::CliError,
};

pub(crate) async fn run(session: &Session, args: &BundleArgs) -> Result<(), CliError> {
    let mut found = find_evidence(session, &ReleaseName::parse_one(&args.names)?).await?;
    let release = found.accept(session, &args.proof, None).await?;
    let bundle = found.shown.bundle();
    write(&args.output, &bundle.write())?;
    let artifact = &release.accepted.artifact;
    // The newest, so that a bundle whose history ends earlier cannot be passed off as this one.
    let digest = artifact.chain.last().digest.to_prefixed();
    let state: Vec<String> = release
        .log
        .lines(&artifact.chain.project, None)
        .into_iter()
        .map(|(name, text)| format!("  {name:<11} {text}\n"))
        .collect();
    let text = format!(
        "Bundled {} in {}\n{}\
         Verify with: countersign verify FILE --bundle {}\n\
         A computer that has not met the project needs this as well, from a place that it trusts:\n  \
         --signers-digest {digest}",
        release_name(artifact),
        args.output.display(),
        state.concat(),
        args.output.display(),
    );
    let value = json!({
        "bundle": args.output.display().to_string(),
        "bundled_at": bundle.bundled_at.to_string(),
        "newest_signers_digest": digest,
    });
    session.output.result(&text, &release.json(value))
}
