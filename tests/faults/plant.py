"""Plants faults into a copy of the workspace. The lists of the explorer, the simulator and `tests/faults` use it.

A list has one fault a line: `FILE@HINT: EXPRESSION -> WRONG EXPRESSION`. FILE lies below `crates`, and EXPRESSION is in it
once. If it is no longer there, it is looked for in the other files of the same crate. HINT says where to look for the fault
first; it may be left out. All faults are built at once, each behind a condition on the environment variable PLANTED, so that
one build serves all runs.
"""
import os, pathlib, shutil, subprocess, sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SWITCH = """
/// Whether this fault is planted: `PLANTED` names it.
pub fn planted(fault: u32) -> bool {
    static PLANTED: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    *PLANTED.get_or_init(|| std::env::var("PLANTED").ok()?.parse().ok()) == Some(fault)
}
"""


@dataclass
class Fault:
    number: int
    file: str
    hint: str
    right: str
    wrong: str
    unplanted: str = ""  # why it cannot be planted


def read_faults(file):
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    faults = []
    for number, line in enumerate(lines, 1):
        place, rest = line.split(": ", 1)
        right, wrong = rest.split(" -> ")
        file, _, hint = place.partition("@")
        faults.append(Fault(number, file, hint, right, wrong))
    return faults


def find_file(fault):
    """The file of the workspace that has the expression once."""
    given = ROOT / "crates" / fault.file
    others = sorted((ROOT / "crates" / fault.file.split("/")[0] / "src").rglob("*.rs"))
    counts = {path: path.read_text().count(fault.right) for path in [given, *others] if path.exists()}
    if counts.get(given) == 1:
        return given
    found = [path for path, count in counts.items() if count]
    if counts.get(given) or len(found) > 1 or sum(counts.values()) > 1:
        fault.unplanted = f"`{fault.right}` is {counts.get(given) or sum(counts.values())} times there"
    elif not found:
        fault.unplanted = f"`{fault.right}` is gone"
    return found[0] if not fault.unplanted else None


def plant(faults):
    """The files with faults in them, as text."""
    places = {}
    for fault in faults:
        if file := find_file(fault):
            places.setdefault(file, {}).setdefault(fault.right, []).append(fault)
    texts = {}
    for file, by_right in places.items():
        text = file.read_text()
        switch = "crate::planted" if file.is_relative_to(ROOT / "crates/core") else "countersign_core::planted"
        for right, here in sorted(by_right.items(), key=lambda place: text.index(place[0]), reverse=True):
            at = text.index(right)
            choices = "".join(f"if {switch}({fault.number}) {{ {fault.wrong} }} else " for fault in here)
            text = f"{text[:at]}({choices}{{ {right} }}){text[at + len(right):]}"
        texts[file] = text
    lib = ROOT / "crates/core/src/lib.rs"
    texts[lib] = texts.get(lib, lib.read_text()) + SWITCH
    return texts


def copy_workspace(copy, texts):
    """Brings the copy up to date, and leaves alone what is as it should be: cargo goes by the time of a file."""
    kept = set()
    for dir, dirs, names in os.walk(ROOT):
        dirs[:] = [name for name in dirs if name not in ("target", ".git", "node_modules")]
        for source in (pathlib.Path(dir) / name for name in names):
            target = copy / source.relative_to(ROOT)
            content = texts[source].encode() if source in texts else source.read_bytes()
            kept.add(target)
            if not target.exists() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
                target.chmod(source.stat().st_mode)
    for target in [path for path in copy.rglob("*") if path.is_file() and path not in kept]:
        target.unlink()


def build(name, faults, command, profile):
    """Runs this cargo command in a copy with the faults in it; what it says, and the directory of what it built."""
    # Not the target directory of the workspace: cargo would take what was built here for what belongs there.
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "planted" / name
    copy = target / "workspace"
    copy_workspace(copy, plant(faults))
    command = ["cargo", *command, "--quiet", "--offline", "--profile", profile]
    environment = dict(os.environ, CARGO_TARGET_DIR=str(target), CARGO_PROFILE_DEV_DEBUG="false")
    # The condition around each fault makes warnings; they are not shown unless the build fails.
    result = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        told = result.stderr.split("\n\n")
        sys.exit("\n\n".join(part for part in told if part.startswith("error")))
    return result.stdout, target / ("debug" if profile == "dev" else profile)


def build_program(name, faults, profile):
    """The program of this crate, with all faults in it."""
    _, built = build(name, faults, ["build", "-p", f"countersign-{name}"], profile)
    program = built.parent / name
    shutil.copy(built / f"countersign-{name}", program)
    return program


def search(faults, results):
    """Prints a table of the faults and of what found each, and ends with an error if one was not found or not planted."""
    missed = 0
    print("| fault | file | instead of | planted | found by |\n|---|---|---|---|---|", flush=True)
    for fault, found in zip(faults, results):
        missed += found is None
        cell = lambda text: "`" + text.replace("|", "\\|") + "`"
        told = f"NOT PLANTED: {fault.unplanted}" if fault.unplanted else found or "NOT FOUND"
        row = [fault.number, fault.file, cell(fault.right), cell(fault.wrong), told]
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    sys.exit(f"{missed} faults were not found" if missed else 0)


def choose(faults):
    """Those that the command line names by their numbers, or all."""
    numbers = [int(number) for number in sys.argv[1:]]
    return [fault for fault in faults if not numbers or fault.number in numbers]
