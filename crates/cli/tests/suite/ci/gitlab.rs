//! The templates for GitLab.

use std::{collections::BTreeMap, fs};

use serde_json::Value;

use super::{Scene, runner::Runner, runner::StepEnd, runner::read, runner::root, yaml};
use crate::support::fake_forge::Kind;

const TEMPLATES: [&str; 4] = ["release", "wait", "verify", "gate"];

/// The name and the job of a template with these inputs.
#[track_caller]
pub(super) fn read_template(name: &str, with: &[(&str, &str)]) -> (String, Value) {
    let documents = yaml::read_all(&read(&format!("templates/{name}.yml")));
    let [spec, jobs] = &documents[..] else { panic!("{name}: a header and a job") };
    let inputs = spec["spec"]["inputs"].as_object().expect("inputs");
    for (name, _) in with {
        assert!(inputs.contains_key(*name), "no input {name}");
    }
    let value = |name: &str| match with.iter().find(|(given, _)| *given == name) {
        Some((_, value)) => (*value).to_owned(),
        None => inputs[name]["default"].as_str().unwrap_or_else(|| panic!("{name} is required")).to_owned(),
    };
    let (job_name, job) = jobs.as_object().expect("jobs").iter().next().expect("a job");
    (job_name.clone(), filled(job, &value))
}

/// Inputs become whole scalars or parts of them, as GitLab does after it has read the YAML.
fn filled(node: &Value, value: &dyn Fn(&str) -> String) -> Value {
    match node {
        Value::String(text) => {
            let mut text = text.clone();
            while let Some((before, rest)) = text.clone().split_once("$[[ inputs.") {
                let (name, after) = rest.split_once(" ]]").expect("an end");
                text = format!("{before}{}{after}", value(name));
            }
            Value::from(text)
        }
        Value::Array(items) => items.iter().map(|item| filled(item, value)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), filled(member, value))).collect()
        }
        other => other.clone(),
    }
}

/// Runs a job as GitLab's runner does. `dotenv`: what jobs before it have handed over, and then this one. That beats
/// the variables of the job and those of GitLab itself, except where the job depends on no other.
#[track_caller]
pub(super) fn run_job(runner: &Runner, job: &Value, dotenv: &mut BTreeMap<String, String>) -> StepEnd {
    let mut env = BTreeMap::new();
    for (name, variable) in job["variables"].as_object().into_iter().flatten() {
        let is_plain = variable.is_string() && !variable.as_str().is_some_and(|text| text.contains('$'));
        assert!(is_plain || variable["expand"] == "false", "GitLab would expand {name}");
        let value = variable.as_str().or(variable["value"].as_str()).expect("a value");
        env.insert(name.clone(), value.to_owned());
    }
    if job["dependencies"].as_array().is_none_or(|jobs| !jobs.is_empty()) {
        env.extend(dotenv.clone());
    }
    let lines: Vec<&str> =
        job["script"].as_array().expect("a script").iter().filter_map(Value::as_str).collect();
    let end = runner.run(&lines.join("\n"), &env);
    if let Some(report) = job["artifacts"]["reports"]["dotenv"].as_str() {
        let path = runner.work().join(report);
        for line in fs::read_to_string(&path).unwrap_or_default().lines() {
            let (name, value) = line.split_once('=').expect("NAME=VALUE");
            dotenv.insert(name.to_owned(), value.to_owned());
        }
        let _ = fs::remove_file(path);
    }
    end
}

/// A runner of GitLab: other variables, and the key as a file.
pub(super) fn gitlab_runner(scene: &Scene, tag: &str) -> Runner {
    let mut runner = scene.runner(tag);
    runner.env.retain(|name, _| !name.starts_with("GITHUB_"));
    let mut set = |name: &str, value: &str| runner.env.insert(name.to_owned(), value.to_owned());
    set("CI_COMMIT_TAG", tag);
    set("CI_PROJECT_URL", &scene.forge.forge.url("/acme/app"));
    set("COUNTERSIGN_KEY", scene.computer.key_of("ci").to_str().expect("a plain name"));
    runner
}

fn scripts() -> String {
    root().join("ci").to_str().expect("a plain name").to_owned()
}

#[track_caller]
fn run(
    scene: &Scene,
    runner: &Runner,
    name: &str,
    with: &[(&str, &str)],
    dotenv: &mut BTreeMap<String, String>,
) -> StepEnd {
    let (server, scripts) = (scene.server(), scripts());
    let fixed = [("image", "none"), ("scripts", scripts.as_str()), ("server", &server)];
    let with: Vec<_> = with
        .iter()
        .copied()
        .chain(fixed.into_iter().filter(|(name, _)| !with.iter().any(|(given, _)| given == name)))
        .collect();
    run_job(runner, &read_template(name, &with).1, dotenv)
}

#[test]
fn a_release_goes_through_the_jobs_of_the_templates() {
    let scene = Scene::start(Kind::GitLab);
    scene.publish("v1.0");
    let runner = gitlab_runner(&scene, "v1.0");
    let mut dotenv = BTreeMap::new();
    run(&scene, &runner, "release", &[], &mut dotenv).ok().says(&["Its page: "]);
    assert_eq!(dotenv["COUNTERSIGN_INDEX"], scene.index("v1.0"));
    run(&scene, &runner, "wait", &[("timeout", "1s")], &mut dotenv).failed(6);
    assert_eq!(dotenv["COUNTERSIGN_STATE"], "waiting");
    run(&scene, &runner, "gate", &[], &mut dotenv).failed(3);
    scene.sign("v1.0");
    run(&scene, &runner, "wait", &[("timeout", "1s")], &mut dotenv).ok();
    run(&scene, &runner, "gate", &[], &mut dotenv).ok();
    assert_eq!(dotenv["COUNTERSIGN_STATE"], "verified");
    run(&scene, &runner, "verify", &[("files", "countersign-release")], &mut dotenv).ok();
    // Without what jobs before have handed over, the tag says which release it is.
    run(&scene, &runner, "gate", &[("files", "countersign-release")], &mut BTreeMap::new()).ok();
}

