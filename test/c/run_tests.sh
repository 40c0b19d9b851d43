#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs C test programs one after the other; exit 1 when one failed. Exit code 77 of a program is a skip.
failed=0 skipped=0 passed=0
for program in "$@"; do
    output=$(timeout 120 "$program" 2>&1)
    code=$?
    case $code in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
    if [ $code -ne 0 ] || [ -n "$VERBOSE" ]; then
        printf '%s\n' "$output"
    else
        printf '%s\n' "$output" | grep '^skip:'
    fi
    printf '%-24s %s (exit %s)\n' "$(basename "$program")" "$(printf '%s\n' "$output" | tail -n 1)" $code
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
