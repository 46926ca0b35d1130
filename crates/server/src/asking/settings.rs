//! Which witnesses can be asked.

use std::net::IpAddr;

use countersign_core::{
    log::policy::Policy,
    values::{shown::shown_text, verifier_key::VerifierKey, wire::routes::ADD_CHECKPOINT},
};
use thiserror::Error;
use url::{Host, Url};

#[derive(Debug, Clone)]
pub struct AskedWitness {
    /// In the policy.
    pub name: String,
    pub key: VerifierKey,
    /// Where `add-checkpoint` is.
    pub url: String,
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
    pub fn list(policy: &Policy) -> Result<Vec<Self>, BadWitnessUrl> {
        let with_url = policy.witnesses().iter().filter_map(|witness| Some((witness, witness.url.as_ref()?)));
        let asked = with_url.map(|(witness, url)| {
            let (name, key) = (witness.name.clone(), witness.key.clone());
            let bad = BadWitnessUrl { name: name.clone(), url: url.clone() };
            let url = Url::parse(url).ok().filter(is_usable).ok_or(bad)?;
            let url = format!("{}{ADD_CHECKPOINT}", url.as_str().trim_end_matches('/'));
            Ok(Self { name, key, url })
        });
        asked.collect()
    }
}

fn is_usable(url: &Url) -> bool {
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        None => return false,
    };
    let is_bare = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    is_bare && (url.scheme() == "https" || url.scheme() == "http" && is_here)
}
