//! The policy that a signers file gives (D91).

use crate::{
    documents::transparency::{Transparency, WitnessGroup},
    log::policy::Policy,
    values::verifier_key::VerifierKey,
};

impl Transparency {
    pub fn policy(&self) -> Policy {
        let group = |group: &WitnessGroup| (group.threshold, group.keys.clone());
        let groups: Vec<(usize, Vec<VerifierKey>)> = self.witnesses().iter().map(group).collect();
        Policy::of_groups(self.log().clone(), &groups)
            .expect("no key occurs twice and each threshold can be reached: checked in parse")
    }
}
