#!/bin/sh
{ # The shell reads up to the closing brace before it runs anything: half a script is an error.
# Registers a release for signing. It succeeds if that was done before, so the job can run again.
#
#   COUNTERSIGN_SERVER      the signing server
#   COUNTERSIGN_KEY_TEXT    the registrar's private key; or COUNTERSIGN_KEY, a file with it
#   COUNTERSIGN_RELEASE     the release's page; without it, that of the tag that this job runs for
#   COUNTERSIGN_CHECKSUMS   instead: URLs of checksums files on a file server, with spaces between them
#   COUNTERSIGN_OUTPUTS     a file for COUNTERSIGN_INDEX and COUNTERSIGN_PAGE, beside GITHUB_OUTPUT
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=ci/job.sh
. "$here/job.sh"
check_inputs
make_work
use_key
if [ -n "${COUNTERSIGN_CHECKSUMS:-}" ]; then
    set -f
    # shellcheck disable=SC2086 # Words are URLs, which have no spaces.
    set -- $COUNTERSIGN_CHECKSUMS
    set +f
    for url in "$@"; do
        shift
        set -- "$@" "--checksums=$url"
    done
else
    # Not what a job before registered: this one registers.
    unset COUNTERSIGN_INDEX
    find_release
    set -- -- "$release"
fi
run_client release --if-needed --outputs="$outputs" "$@"
hand_over
summarise 'Registered for signing'
}
