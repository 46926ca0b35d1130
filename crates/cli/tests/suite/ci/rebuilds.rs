//! Jobs that wait for builders, and what they say of one who got something else (D259–D262).

use serde_json::json;

use super::{Scene, runner::StepEnd};
use crate::support::{fake_forge::Kind, signers::named_group};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

impl Scene {
    /// A release that both have signed, of which dora and emil each build the archive.
    fn with_builders(is_required: bool) -> Self {
        let builders = named_group(1, &["dora", "emil"]);
        let rebuilds = json!({ "builders": builders, "files": ["*.gz"], "required": is_required });
        let scene =
            Self::start_with(Kind::GitHub, &["dora", "emil"], |file| file.with("rebuilds", rebuilds.clone()));
        let url = scene.publish("v1.0");
        scene.computer.run_as("ci", &["release", &url]).ok();
        scene.sign("v1.0");
        scene.computer.write("same/app.tar.gz", "the archive");
        scene.computer.write("other/app.tar.gz", "another archive");
        scene
    }

    fn rebuild(&self, name: &str, dir: &str) {
        let index = self.index("v1.0");
        let args = ["rebuild", &index, "--files", dir, "--source", COMMIT, "--yes"];
        let ran = self.computer.run_as(name, &args);
        assert_eq!(ran.code, if dir == "same" { 0 } else { 3 }, "{ran:?}");
    }

    fn act(&self, action: &str, with: &[(&str, &str)]) -> StepEnd {
        let (server, index) = (self.server(), self.index("v1.0"));
        let release = [("server", server.as_str()), ("release", index.as_str())];
        self.runner("v1.0").action(action, &[&release[..], with].concat())
    }
}

#[test]
fn a_job_waits_for_builders_that_the_project_requires() {
    let scene = Scene::with_builders(true);
    let short = ("timeout", "1s");
    let late = scene.act("ci/wait", &[short]).failed(6).says(&["1 more from dora or emil"]);
    assert!(late.summary.contains("too few builders have reproduced it"), "{late:#?}");
    assert_eq!(late.outputs["state"], "waiting");
    scene.act("ci/gate", &[short]).failed(6);
    scene.act("ci/gate", &[]).failed(3).says(&["is not reproduced"]);
    scene.rebuild("dora", "same");
    assert_eq!(scene.act("ci/wait", &[short]).ok().outputs["state"], "complete");
    let passed = scene.act("ci/gate", &[short]).ok();
    assert_eq!(passed.outputs["rebuilds"], "reproduced");
    assert!(passed.summary.contains("**Verified: enough signers"), "{passed:#?}");
}

#[test]
fn a_job_can_ask_for_builders_and_its_summary_tells_a_difference() {
    let scene = Scene::with_builders(false);
    let (short, wanted) = (("timeout", "1s"), ("reproduced", "true"));
    scene.act("ci/wait", &[short]).ok();
    scene.act("ci/wait", &[short, ("reproduced", "false")]).ok();
    scene.act("ci/wait", &[short, ("reproduced", "yes")]).failed(2).says(&["neither true nor false"]);
    scene.act("ci/wait", &[short, wanted]).failed(6);
    scene.act("ci/gate", &[short, wanted]).failed(6);
    let refused = scene.act("ci/gate", &[wanted]).failed(3).says(&["too few builders have reproduced"]);
    assert_eq!((refused.outputs["state"].as_str(), refused.summary.as_str()), ("", ""));
    assert_eq!(scene.act("ci/gate", &[]).ok().outputs["rebuilds"], "missing");
    scene.rebuild("dora", "other");
    scene.rebuild("emil", "same");
    scene.act("ci/wait", &[short, wanted]).ok();
    let told = "**Verified, but 1 builder got something else";
    let passed = scene.act("ci/gate", &[wanted]).ok().says(&["DIFFERENT"]);
    assert!(passed.summary.contains(told) && !passed.summary.contains("Verified:"), "{passed:#?}");
    let file = scene.computer.path("same/app.tar.gz");
    let verified = scene.act("ci/verify", &[("files", file.to_str().unwrap())]).ok();
    assert!(verified.summary.contains(told), "{verified:#?}");
}
