/* SPDX-License-Identifier: MIT
 *
 * argv_secrets.c - see argv_secrets.h.
 *
 * Runs on: any
 */
#include "core/argv_secrets.h"

#include <ctype.h>
#include <string.h>

static const char *const secret_words[] = {"key", "token", "secret", "passw", "pwd", "credential"};

static bool
is_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '-' && s[i] != '_') return false;
    return n > 0;
}

static bool
has_word(const char *s, size_t n, const char *word)
{
    size_t length = strlen(word);

    for (size_t at = 0; at + length <= n; at++) {
        size_t same = 0;
        while (same < length && tolower((unsigned char)s[at + same]) == word[same]) same++;
        if (same == length) return true;
    }
    return false;
}

static bool
is_secret(const char *name, size_t n)
{
    if (!is_name(name, n)) return false;
    for (size_t i = 0; i < sizeof secret_words / sizeof *secret_words; i++)
        if (has_word(name, n, secret_words[i])) return true;
    return false;
}

/* Where user and password of a URL begin; n: there are none. */
static size_t
before_user(const char *arg, size_t n)
{
    for (size_t at = 0; at + 3 <= n; at++) {
        if (memcmp(arg + at, "://", 3) != 0) continue;
        for (size_t i = at + 3; i < n && arg[i] != '/'; i++)
            if (arg[i] == '@') return at + 3;
    }
    return n;
}

size_t
sdb_argv_shown(const char *arg, size_t n, bool *value)
{
    bool flag = n > 0 && arg[0] == '-', hide = *value && !flag;
    const char *equals = memchr(arg, '=', n);
    size_t name = equals ? (size_t)(equals - arg) : n;
    bool secret = is_secret(arg, name);

    *value = flag && secret && !equals;
    if (hide) return 0;
    return equals && secret ? name + 1 : before_user(arg, n);
}
