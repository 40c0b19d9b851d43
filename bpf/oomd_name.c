/* SPDX-License-Identifier: MIT
 *
 * oomd_name.c - see oomd_name.h.
 *
 * Runs on: any
 */
#include "oomd_name.h"

#include <ctype.h>
#include <stdio.h>

void
oomd_clean_name(char *out, size_t n, const char *text, size_t text_bytes, const char *otherwise)
{
    size_t i = 0;
    for (; i + 1 < n && i < text_bytes && text[i]; i++) {
        unsigned char c = (unsigned char)text[i];
        int fine = c < 128 && (isalnum(c) || c == '_' || ((c == '.' || c == '-') && i > 0));
        out[i] = fine ? (char)c : '_';
    }
    out[i] = '\0';
    if (i == 0) snprintf(out, n, "%s", otherwise);
}
