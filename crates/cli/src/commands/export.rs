//! `countersign export`

mod files;
mod other_format;
mod rebuilds;
mod release;

use std::path::Path;

use countersign_core::values::{digest::Sha256, shown::shown_text};
use serde_json::json;

use crate::commands::download::{find_accepted, warn_of_doubts};
use crate::commands::export::files::{SCRIPT, check_free, write_all};
use crate::commands::export::other_format::{Export, LeftOut};
use crate::commands::export::release::ExportedRelease;
use crate::evidence::{release::ShownEvidence, report::release_name};
use crate::words::{error::CliError, error::shown_path, output::quote};
use crate::{args::ExportArgs, args::ExportFormat, client::session::Session, client::targets::ReleaseName};

pub(crate) async fn run(session: &Session, args: &ExportArgs) -> Result<(), CliError> {
    let name = ReleaseName::parse_one(&args.names)?;
    check_free(&args.output, args.force)?;
    let (found, accepted) = find_accepted(session, &name, &args.proof, None).await?;
    warn_of_doubts(&accepted, session.output);
    let ShownEvidence { shown, evidence } = &found.shown;
    let artifact = &accepted.accepted.artifact;
    let release = ExportedRelease::new(artifact, evidence, accepted.begun.as_ref())?;
    let Export { files, script, left_out } = match args.format {
        ExportFormat::Openssl => Export::for_openssl(&release)?,
        ExportFormat::Ssh => Export::for_ssh(shown, &release)?,
        ExportFormat::Minisign => Export::for_minisign(shown, &release)?,
        ExportFormat::Openpgp => Export::for_openpgp(shown, &release)?,
    };
    write_all(&args.output, &files, &script)?;
    let digest = Sha256::of(script.as_bytes());
    let text = format!(
        "Exported {} to {}\n\
         Verify with: sh {} [DIRECTORY OF THE FILES]\n\
         The script cannot vouch for itself. Publish its SHA-256 where your users trust you:\n  {digest}  {SCRIPT}",
        release_name(artifact),
        shown_path(&args.output),
        shown_script(&args.output),
    );
    for LeftOut { file_name, reason } in &left_out {
        session
            .output
            .warn(&format!("warning: no signature for {} is exported: {reason}", shown_text(file_name)));
    }
    if args.format == ExportFormat::Openssl {
        let warnings = release.rebuilds.iter().flat_map(|rebuilds| &rebuilds.warnings);
        warnings.for_each(|warning| session.output.warn(&format!("warning: {warning}")));
    }
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).chain([SCRIPT]).collect();
    let value = json!({
        "directory": args.output.display().to_string(),
        "format": args.format,
        "files": names,
        "left_out": left_out,
        "script_sha256": digest.to_string(),
    });
    session.output.result(&text, &accepted.json(value))
}

fn shown_script(dir: &Path) -> String {
    let shown = shown_path(&dir.join(SCRIPT));
    // `sh` would take it for an option.
    let shown = if shown.starts_with('-') { format!("./{shown}") } else { shown };
    quote(&shown)
}
