//! `countersign demo`: the whole story in a temporary directory, told by the commands that people would type.

use std::process::{Child, Command, Output as Finished, Stdio};
use std::sync::{Arc, Mutex, PoisonError, atomic::AtomicBool, atomic::Ordering};
use std::{fs, io::BufRead as _, io::BufReader, io::Write as _, path::Path, path::PathBuf, time::Instant};

use axum::http::{StatusCode, Uri, header::CONTENT_LENGTH};
use axum::{Router, body::Body, extract::State, response::IntoResponse as _, response::Response};
use countersign_core::values::digest::Sha256;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::words::{error::CliError, error::shown_path, output::Output, output::quote};
use crate::{args::DemoArgs, args::ServeFilesArgs, client::session::client_runtime};

/// The code with which shells report a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;
const PROGRAM: &str = "pretend that this is a program\n";

pub(crate) fn run(args: &DemoArgs, output: Output) -> Result<(), CliError> {
    let begun = Instant::now();
    let mut demo = Demo::start(output)?;
    demo.introduce_people()?;
    demo.register()?;
    demo.release()?;
    demo.tamper()?;
    demo.rotate()?;
    demo.revoke()?;
    let seconds = begun.elapsed().as_secs_f32();
    demo.say(&format!("\nThat was all of it, in {seconds:.1} seconds."));
    let kept = args.keep.then(|| demo.traces.dir.display().to_string());
    if output.is_json() {
        let (server, site) = (&demo.server_url, &demo.site);
        let value = json!({"seconds": seconds, "steps": demo.steps, "directory": kept, "server": server, "site": site});
        output.result("", &value)?;
    }
    if args.keep {
        demo.keep();
    }
    demo.say("Everything is removed again; `countersign demo --keep` leaves it running to look around.");
    Ok(())
}

/// What the demonstration runs: this very program, again and again.
struct Demo {
    output: Output,
    program: PathBuf,
    server_url: String,
    /// The address of the project on the file server.
    site: String,
    steps: Vec<Value>,
    traces: Arc<Traces>,
}

/// What must be gone at the end, however the end comes.
struct Traces {
    servers: Mutex<Vec<Child>>,
    dir: PathBuf,
    is_kept: AtomicBool,
}

impl Traces {
    fn remove(&self) {
        for mut server in self.servers.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = server.kill();
            let _ = server.wait();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }

    /// Cleans up on Ctrl-C and SIGTERM, which end the program while a command of it is under way.
    fn remove_on_signal(self: &Arc<Self>) -> Result<(), CliError> {
        let (traces, runtime) = (Arc::clone(self), client_runtime()?);
        std::thread::spawn(move || {
            let _ = runtime.block_on(crate::commands::serve::wait_for_signal());
            traces.remove();
            std::process::exit(if traces.is_kept.load(Ordering::Relaxed) { 0 } else { INTERRUPTED });
        });
        Ok(())
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.traces.remove();
    }
}

impl Demo {
    fn start(output: Output) -> Result<Self, CliError> {
        let program = std::env::current_exe().map_err(failed("this program cannot be found"))?;
        let dir = tempfile::Builder::new().prefix("countersign-demo-").tempdir();
        let dir = dir.map_err(failed("a temporary directory cannot be made"))?.keep();
        let traces = Arc::new(Traces { servers: Mutex::default(), dir, is_kept: AtomicBool::new(false) });
        let (server_url, site, steps) = Default::default();
        let mut demo = Self { output, program, server_url, site, steps, traces };
        demo.traces.remove_on_signal()?;
        fs::create_dir_all(demo.traces.dir.join("public/acme/app/svc.signers"))
            .map_err(failed("no directory"))?;
        let serve =
            ["serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", "server", "--log-level", "error"];
        demo.server_url = demo.start_server(&serve)?;
        let site = demo.start_server(&["serve-files", "public", "--listen", "127.0.0.1:0"])?;
        demo.site = format!("{site}/acme/app");
        demo.say(&format!("A signing server and a file server run in {}.", demo.traces.dir.display()));
        demo.say(&format!("$ cd {}", demo.traces.dir.display()));
        demo.say(&format!("$ export COUNTERSIGN_SERVER={}", demo.server_url));
        Ok(demo)
    }

