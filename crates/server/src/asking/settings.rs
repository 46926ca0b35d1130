//! Which witnesses can be asked.

use countersign_core::{
    log::policy::Policy,
    values::{
        digest::Sha256, shown::shown_text, url::is_this_machine, verifier_key::VerifierKey,
        wire::routes::ADD_CHECKPOINT,
    },
};
use countersign_forge::http_url::parse_bare_url;
use thiserror::Error;
use url::Url;

#[derive(Debug, Clone)]
pub struct AskedWitness {
    /// In the policy.
    pub name: String,
    pub key: VerifierKey,
    /// Where `add-checkpoint` is.
    pub url: String,
    /// Where it shows the newest checkpoint of this log that it has cosigned, if it shows that.
    pub shown_url: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{}` is not the address of the witness `{name}`: write it as https://HOST/PATH; http is for this machine only",
    shown_text(url)
)]
pub struct BadWitnessUrl {
    name: String,
    url: String,
}

impl AskedWitness {
    /// Those of a policy that have a URL. The others post their cosignatures themselves.
    pub fn list(policy: &Policy, origin: &str) -> Result<Vec<Self>, BadWitnessUrl> {
        let shown = format!("/{}/checkpoint", Sha256::of(origin.as_bytes()));
        let with_url = policy.witnesses().iter().filter_map(|witness| Some((witness, witness.url.as_ref()?)));
        let asked = with_url.map(|(witness, url)| {
            let (name, key) = (witness.name.clone(), witness.key.clone());
            let bad = BadWitnessUrl { name: name.clone(), url: url.clone() };
            let url = parse_bare_url(url).filter(is_guarded).ok_or(bad)?;
            let prefix = url.as_str().trim_end_matches('/');
            let (url, shown_url) = (format!("{prefix}{ADD_CHECKPOINT}"), format!("{prefix}{shown}"));
            Ok(Self { name, key, url, shown_url })
        });
        asked.collect()
    }
}

fn is_guarded(url: &Url) -> bool {
    url.scheme() == "https" || url.host_str().is_some_and(is_this_machine)
}
