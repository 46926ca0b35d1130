//! The workflow files of docs/ci.md, run from their first job to their last.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::runner::{Runner, StepEnd, evaluate, evaluated, read, root};
use super::{Scene, gitlab::gitlab_runner, gitlab::read_template, gitlab::run_job, yaml};
use crate::support::fake_forge::Kind;

const SERVER: &str = "https://sign.example.org";

/// Names with characters that mean something in a URL, to curl, or to the patterns of a shell.
const AWKWARD: [&str; 5] = ["app.tar.gz", "a b[1-9]{x,y}&+.txt", "-o é.txt", ".app.conf", "..app"];

/// Each file was sent to its own address, whatever is in its name.
#[track_caller]
fn assert_uploads(runner: &Runner, below: &str) {
    let told = runner.calls_of("curl");
    let mut uploaded: Vec<(String, String)> = Vec::new();
    for line in told.lines() {
        assert!(line.contains(" --globoff "), "{line}");
        let (file, url) = line.split_once("--upload-file ./").unwrap().1.split_once(" http").unwrap();
        let name = url.split_once(below).unwrap_or_else(|| panic!("{url}")).1;
        assert!(name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'%'), "{name}");
        let bytes = name.split('%').skip(1).map(|hex| u8::from_str_radix(hex, 16).unwrap()).collect();
        uploaded.push((file.to_owned(), String::from_utf8(bytes).unwrap()));
    }
    uploaded.sort();
    let mut expected = AWKWARD.map(|name| (name.to_owned(), name.to_owned()));
    expected.sort();
    assert_eq!(uploaded, expected);
}

/// A workflow, and what its jobs have put out.
struct Workflow<'a> {
    scene: &'a Scene,
    runner: Runner,
    jobs: Value,
    context: Value,
}

impl<'a> Workflow<'a> {
    fn of(scene: &'a Scene, file: &str) -> Self {
        let runner = scene.runner("v1.0");
        for name in ["make", "gh", "curl"] {
            runner.stub(name);
        }
        let secrets = json!({ "COUNTERSIGN_REGISTRAR_KEY": scene.key(), "PACKAGE_TOKEN": "secret" });
        let vars = json!({ "COUNTERSIGN_SIGNERS_DIGEST": scene.signers_digest() });
        let context =
            json!({ "secrets": secrets, "vars": vars, "github": { "token": "secret" }, "needs": {} });
        Self { scene, runner, jobs: yaml::read(&read(file))["jobs"].clone(), context }
    }

    /// Runs a job up to its first failure.
    #[track_caller]
    fn run(&mut self, name: &str) -> StepEnd {
        let job = self.jobs[name].clone();
        if let Some(needed) = job["needs"].as_str() {
            assert!(self.context["needs"][needed].is_object(), "{needed} must run before {name}");
        }
        let mut context = self.context.clone();
        context["steps"] = json!({});
        let mut end = StepEnd::default();
        for step in job["steps"].as_array().expect("steps") {
            end = self.step(step, &context);
            if let Some(id) = step["id"].as_str() {
                context["steps"][id] = json!({ "outputs": end.outputs });
            }
            if end.code != 0 {
                return end;
            }
        }
        self.context["needs"][name] = json!({ "outputs": evaluated(&job["outputs"], &context) });
        end
    }

    fn step(&self, step: &Value, context: &Value) -> StepEnd {
        let Some(uses) = step["uses"].as_str() else {
            return self
                .runner
                .run(step["run"].as_str().expect("a script"), &evaluated(&step["env"], context));
        };
        let uses = uses.trim_start_matches("https://codeberg.org/");
        let Some(rest) = uses.strip_prefix("OWNER/countersign") else {
            // An action of others is pinned by its commit, and leaves no token for later steps.
            let commit = uses.strip_prefix("actions/checkout@").expect("no other action");
            assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{uses}");
            assert_eq!(step["with"]["persist-credentials"], "false");
            return StepEnd::default();
        };
        let (dir, _) = rest.trim_start_matches('/').split_once('@').expect("a version");
        let with = step["with"].as_object().cloned().unwrap_or_default();
        let value = |value: &Value| {
            evaluate(value.as_str().expect("text"), context).replace(SERVER, &self.scene.server())
        };
        let with: Vec<(String, String)> =
            with.iter().map(|(name, given)| (name.clone(), value(given))).collect();
        let with: Vec<(&str, &str)> =
            with.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.runner.action(if dir.is_empty() { "." } else { dir }, &with)
    }
}

