#!/bin/sh
# Lets a job go on only if this script has verified the whole release: signatures, signers and every file. The server's word
# is not enough (D109). Steps behind this one publish what it verified.
#
#   COUNTERSIGN_SERVER           the signing server
#   COUNTERSIGN_RELEASE          the release; without it COUNTERSIGN_INDEX, or that of the tag that this job runs for
#   COUNTERSIGN_FILES            a directory with every file of the release; without it they are downloaded
#   COUNTERSIGN_DIRECTORY        where they are downloaded to; countersign-release without it
#   COUNTERSIGN_TIMEOUT          wait for signatures first, as in 30m; without it the release must be complete
#   COUNTERSIGN_SIGNERS_DIGEST   where trust begins: the digest of a signers file; without it, the project's forge is asked
#   COUNTERSIGN_OUTPUTS          a file for COUNTERSIGN_INDEX and COUNTERSIGN_STATE (verified)
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=ci/job.sh
. "$here/job.sh"
check_inputs
make_work
find_release
if [ -n "${COUNTERSIGN_TIMEOUT:-}" ]; then
    wait_for_signatures "$COUNTERSIGN_TIMEOUT"
    [ "$code" -eq 0 ] || exit "$code"
    : >"$outputs"
fi
set --
[ -z "${COUNTERSIGN_SIGNERS_DIGEST:-}" ] || set -- --signers-digest="$COUNTERSIGN_SIGNERS_DIGEST"
files=${COUNTERSIGN_FILES:-}
if [ -z "$files" ]; then
    files=${COUNTERSIGN_DIRECTORY:-countersign-release}
    run_client download "$@" --output="$files" -- "$release"
fi
run_client verify --whole --release="$release" --outputs="$outputs" "$@" -- "$files"
hand_over
summarise 'Verified: enough signers have signed every file'
