//! `countersign config`

use std::path::Path;

use countersign_core::values::{path::RepoPath, shown::shown_text};
use serde_json::json;

use crate::args::{ConfigCommand, ConfigSetArgs, GlobalArgs, ScopeArgs, parse_duration};
use crate::client::{ServerClient, session, session::Reader, targets::ReleaseName};
use crate::evidence::log_policy;
use crate::keys::read_public_half;
use crate::settings::client_config::{ClientConfigFile, Setting, SettingScope};
use crate::words::{error::CliError, output::Output};

pub(crate) fn run(
    command: Option<&ConfigCommand>,
    global: GlobalArgs,
    output: Output,
) -> Result<(), CliError> {
    let file = ClientConfigFile::locate()?;
    match command {
        None | Some(ConfigCommand::Show) => show(&file, output),
        Some(ConfigCommand::Set(args)) => set(&file, args, global, output),
        Some(ConfigCommand::Unset { setting, scope }) => {
            let scope = scope_of(scope, global, output)?;
            file.set(&scope, *setting, None)?;
            output.result(
                &format!("The {} for {scope} is no longer set.", setting.name()),
                &json!({"file": file.path().display().to_string()}),
            )
        }
    }
}

fn show(file: &ClientConfigFile, output: Output) -> Result<(), CliError> {
    let values = file.read()?.values();
    let mut lines = vec![file.path().display().to_string()];
    let mut scope = None;
    for line in &values {
        if scope.replace(&line.scope) != Some(&line.scope) {
            lines.push(format!("for {}", line.scope));
        }
        lines.push(format!("  {:<7}  {}", line.setting.name(), shown_text(&line.value)));
    }
    if values.is_empty() {
        lines.push(
            "  Nothing is set. `countersign config set server https://sign.example.org` sets a server for all \
             projects."
                .to_owned(),
        );
    }
    let values = values.iter().map(|line| {
        let (host, project) = match &line.scope {
            SettingScope::All => (None, None),
            SettingScope::Host(host) => (Some(host.as_str()), None),
            SettingScope::Project(project) => (None, Some(project.as_str())),
        };
        json!({"setting": line.setting.name(), "value": line.value, "host": host, "project": project})
    });
    let value = json!({
        "file": file.path().display().to_string(),
        "settings": values.collect::<Vec<_>>(),
    });
    output.answer(&lines.join("\n"), &value)
}

fn set(
    file: &ClientConfigFile,
    args: &ConfigSetArgs,
    global: GlobalArgs,
    output: Output,
) -> Result<(), CliError> {
    let value = match args.setting {
        Setting::Server => {
            ServerClient::new(&args.value, Output::silent())
                .map_err(|error| error.with_hint("write it as https://HOST or http://HOST:PORT"))?;
            args.value.clone()
        }
        Setting::Key => set_file(&args.value, |path| read_public_half(path).map(drop))?,
        Setting::Policy => set_file(&args.value, |path| log_policy::read(path).map(drop))?,
        Setting::MaxAge => {
            let not_an_age =
                |form| CliError::usage(format!("`{}` is not an age", shown_text(&args.value)), form);
            parse_duration(&args.value).map_err(not_an_age)?;
            args.value.clone()
        }
    };
    let scope = scope_of(&args.scope, global, output)?;
    file.set(&scope, args.setting, Some(&value))?;
    output.result(
        &format!("The {} for {scope} is {}.", args.setting.name(), shown_text(&value)),
        &json!({"file": file.path().display().to_string(), "setting": args.setting.name(), "value": value}),
    )
}

/// A path that means the same file from anywhere, and leads to a file that `check` accepts.
fn set_file(path: &str, check: impl FnOnce(&Path) -> Result<(), CliError>) -> Result<String, CliError> {
    let path = match std::path::absolute(path) {
        Ok(absolute) if !path.starts_with("~/") => absolute.display().to_string(),
        Ok(_) | Err(_) => path.to_owned(),
    };
    check(&ClientConfigFile::resolve(Path::new(&path)))?;
    Ok(path)
}

fn scope_of(args: &ScopeArgs, global: GlobalArgs, output: Output) -> Result<SettingScope, CliError> {
    Ok(match (&args.project, &args.host) {
        (Some(name), _) => SettingScope::Project(resolve_project(name, global, output)?),
        (None, Some(host)) => SettingScope::Host(host.to_ascii_lowercase()),
        (None, None) => SettingScope::All,
    })
}

/// A project that is written in full need not exist yet. This computer or a server knows the rest of a short name.
fn resolve_project(name: &str, global: GlobalArgs, output: Output) -> Result<RepoPath, CliError> {
    let name = ReleaseName::parse_project(name)?;
    let path = match name.written_path() {
        Some(path) => path,
        None => session::ask(global, output, &name, async |session, name| {
            Ok(session.find_path(name, Reader::Signer).await?.path)
        })?,
    };
    if path.names().next().is_some() {
        return Ok(path);
    }
    let hint =
        "write a project as in acme/app or https/github.com/443/acme/app; --host HOST is for all on a host";
    Err(CliError::usage(format!("{path} is not a project"), hint))
}
