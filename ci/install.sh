#!/bin/sh
{ # The shell reads up to the closing brace before it runs anything: half a script is an error.
# Provides the program countersign: the one on PATH as it is, or a release of ours, which the installer verifies first.
#
#   COUNTERSIGN_VERSION   which release, as in v0.1.0; without it the program on PATH, else the version of this checkout
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=ci/job.sh
. "$here/job.sh"
check_inputs
case ${COUNTERSIGN_VERSION:-} in
*[!A-Za-z0-9._-]* | -*) fail "the input version is not the tag of a release" "write it as in v0.1.0" ;;
esac
if [ -z "${COUNTERSIGN_VERSION:-}" ] && command -v countersign >/dev/null 2>&1; then
    countersign --version
    exit 0
fi
installer=$here/../packaging/install-verified.sh
[ -f "$installer" ] || fail "there is no program countersign, and no installer at packaging/install-verified.sh" \
    "use an image that has countersign, or this action at a tagged version"
# Another user of the machine could have made a directory whose name can be guessed.
prefix=$(TMPDIR=${RUNNER_TEMP:-${TMPDIR:-/tmp}} mktemp -d)
check_input RUNNER_TEMP "$prefix"
# It exits with another code than 0 unless it has verified what it puts there.
COUNTERSIGN_PREFIX=$prefix COUNTERSIGN_VERSION=${COUNTERSIGN_VERSION:-} sh "$installer"
bin=$prefix/bin
"$bin/countersign" --version
[ -z "${GITHUB_PATH:-}" ] || printf '%s\n' "$bin" >>"$GITHUB_PATH"
}
