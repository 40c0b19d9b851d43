/* SPDX-License-Identifier: MIT
 *
 * template_names.c - see template_names.h.
 *
 * Runs on: offline
 */
#include "log/template_names.h"

#include <stdbool.h>
#include <string.h>

static bool
is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* What Action View leaves of a file name: String#tr("^a-z_", "_"). */
static bool
is_kept(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

/* Index of the first of the digits that end at `end`, or `end` when there is none. */
static size_t
before_digits(struct sdb_bytes s, size_t end)
{
    while (end > 0 && is_digit(s.at[end - 1])) end--;
    return end;
}

/* Where the method's own name begins when it ends at `end` and may consist of a-z and _. */
static size_t
method_begin(struct sdb_bytes name, size_t end)
{
    while (end > 0 && is_kept(name.at[end - 1])) end--;
    return end;
}

/* Length of what stands in front of "Class#method": "block in ", else 0. begin: of the method. */
static size_t
prefix_length(struct sdb_bytes name, size_t begin)
{
    for (size_t i = begin; i >= 4; i--)
        if (!memcmp(name.at + i - 4, " in ", 4)) return i;
    return 0;
}

/* The end of path that, character by character, became `mangled`; empty when it did not. */
static struct sdb_bytes
mangled_file(struct sdb_bytes mangled, struct sdb_bytes path)
{
    size_t at = path.n;
    for (size_t i = mangled.n; i-- > 0;) {
        if (at == 0) return (struct sdb_bytes){path.at, 0};
        uint8_t c = path.at[--at];
        while (at > 0 && (c & 0xc0) == 0x80) c = path.at[--at]; /* a character of several bytes */
        if (mangled.at[i] != (is_kept(c) ? c : '_')) return (struct sdb_bytes){path.at, 0};
    }
    return (struct sdb_bytes){path.at + at, path.n - at};
}

/* "_" mangled "__" hash "_" object id; a negative hash begins with one more "_". */
static struct sdb_bytes
action_view_file(struct sdb_bytes name, struct sdb_bytes path, size_t *begin)
{
    struct sdb_bytes none = {path.at, 0};
    size_t id = before_digits(name, name.n);
    if (id == name.n || id == 0 || name.at[id - 1] != '_') return none;
    size_t hash = before_digits(name, id - 1);
    if (hash == id - 1 || hash < 3) return none;
    *begin = method_begin(name, hash);
    if (*begin >= hash || name.at[*begin] != '_') return none;
    for (size_t under = 3; under >= 2; under--) {
        size_t end = hash - under; /* "___": of a negative hash, or of a file name that ends so */
        if (hash < under + *begin + 1 || memcmp(name.at + end, "___", under) != 0) continue;
        struct sdb_bytes mangled = {name.at + *begin + 1, end - *begin - 1};
        struct sdb_bytes file = mangled_file(mangled, path);
        if (file.n) return file;
    }
    return none;
}

/* From the folder "views" on, else the file alone: the method's name tells nothing of it. */
static struct sdb_bytes
file_in_views(struct sdb_bytes path)
{
    static const char folder[] = "/views/";
    size_t begin = 0;
    if (path.n > sizeof folder - 2 && !memcmp(path.at, folder + 1, sizeof folder - 2)) return path;
    for (size_t i = 0; i < path.n; i++) {
        if (path.at[i] != '/') continue;
        if (path.n - i > sizeof folder - 1 && !memcmp(path.at + i, folder, sizeof folder - 1))
            return (struct sdb_bytes){path.at + i + 1, path.n - i - 1};
        begin = i + 1;
    }
    return (struct sdb_bytes){path.at + begin, path.n - begin};
}

/* "__tilt_" object id */
static struct sdb_bytes
tilt_file(struct sdb_bytes name, struct sdb_bytes path, size_t *begin)
{
    static const char tilt[] = "__tilt_";
    size_t id = before_digits(name, name.n);
    *begin = method_begin(name, id);
    if (id == name.n || id - *begin != sizeof tilt - 1 ||
        memcmp(name.at + *begin, tilt, sizeof tilt - 1) != 0)
        return (struct sdb_bytes){path.at, 0};
    return file_in_views(path);
}

struct sdb_bytes
sdb_template_name(struct sdb_bytes name, struct sdb_bytes path,
                  uint8_t buffer[SDB_TEMPLATE_NAME_MAX])
{
    size_t begin = 0;
    if (name.n == 0 || !is_digit(name.at[name.n - 1]) || path.n == 0) return name;
    struct sdb_bytes file = action_view_file(name, path, &begin);
    if (!file.n) file = tilt_file(name, path, &begin);
    if (!file.n) return name;
    size_t prefix = prefix_length(name, begin);
    if (prefix == 0) return file;
    if (prefix + file.n > SDB_TEMPLATE_NAME_MAX) return name;
    memcpy(buffer, name.at, prefix);
    memcpy(buffer + prefix, file.at, file.n);
    return (struct sdb_bytes){buffer, prefix + file.n};
}
