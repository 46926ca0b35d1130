//! The witnesses that can be asked, and what is counted of each.

use std::sync::{Arc, Mutex, PoisonError, atomic::AtomicBool, atomic::AtomicU64, atomic::Ordering};
use std::time::{Duration, Instant};

use countersign_core::log::{checkpoint::Cosignature, policy::Policy};
use countersign_core::values::{
    digest::Sha256, key::PublicKey, path::is_this_machine, shown::shown_text, verifier_key::VerifierKey,
    wire::routes::ADD_CHECKPOINT,
};
use countersign_forge::url::parse_bare_url;
use thiserror::Error;
use url::Url;

use crate::metrics::counting::Counter;

#[derive(Debug, Clone)]
pub struct AskedWitness {
    /// The name of the witness in the policy.
    pub name: String,
    pub key: VerifierKey,
    /// The URL of `add-checkpoint`.
    pub url: String,
    /// The URL at which the witness may show the newest checkpoint of this log that it has cosigned.
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
    /// Lists the witnesses of a policy that have a URL. The others post their cosignatures themselves.
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

// Counters of what each witness has cosigned, for metrics.

#[derive(Debug)]
pub struct CosigningStats {
    /// The name of the witness in the policy.
    pub name: String,
    pub key: PublicKey,
    size: AtomicU64,
    at: Mutex<Option<Instant>>,
    pub failures: Counter,
    /// Whether the witness last said that it cosigns nothing more until its operator decides.
    pub is_stopped: AtomicBool,
}

impl CosigningStats {
    /// Makes counters for all witnesses, also for those that post.
    pub fn of(policy: &Policy) -> Vec<Arc<Self>> {
        let witnesses = policy.witnesses().iter().map(|witness| {
            Arc::new(Self {
                name: witness.name.clone(),
                key: witness.key.key(),
                size: AtomicU64::new(0),
                at: Mutex::new(None),
                failures: Counter::default(),
                is_stopped: AtomicBool::new(false),
            })
        });
        witnesses.collect()
    }

    pub fn note_cosigned(all: &[Arc<Self>], size: u64, added: &[Cosignature]) {
        for cosignature in added {
            if let Some(stats) = all.iter().find(|stats| stats.key == cosignature.witness.key()) {
                stats.size.fetch_max(size, Ordering::Relaxed);
                *stats.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            }
        }
    }

    /// The size of the newest checkpoint that the witness has cosigned since this server started.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// The time since the witness last cosigned.
    pub fn since(&self) -> Option<Duration> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner).map(|at| at.elapsed())
    }
}