    /// Starts a server and waits for its first line, which has its address.
    fn start_server(&self, args: &[&str]) -> Result<String, CliError> {
        let child = command(&self.program, &self.traces.dir, args).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(failed("this program cannot be started again"))?;
        let stdout = child.stdout.take();
        self.traces.servers.lock().unwrap_or_else(PoisonError::into_inner).push(child);
        let mut line = String::new();
        if let Some(stdout) = stdout {
            let read = BufReader::new(stdout).read_line(&mut line);
            read.map_err(failed("a server of the demonstration did not start"))?;
        }
        let address = line.split_whitespace().find(|word| word.starts_with("http://"));
        address.map(str::to_owned).ok_or_else(|| {
            CliError::other(
                "a server of the demonstration did not start",
                "the lines above say why; is there a free port on 127.0.0.1?",
            )
        })
    }

    fn introduce_people(&mut self) -> Result<(), CliError> {
        self.tell("Three people make keys. In real life each does so on their own computer.");
        for name in ["alice", "bob", "carol"] {
            self.type_in(&["keygen", "--out", name, "--no-password"], 0)?;
        }
        self.tell("They publish who signs their releases: any two of them.");
        let three = ["alice=alice.pub", "bob=bob.pub", "carol=carol.pub"];
        self.publish_signers(&three, "public/acme/app/svc.signers.json")
    }

    fn publish_signers(&mut self, keys: &[&str], file: &str) -> Result<(), CliError> {
        let command = [&["signers", "new", "--artifact"], keys, &["--threshold", "2", "-o", file]];
        self.type_in(&command.concat(), 0)
    }

    fn register(&mut self) -> Result<(), CliError> {
        self.tell("Alice registers the project. Everyone who is listed has to agree.");
        let url = format!("{}/svc.signers.json", self.site);
        self.type_in(&["register", &url, "--key", "alice"], 0)?;
        self.sign_all(&["alice", "bob", "carol"])
    }

    /// All are shown the same, so it is printed once.
    fn sign_all(&mut self, names: &[&str]) -> Result<(), CliError> {
        for (i, name) in names.iter().enumerate() {
            let most_lines = if i == 0 { usize::MAX } else { 1 };
            self.type_in_with(&["sign", "--all", "--yes", "--key", name], 0, most_lines)?;
        }
        Ok(())
    }

    fn release(&mut self) -> Result<(), CliError> {
        self.tell("Bob publishes version 1.0 with its checksums, and registers it.");
        let digest = Sha256::of(PROGRAM.as_bytes());
        self.write("public/acme/app/1.0/app.tar.gz", PROGRAM)?;
        self.write("public/acme/app/1.0/SHA256SUMS", &format!("{digest}  app.tar.gz\n"))?;
        let sums = format!("{}/1.0/SHA256SUMS", self.site);
        self.type_in(&["release", "--checksums", &sums, "--key", "bob"], 0)?;
        self.tell("Two of three sign it. Alice compares it with what she built herself.");
        let index = self.index();
        let compare = ["--files", "public/acme/app/1.0", "--yes", "--key", "alice"];
        self.type_in(&[&["sign", &index], &compare[..]].concat(), 0)?;
        self.type_in(&["sign", &index, "--yes", "--key", "carol"], 0)?;
        self.tell("A user downloads it. The server is not believed: every signature is checked here.");
        self.download(0)
    }

    fn tamper(&mut self) -> Result<(), CliError> {
        self.tell("Someone takes over the file server and changes the program. The download refuses it.");
        self.write("public/acme/app/1.0/app.tar.gz", "pretend that this is malware\n")?;
        self.download(3)?;
        self.write("public/acme/app/1.0/app.tar.gz", PROGRAM)
    }

