# shellcheck shell=sh
{ # The shell reads up to the closing brace before it runs anything: half a script is an error.
# What the scripts of this directory share. They read inputs from the environment only (D108).

fail() {
    printf 'error: %s\n' "$1" >&2
    printf 'hint: %s\n' "$2" >&2
    exit 2
}

# check_input NAME VALUE: a line break could begin a command to the runner, or a second result.
check_input() {
    stripped=$(printf '%s' "$2" | LC_ALL=C tr -d '\000-\037\177' && printf .)
    [ "$stripped" = "$2." ] || fail "the input $1 has a line break or another control character" \
        "write $1 on one line"
}

# Every input is one line, and an empty one is none.
check_inputs() {
    check_input server "${COUNTERSIGN_SERVER:-}"
    check_input release "${COUNTERSIGN_RELEASE:-}"
    check_input checksums "${COUNTERSIGN_CHECKSUMS:-}"
    check_input timeout "${COUNTERSIGN_TIMEOUT:-}"
    check_input on-timeout "${COUNTERSIGN_ON_TIMEOUT:-}"
    check_input reproduced "${COUNTERSIGN_REPRODUCED:-}"
    check_input files "${COUNTERSIGN_FILES:-}"
    check_input directory "${COUNTERSIGN_DIRECTORY:-}"
    check_input signers-digest "${COUNTERSIGN_SIGNERS_DIGEST:-}"
    check_input version "${COUNTERSIGN_VERSION:-}"
    check_input tag "${GITHUB_REF_NAME:-}${CI_COMMIT_TAG:-}"
    check_input index "${COUNTERSIGN_INDEX:-}"
    check_input project "${COUNTERSIGN_PROJECT:-}"
    case ${COUNTERSIGN_REPRODUCED:-false} in
    true | false) ;;
    *) fail "the input reproduced is neither true nor false" "leave it out, or set it to true" ;;
    esac
    [ -n "${COUNTERSIGN_SERVER:-}" ] || unset COUNTERSIGN_SERVER
    [ -n "${COUNTERSIGN_KEY:-}" ] || unset COUNTERSIGN_KEY
}

# A directory of this job alone, which goes when the script ends.
make_work() {
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    outputs=$work/outputs
    : >"$outputs"
}

# The key is a file, as COUNTERSIGN_KEY names it, or a secret's text.
use_key() {
    if [ -n "${COUNTERSIGN_KEY_TEXT:-}" ]; then
        (umask 077 && printf '%s\n' "$COUNTERSIGN_KEY_TEXT" | tr -d '\r' >"$work/key")
        COUNTERSIGN_KEY=$work/key
        export COUNTERSIGN_KEY
    fi
    unset COUNTERSIGN_KEY_TEXT
    [ -n "${COUNTERSIGN_KEY:-}" ] || fail "there is no key" \
        "pass the registrar's private key as a secret; a job of a fork does not get it"
}

# A tag in a URL. Git allows characters in tags that mean something there.
encode_tag() {
    case $1 in
    *[!A-Za-z0-9._/@+-]*) printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g' ;;
    *) printf '%s' "$1" ;;
    esac
}

# Sets `tag` and `tagged`, the release of the tag that this job runs for; both are empty if it runs for none.
find_tagged() {
    tag='' tagged=''
    if [ -n "${CI_COMMIT_TAG:-}" ] && [ -n "${CI_PROJECT_URL:-}" ]; then
        tag=$CI_COMMIT_TAG
        tagged=$CI_PROJECT_URL/-/releases/$(encode_tag "$tag")
    elif [ "${GITHUB_REF_TYPE:-}" = tag ] && [ -n "${GITHUB_REPOSITORY:-}" ]; then
        tag=$GITHUB_REF_NAME
        tagged=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/releases/tag/$(encode_tag "$tag")
    fi
}

# Sets `release`: the one that is named, the one that a job before registered, or that of the tag that this job runs for.
find_release() {
    find_tagged
    release=${COUNTERSIGN_RELEASE:-${COUNTERSIGN_INDEX:-$tagged}}
    [ -n "$release" ] || fail "no release is named, and this job runs for no tag" \
        "set the input release to the URL of the release's page"
}

# Runs the client. GitHub and Forgejo obey commands in what a step prints, and names of files can look like them. So these
# are switched off by a word that no one can guess. Both streams become one, so that nothing overtakes the word.
run_client() {
    command -v countersign >/dev/null 2>&1 || fail "there is no program countersign" "run the step install before this one"
    if [ "${GITHUB_ACTIONS:-}" != true ]; then
        countersign "$@"
        return
    fi
    word=$(od -An -v -N16 -tx1 /dev/urandom | tr -d ' \n')
    [ "${#word}" -eq 32 ] || fail "there is no randomness" "check /dev/urandom of the runner"
    printf '::stop-commands::%s\n' "$word"
    ended=0
    countersign "$@" 2>&1 || ended=$?
    printf '::%s::\n' "$word"
    return "$ended"
}

# The results of the client, for later steps and jobs. The client has checked that each is one line.
hand_over() {
    [ -z "${GITHUB_OUTPUT:-}" ] || cat "$outputs" >>"$GITHUB_OUTPUT"
    [ -z "${COUNTERSIGN_OUTPUTS:-}" ] || cat "$outputs" >>"$COUNTERSIGN_OUTPUTS"
}

# summarise TITLE: what people see on the page of the job. Indented lines are code, whatever is in them.
summarise() {
    [ -n "${GITHUB_STEP_SUMMARY:-}" ] || return 0
    { printf '**%s**\n\n' "$1" && sed 's/^COUNTERSIGN_[A-Z]*=/    /' "$outputs" && printf '\n'; } >>"$GITHUB_STEP_SUMMARY"
}

# The verdict of the client, which says it if a builder got something else.
show_verdict() {
    different=$(sed -n 's/^COUNTERSIGN_DIFFERENT=//p' "$outputs")
    printf 'Verified%s' "${different:+, but $different}"
}

# wait_for_release TIMEOUT: fails unless the release is complete, and reproduced where that is wanted.
wait_for_release() {
    set -- --timeout="$1"
    [ "${COUNTERSIGN_REPRODUCED:-}" != true ] || set -- "$@" --reproduced
    run_client status --wait "$@" --outputs="$outputs" -- "$release"
}
}