#[test]
fn the_workflow_for_github_promotes_a_release_that_it_has_verified() {
    let scene = Scene::start(Kind::GitHub);
    let mut workflow = Workflow::of(&scene, "ci/examples/github.yml");
    workflow.run("build").ok();
    assert!(workflow.runner.calls_of("gh").contains("release create v1.0 --verify-tag --prerelease"));
    scene.publish("v1.0");
    workflow.run("register").ok();
    // The time of the gate is over long before 5 hours.
    workflow.jobs["publish"]["steps"][1]["with"]["timeout"] = json!("1s");
    workflow.run("publish").failed(6);
    let told = workflow.runner.calls_of("gh");
    assert!(
        !told.contains("release edit") && !told.contains("release upload"),
        "nothing is published: {told}"
    );
    scene.sign("v1.0");
    workflow.run("publish").ok();
    let told = workflow.runner.calls_of("gh");
    let last: Vec<&str> = told.lines().rev().take(2).collect();
    // What is promoted are the files in the directory where the gate has verified them.
    let verified = "countersign-release/app.tar.gz countersign-release/notes.txt";
    assert_eq!(last[1], format!("release upload v1.0 --repo acme/app --clobber {verified}"));
    assert_eq!(last[0], "release edit v1.0 --repo acme/app --prerelease=false --latest");
}

#[test]
fn the_workflow_for_forgejo_uploads_what_it_has_verified() {
    let scene = Scene::start(Kind::Forgejo);
    let mut workflow = Workflow::of(&scene, "ci/examples/forgejo.yml");
    scene.publish_files("v1.0", &AWKWARD);
    workflow.run("register").ok();
    workflow.jobs["publish"]["steps"][1]["with"]["timeout"] = json!("1s");
    workflow.run("publish").failed(6);
    assert_eq!(workflow.runner.calls_of("curl"), "");
    scene.sign("v1.0");
    workflow.run("publish").ok();
    assert_uploads(&workflow.runner, "/api/packages/acme/generic/app/v1.0/");
}

#[test]
fn the_pipeline_for_gitlab_uploads_what_it_has_verified() {
    let scene = Scene::start(Kind::GitLab);
    scene.publish_files("v1.0", &AWKWARD);
    let mut runner = gitlab_runner(&scene, "v1.0");
    for (name, value) in
        [("CI_JOB_TOKEN", "secret"), ("CI_API_V4_URL", "http://gitlab/api/v4"), ("CI_PROJECT_ID", "7")]
    {
        runner.env.insert(name.to_owned(), value.to_owned());
    }
    runner.stub("curl");
    let pipeline = yaml::read(&read("ci/examples/gitlab.yml"));
    let mut jobs: BTreeMap<String, Value> = BTreeMap::new();
    for include in pipeline["include"].as_array().unwrap() {
        let component = include["component"].as_str().unwrap();
        let name = component.rsplit_once('/').unwrap().1.split_once('@').unwrap().0;
        let mut with: Vec<(String, String)> = Vec::new();
        for (name, value) in include["inputs"].as_object().unwrap() {
            let value = value.as_str().unwrap().replace(SERVER, &scene.server()).replace("50m", "1s");
            with.push((name.clone(), value.replace("DIGEST", &scene.signers_digest())));
        }
        with.push(("scripts".to_owned(), root().join("ci").to_str().unwrap().to_owned()));
        let with: Vec<(&str, &str)> =
            with.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let (name, mut job) = read_template(name, &with);
        // What the pipeline says of a job replaces what the template says.
        for (key, value) in pipeline[&name].as_object().into_iter().flatten() {
            job[key] = value.clone();
        }
        jobs.insert(job["stage"].as_str().unwrap().to_owned(), job);
    }
    let mut dotenv = BTreeMap::new();
    let mut run = |stage: &str| run_job(&runner, &jobs[stage], &mut dotenv);
    run("register").ok();
    run("sign").failed(6);
    run("publish").failed(3);
    assert_eq!(runner.calls_of("curl"), "");
    scene.sign("v1.0");
    run("sign").ok();
    run("publish").ok();
    assert_uploads(&runner, "/projects/7/packages/generic/app/v1.0/");
    let stages: Vec<&str> = pipeline["stages"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(stages, ["register", "sign", "publish"]);
}

/// Each example names the tag of our release as it is pushed, with a v.
#[test]
fn the_examples_spell_our_tag_alike() {
    for name in ["github", "forgejo", "gitlab"] {
        let example = read(&format!("ci/examples/{name}.yml"));
        let ours =
            example.lines().filter(|line| line.contains("OWNER/countersign") || line.contains(" image: "));
        for line in ours {
            assert!(line.ends_with("@v0.1.0") || line.ends_with(":v0.1.0"), "{name}: {line}");
        }
    }
}

#[test]
fn the_page_shows_these_files_word_for_word_and_every_exit_code() {
    let page = read("docs/ci.md");
    for code in 0..=8 {
        assert!(page.contains(&format!("| {code} |")), "{code}");
    }
    for name in ["github", "forgejo", "gitlab"] {
        let example = read(&format!("ci/examples/{name}.yml"));
        assert!(
            page.contains(&format!("```yaml\n{example}```\n")),
            "docs/ci.md does not show ci/examples/{name}.yml"
        );
    }
}