    fn rotate(&mut self) -> Result<(), CliError> {
        self.tell("Carol leaves and Dave joins. The new file is proposed from beside the one in force.");
        self.type_in(&["keygen", "--out", "dave", "--no-password"], 0)?;
        let three = ["alice=alice.pub", "bob=bob.pub", "dave=dave.pub"];
        self.publish_signers(&three, "public/acme/app/svc.signers/next.json")?;
        let url = format!("{}/svc.signers/next.json", self.site);
        self.type_in(&["update", &url, "--key", "alice"], 0)?;
        self.tell("Two of those before agree, and so does Dave. Then it is in force.");
        self.sign_all(&["alice", "bob", "dave"])?;
        self.tell("It takes the place of the first, so that newcomers are shown the newest.");
        self.copy("public/acme/app/svc.signers/next.json", "public/acme/app/svc.signers.json")?;
        self.type_in(&["signers", "history", &self.project()], 0)?;
        self.tell("The user remembers the first signers, and accepts the new ones because of that.");
        self.download(0)
    }

    fn revoke(&mut self) -> Result<(), CliError> {
        self.tell("Version 1.0 turns out to be bad. One admin is enough to revoke it, and downloads stop.");
        let index = self.index();
        self.type_in(
            &["revoke", &index, "--reason", "it eats the user's files", "--yes", "--key", "bob"],
            0,
        )?;
        self.download(4)
    }

    fn download(&mut self, expected: i32) -> Result<(), CliError> {
        let url = format!("{}/1.0/app.tar.gz", self.site);
        self.type_in(&["download", &url], expected)
    }

    /// The path of the project on the signing server.
    fn project(&self) -> String {
        self.site.replace("://", "/").replace(':', "/")
    }

    fn index(&self) -> String {
        format!("{}/1.0/svc.index.json", self.project())
    }

    /// Keeps the server running. It never returns, because the signal that ends it also cleans up.
    fn keep(&self) -> ! {
        self.traces.is_kept.store(true, Ordering::Relaxed);
        self.say(&format!(
            "\nServer and files stay until Ctrl-C. In another terminal:\n  cd {}\n  \
             export COUNTERSIGN_SERVER={} COUNTERSIGN_CONFIG_DIR=\"$PWD/config\"\n  \
             countersign status {}\n  git -C server/repo.git log --stat",
            self.traces.dir.display(),
            self.server_url,
            self.index()
        ));
        loop {
            std::thread::park();
        }
    }

    fn tell(&self, text: &str) {
        self.say(&format!("\n{}", self.output.strong(text)));
    }

    fn say(&self, text: &str) {
        self.output.line(text);
    }

    fn write(&self, file: &str, content: &str) -> Result<(), CliError> {
        let path = self.traces.dir.join(file);
        self.say(&format!("$ printf '{}' > {file}", content.replace('\n', "\\n")));
        let dir = path.parent().unwrap_or(&self.traces.dir);
        fs::create_dir_all(dir)
            .and_then(|()| fs::write(&path, content))
            .map_err(|error| CliError::file("written", &path, error))
    }

    fn copy(&self, from: &str, to: &str) -> Result<(), CliError> {
        self.say(&format!("$ cp {from} {to}"));
        let to = self.traces.dir.join(to);
        fs::copy(self.traces.dir.join(from), &to).map_err(|error| CliError::file("written", &to, error))?;
        Ok(())
    }

    /// Runs a command as a person would, and shows what that person would see.
    fn type_in(&mut self, args: &[&str], expected: i32) -> Result<(), CliError> {
        self.type_in_with(args, expected, usize::MAX)
    }

