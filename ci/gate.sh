#!/bin/sh
{ # The shell reads up to the closing brace before it runs anything: half a script is an error.
# Lets a job go on only if this script has verified the whole release: signatures, signers and every file. The server's word
# is not enough (D109). Steps behind this one publish what it verified.
#
#   COUNTERSIGN_SERVER           the signing server
#   COUNTERSIGN_RELEASE          the release, for a job that runs for no tag; otherwise it must be the one of the tag (D159)
#   COUNTERSIGN_PROJECT          the project's identifier, if its releases lie on a file server in directories named as tags
#   COUNTERSIGN_FILES            a directory with every file of the release; without it they are downloaded
#   COUNTERSIGN_DIRECTORY        where they are downloaded to; countersign-release without it
#   COUNTERSIGN_TIMEOUT          wait for signatures first, as in 30m; without it the release must be complete
#   COUNTERSIGN_REPRODUCED       true: refuse a release that builders have not reproduced, as if its signers file required it
#   COUNTERSIGN_SIGNERS_DIGEST   where trust begins: the digest of a signers file; without it, the project's forge is asked
#   COUNTERSIGN_OUTPUTS          a file for COUNTERSIGN_INDEX and COUNTERSIGN_STATE (verified); where builders are asked,
#                                COUNTERSIGN_REBUILDS (reproduced or missing), and COUNTERSIGN_DIFFERENT if one got something else
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=ci/job.sh
. "$here/job.sh"

# Sets `index`: the path of the index that a name stands for. Only the client prints it, because a runner could obey a path.
find_index() {
    run_client status --outputs="$outputs" -- "$1" || exit
    index=$(sed -n 's/^COUNTERSIGN_INDEX=//p' "$outputs")
    : >"$outputs"
}

# Sets `release`. What an earlier job hands over can be of another tag or project, and steps behind this one publish here.
bind_release() {
    find_release
    if [ -n "${COUNTERSIGN_PROJECT:-}" ]; then
        case $COUNTERSIGN_PROJECT in
        http/*/*/* | https/*/*/*) ;;
        *) fail "the input project is not the identifier of a project" "write it as https/HOST/443/PATH" ;;
        esac
        [ -n "$tag" ] || fail "the input project is for a job that runs for a tag" "name the release instead"
        tagged=$COUNTERSIGN_PROJECT/$tag/svc.index.json
    fi
    [ -n "$tagged" ] || return 0
    release=$tagged
    for handed in "${COUNTERSIGN_RELEASE:-}" "${COUNTERSIGN_INDEX:-}"; do
        if [ -n "$handed" ] && [ "$handed" != "$tagged" ]; then
            find_index "$handed"
            given=$index
            find_index "$tagged"
            [ "$given" = "$index" ] || fail "the release that this job was given is not the one of its tag and project" \
                "leave the input release out: the gate finds the release of the tag by itself"
        fi
    done
}

check_inputs
make_work
bind_release
if [ -n "${COUNTERSIGN_TIMEOUT:-}" ]; then
    wait_for_release "$COUNTERSIGN_TIMEOUT" || exit
    : >"$outputs"
fi
set --
[ -z "${COUNTERSIGN_SIGNERS_DIGEST:-}" ] || set -- --signers-digest="$COUNTERSIGN_SIGNERS_DIGEST"
files=${COUNTERSIGN_FILES:-}
if [ -z "$files" ]; then
    files=${COUNTERSIGN_DIRECTORY:-countersign-release}
    [ ! -h "${files%/}" ] || fail "the directory to download to is a link" "remove it, or set the input directory to another name"
    run_client download "$@" --output="$files" -- "$release"
fi
run_client verify --whole --strict --release="$release" --outputs="$outputs" "$@" -- "$files"
if [ "${COUNTERSIGN_REPRODUCED:-}" = true ] && ! grep -qx COUNTERSIGN_REBUILDS=reproduced "$outputs"; then
    printf 'error: too few builders have reproduced the release, and the input reproduced asks for it\n' >&2
    printf 'hint: run this job again when they have, or set the input timeout to wait for them\n' >&2
    exit 3
fi
hand_over
summarise "$(show_verdict): enough signers have signed every file"
}
