
# Of the standard input, in hexadecimal.
sha256() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256_line=$(sha256sum) || return 1
    else
        sha256_line=$(shasum -a 256) || return 1
    fi
    printf '%s\n' "${sha256_line%% *}"
}

check_tool() {
    command -v "$tool" >/dev/null 2>&1 || fail "$tool is missing: $tool_hint"
}

# The signatures are on SHA256SUMS itself.
check_line() {
    :
}
