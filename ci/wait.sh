#!/bin/sh
{ # The shell reads up to the closing brace before it runs anything: half a script is an error.
# Waits until enough signers have signed a release, and enough builders have reproduced it if its signers file requires that.
# The server says so: `gate` or `verify` proves it.
#
#   COUNTERSIGN_SERVER       the signing server
#   COUNTERSIGN_RELEASE      the release; without it COUNTERSIGN_INDEX, or that of the tag that this job runs for
#   COUNTERSIGN_TIMEOUT      how long, as in 90s, 30m or 5h; 5h without it
#   COUNTERSIGN_ON_TIMEOUT   fail (exit code 6), or pass, for a later job to go on
#   COUNTERSIGN_REPRODUCED   true: wait for builders even if the signers file does not require them
#   COUNTERSIGN_OUTPUTS      a file for COUNTERSIGN_INDEX and COUNTERSIGN_STATE (complete or waiting)
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=ci/job.sh
. "$here/job.sh"
check_inputs
case ${COUNTERSIGN_ON_TIMEOUT:-fail} in
fail | pass) ;;
*) fail "the input on-timeout is neither fail nor pass" "leave it out, or set it to pass" ;;
esac
make_work
find_release
code=0
wait_for_release "${COUNTERSIGN_TIMEOUT:-5h}" || code=$?
hand_over
[ "$code" -ne 0 ] || summarise 'Enough signers have signed'
if [ "$code" -eq 6 ]; then
    missing='Signatures are still missing'
    # A release that is complete lacks builders only. This shows who is missing, too.
    if run_client status --outputs="$work/now" -- "$release" && grep -qx COUNTERSIGN_STATE=complete "$work/now"; then
        missing='Enough signers have signed, but too few builders have reproduced it'
    fi
    summarise "$missing"
    printf 'Run this job again when they are there. The server keeps what it has.\n'
    [ "${COUNTERSIGN_ON_TIMEOUT:-fail}" = fail ] || exit 0
fi
exit "$code"
}
