//! A client command that goes on while others do something.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::{sync::mpsc::Receiver, sync::mpsc::RecvTimeoutError, sync::mpsc::channel, time::Duration};

use super::client::Computer;

const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: Receiver<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdout = child.stdout.take().map(BufReader::new);
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, stdout, stderr: receiver }
    }

    /// Waits until it says this on standard error; the whole line.
    #[track_caller]
    pub(crate) fn await_note(&self, words: &str) -> String {
        let mut said = Vec::new();
        loop {
            let Ok(line) = self.stderr.recv_timeout(TIMEOUT) else { panic!("no {words:?} in {said:?}") };
            if line.contains(words) {
                return line;
            }
            said.push(line);
        }
    }

    /// The next line on standard output.
    #[track_caller]
    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().expect("it is read").read_line(&mut line).expect("UTF-8");
        assert!(line.ends_with('\n'), "it ended: {:?}", self.stderr.try_iter().collect::<Vec<_>>());
        line
    }

    /// Closes its standard output.
    pub(crate) fn stop_reading(&mut self) {
        self.stdout = None;
    }

    pub(crate) fn interrupt(&self) {
        self.send("INT");
    }

    /// Sends it a signal by name. A shell cannot handle an interrupt that was ignored when it was started.
    pub(crate) fn send(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status().expect("`kill` is there");
        assert!(sent.success());
    }

    /// Its exit code, and what was left to read of standard output and standard error. One that does not end by itself
    /// is killed, and has no code.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let (has_ended, ended) = channel::<()>();
        let id = self.child.id().to_string();
        std::thread::spawn(move || {
            if ended.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-s", "KILL", &id]).status();
            }
        });
        let mut rest = String::new();
        if let Some(mut stdout) = self.stdout.take() {
            stdout.read_to_string(&mut rest).expect("UTF-8");
        }
        let code = self.child.wait().expect("it ends").code();
        drop(has_ended);
        (code, rest, self.stderr.iter().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Computer {
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::start(self.command(args))
    }
}