    /// Shows at most so many lines, the last ones.
    fn type_in_with(&mut self, args: &[&str], expected: i32, most_lines: usize) -> Result<(), CliError> {
        let shown =
            format!("countersign {}", args.iter().map(|arg| quote(arg)).collect::<Vec<_>>().join(" "));
        self.say(&format!("$ {shown}"));
        let finished = command(&self.program, &self.traces.dir, args)
            .env("COUNTERSIGN_SERVER", &self.server_url)
            .output()
            .map_err(failed("this program cannot be started again"))?;
        let Finished { status, stdout, stderr } = finished;
        let printed = [String::from_utf8_lossy(&stderr), String::from_utf8_lossy(&stdout)].concat();
        let lines: Vec<&str> = printed.lines().collect();
        let hidden = lines.len().saturating_sub(most_lines);
        if hidden > 0 {
            self.say("  …");
        }
        for line in &lines[hidden..] {
            self.say(&format!("  {line}"));
        }
        self.steps.push(json!({"command": shown, "exit_code": status.code()}));
        if status.code() == Some(expected) {
            return Ok(());
        }
        let message = format!("`{shown}` ended with {status} instead of {expected}");
        Err(CliError::other(message, "report this, with all that was printed")
            .because(String::from_utf8_lossy(&stderr).into_owned()))
    }
}

/// Makes a command with only what the demonstration sets itself. The user's own settings and trust stay out of it.
fn command(program: &Path, dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(dir).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let is_ours = name.to_str().is_some_and(|name| name.starts_with("COUNTERSIGN_"));
        if is_ours || name.to_str().is_some_and(|name| name.to_ascii_lowercase().ends_with("_proxy")) {
            command.env_remove(name);
        }
    }
    command.env("COUNTERSIGN_CONFIG_DIR", dir.join("config"));
    command
}

fn failed(what: &'static str) -> impl FnOnce(std::io::Error) -> CliError {
    move |error| CliError::other(what, "check the temporary directory (TMPDIR) and its space").because(error)
}

// `countersign serve-files`: a plain file server for trying things out.

pub(crate) async fn serve_files(args: &ServeFilesArgs) -> Result<(), CliError> {
    if !args.listen.ip().is_loopback() {
        return Err(CliError::usage(
            format!("{} is not an address of this computer alone", args.listen),
            "this server is for trying things out: use a real one for others",
        ));
    }
    let (dir, listen) = (&args.dir, args.listen);
    let root = std::fs::canonicalize(dir).map_err(|error| CliError::file("read", dir, error))?;
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        CliError::other(format!("cannot listen on {listen}"), "choose another with --listen").because(error)
    })?;
    let address = listener.local_addr().map_err(broken)?;
    let line = format!("Serving {} on http://{address}\n", shown_path(dir));
    let mut out = std::io::stdout();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(broken)?;
    let router = Router::new().fallback(answer).with_state(Arc::new(root));
    let stop = async {
        let _ = crate::commands::serve::wait_for_signal().await;
    };
    axum::serve(listener, router).with_graceful_shutdown(stop).await.map_err(broken)
}

fn broken(error: std::io::Error) -> CliError {
    CliError::other("the file server ended with an error", "start it again").because(error)
}

async fn answer(State(root): State<Arc<PathBuf>>, uri: Uri) -> Response {
    let found = tokio::task::spawn_blocking(move || read_served(&root, uri.path())).await.ok().flatten();
    match found {
        Some(bytes) => {
            let length = bytes.len().to_string();
            ([(CONTENT_LENGTH, length)], Body::from(bytes)).into_response()
        }
        None => (StatusCode::NOT_FOUND, "there is no such file\n").into_response(),
    }
}

fn read_served(root: &Path, path: &str) -> Option<Vec<u8>> {
    let path = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    // Links are resolved before the file is looked for below the directory.
    let file = std::fs::canonicalize(root.join(path.trim_start_matches('/'))).ok()?;
    if file.starts_with(root) && file.is_file() { std::fs::read(file).ok() } else { None }
}
