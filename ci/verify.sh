#!/bin/sh
{ # The shell reads up to the closing brace before it runs anything: half a script is an error.
# Verifies files: that they are of a release, and that enough of the right people signed it.
#
#   COUNTERSIGN_SERVER           the signing server
#   COUNTERSIGN_RELEASE          the release; without it COUNTERSIGN_INDEX, or that of the tag that this job runs for
#   COUNTERSIGN_FILES            a file, or a directory with files
#   COUNTERSIGN_SIGNERS_DIGEST   where trust begins: the digest of a signers file; without it, the project's forge is asked
#   COUNTERSIGN_OUTPUTS          a file for COUNTERSIGN_INDEX and COUNTERSIGN_STATE (verified)
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=ci/job.sh
. "$here/job.sh"
check_inputs
[ -n "${COUNTERSIGN_FILES:-}" ] || fail "the input files names nothing to verify" "set it to a file or a directory"
make_work
find_release
set -- --release="$release" --outputs="$outputs"
[ -z "${COUNTERSIGN_SIGNERS_DIGEST:-}" ] || set -- "$@" --signers-digest="$COUNTERSIGN_SIGNERS_DIGEST"
run_client verify "$@" -- "$COUNTERSIGN_FILES"
hand_over
summarise "$(show_verdict)"
}
