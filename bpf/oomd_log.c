/* SPDX-License-Identifier: MIT
 *
 * oomd_log.c - see oomd_log.h.
 *
 * Runs on: daemon
 */
#include "oomd_log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 1024, LIMITED_A_MINUTE = 10 };

static void
write_line(const char *format, va_list args)
{
    char line[LINE_BYTES] = "sdb-oomd: ";
    size_t head = strlen(line);
    vsnprintf(line + head, sizeof line - head - 1, format, args);
    size_t n = strlen(line);
    for (size_t i = 0; i < n; i++)
        if (!isprint((unsigned char)line[i])) line[i] = '?';
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, n) < 0) return; /* nowhere to say it */
}

void
oomd_log(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
}

void
oomd_log_limited(const char *format, ...)
{
    static time_t minute_end; /* a minute begins with the first line after the last one */
    static unsigned in_minute;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec >= minute_end) {
        if (in_minute > LIMITED_A_MINUTE)
            oomd_log("%u more such lines were left out", in_minute - LIMITED_A_MINUTE);
        minute_end = now.tv_sec + 60;
        in_minute = 0;
    }
    if (in_minute++ >= LIMITED_A_MINUTE) return;
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
}

static int is_verbose;

void
oomd_log_set_verbose(int verbose)
{
    is_verbose = verbose;
}

void
oomd_log_detail(const char *format, ...)
{
    va_list args;
    if (!is_verbose) return;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
}

void
oomd_clean_name(char *out, size_t n, const char *text, size_t text_bytes, const char *otherwise)
{
    size_t i = 0;
    for (; i + 1 < n && i < text_bytes && text[i]; i++) {
        unsigned char c = (unsigned char)text[i];
        int fine = c < 128 && (isalnum(c) || c == '-' || c == '_' || (c == '.' && i > 0));
        out[i] = fine ? (char)c : '_';
    }
    out[i] = '\0';
    if (i == 0) snprintf(out, n, "%s", otherwise);
}