#[test]
fn hostile_inputs_stay_values() {
    let scene = Scene::start(Kind::GitLab);
    scene.publish("v1.0");
    for (name, inputs) in [
        ("release", &["server", "release", "checksums", "scripts"][..]),
        ("wait", &["server", "release", "timeout", "on-timeout", "reproduced", "scripts"]),
        ("verify", &["server", "release", "files", "signers-digest", "scripts"]),
        (
            "gate",
            &["server", "release", "project", "files", "timeout", "reproduced", "signers-digest", "scripts"],
        ),
    ] {
        for input in inputs {
            for value in ["'\"; $(touch pwned)`touch pwned`", "x\nA=forged"] {
                let runner = gitlab_runner(&scene, "v1.0");
                let mut dotenv = BTreeMap::new();
                let end = run(&scene, &runner, name, &[(input, value)], &mut dotenv);
                assert_ne!(end.code, 0, "{name} {input} {value:?}: {end:#?}");
                assert!(
                    !runner.work().join("pwned").exists() && dotenv.is_empty(),
                    "{name} {input} {value:?}: {end:#?}"
                );
            }
        }
    }
}

/// The name of a directory can be almost anything, and is one all the same.
#[test]
fn a_hostile_directory_is_a_directory() {
    let scene = Scene::start(Kind::GitLab);
    scene.publish("v1.0");
    let runner = gitlab_runner(&scene, "v1.0");
    run(&scene, &runner, "release", &[], &mut BTreeMap::new()).ok();
    scene.sign("v1.0");
    for value in ["$(touch pwned)`touch pwned`", "'; touch pwned '", "\"; touch pwned \"", "--help", "a b"] {
        let runner = gitlab_runner(&scene, "v1.0");
        run(&scene, &runner, "gate", &[("directory", value)], &mut BTreeMap::new()).ok();
        assert!(runner.work().join(value).join("app.tar.gz").exists(), "{value}");
        assert!(!runner.work().join("pwned").exists(), "{value}");
    }
    let runner = gitlab_runner(&scene, "v1.0");
    let mut dotenv = BTreeMap::new();
    run(&scene, &runner, "gate", &[("directory", "x\nA=forged")], &mut dotenv).failed(2);
    assert!(dotenv.is_empty());
}

/// Inputs that reach no shell are read by GitLab alone. The entrypoint of our own image is not a shell.
#[test]
fn stage_and_image_reach_no_shell_and_the_image_brings_one() {
    let hostile = "$(touch pwned)'\"";
    for name in TEMPLATES {
        let (_, mut job) = read_template(name, &[("image", hostile), ("stage", hostile), ("scripts", "x")]);
        assert_eq!(job["image"]["entrypoint"], serde_json::json!([""]), "{name}");
        assert_eq!((&job["image"]["name"], &job["stage"]), (&Value::from(hostile), &Value::from(hostile)));
        for part in ["image", "stage"] {
            job.as_object_mut().unwrap().remove(part);
        }
        assert!(!job.to_string().contains("pwned"), "{name}: {job}");
    }
}

/// An earlier job can hand over any variable. None of them reaches the gate.
#[test]
fn the_gate_hears_nothing_of_earlier_jobs() {
    let scene = Scene::start(Kind::GitLab);
    for tag in ["v0.9", "v1.0"] {
        scene.publish(tag);
        let runner = gitlab_runner(&scene, tag);
        run(&scene, &runner, "release", &[], &mut BTreeMap::new()).ok();
    }
    scene.sign("v0.9");
    let runner = gitlab_runner(&scene, "v1.0");
    let handed = [
        ("CI_COMMIT_TAG", "v0.9".to_owned()),
        ("COUNTERSIGN_RELEASE", scene.index("v0.9")),
        ("COUNTERSIGN_INDEX", scene.index("v0.9")),
        ("COUNTERSIGN_SERVER", "http://127.0.0.1:9".to_owned()),
        ("COUNTERSIGN_DIRECTORY", "pwned".to_owned()),
    ];
    let mut dotenv: BTreeMap<String, String> =
        handed.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    run(&scene, &runner, "gate", &[], &mut dotenv).failed(3);
    scene.sign("v1.0");
    run(&scene, &runner, "gate", &[], &mut dotenv).ok();
    assert_eq!(dotenv["COUNTERSIGN_INDEX"], scene.index("v1.0"));
    assert!(!runner.work().join("pwned").exists());
}

#[test]
fn no_template_splices_an_input_into_a_script() {
    for name in TEMPLATES {
        let text = read(&format!("templates/{name}.yml"));
        let jobs = &yaml::read_all(&text)[1];
        for job in jobs.as_object().unwrap().values() {
            for part in ["script", "before_script", "after_script"] {
                assert!(!job[part].to_string().contains("$[["), "{name}: {}", job[part]);
            }
        }
    }
}
