//! The log and the witnesses that a signers file names (D91).

use countersign_core::values::{shown::shown_text, verifier_key::VerifierKey};
use countersign_explain::{
    log_strength::LogStrength,
    logs::{shown_age, witness_rule},
};
use maud::{Markup, html};

/// The facts about the log, for a list.
pub(super) fn log_facts(log: &LogStrength) -> Markup {
    let file = &log.transparency;
    html! {
        dt { "Log that proves the newest state" }
        dd { (verifier_key(file.log())) }
        @for group in file.witnesses() {
            dt { "Witnesses, " (witness_rule(group)) " must have seen it" }
            dd { ul { @for key in &group.keys { li { (verifier_key(key)) @if group.replays(key) { ", which replays the rules" } } } } }
        }
        @if file.witnesses().is_empty() {
            dt { "Witnesses" }
            dd { "None: the log's word is enough." }
        }
        @if let Some(age) = file.max_age() {
            dt { "Oldest proof that counts" }
            dd { (shown_age(age)) }
            dt { "Witnesses that can be down" }
            dd { (log.outage_text()) }
        }
        dt { "Who could show different people different states" }
        dd { (log.collusion_text()) }
        dt { "Who could show everyone a false state" }
        dd { (log.lie_text()) }
    }
}

/// A name never stands without its key (D39).
fn verifier_key(key: &VerifierKey) -> Markup {
    html! { code.wrap data-copies="the key" { bdi { (shown_text(&key.to_string())) } } }
}
