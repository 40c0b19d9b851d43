/* SPDX-License-Identifier: MIT
 *
 * utf8.c - see utf8.h.
 *
 * Runs on: any Ruby thread, GVL
 */
#include "vm/utf8.h"

#include <ruby/encoding.h>

/* The same bytes, said to be UTF-8. */
static VALUE
as_utf8(VALUE string)
{
    VALUE copy = rb_utf8_str_new(RSTRING_PTR(string), RSTRING_LEN(string));
    RB_GC_GUARD(string);
    return copy;
}

/* Not rb_str_scrub: where the caller was given a block it asks that, which is the app's. */
static VALUE
scrubbed(VALUE broken)
{
    static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
    VALUE text = rb_utf8_str_new(NULL, 0);
    const char *at = RSTRING_PTR(broken), *end = at + RSTRING_LEN(broken), *good = at;
    while (at < end) {
        int n = rb_enc_precise_mbclen(at, end, rb_utf8_encoding());
        if (MBCLEN_CHARFOUND_P(n)) {
            at += MBCLEN_CHARFOUND_LEN(n);
            continue;
        }
        rb_str_cat(text, good, at - good);
        rb_str_cat(text, replacement, sizeof replacement - 1);
        good = ++at;
    }
    rb_str_cat(text, good, end - good);
    RB_GC_GUARD(broken);
    return text;
}

/* guarded by the GVL */
static bool defers, deferred;

void
sdb_utf8_defer(bool on)
{
    defers = on;
    deferred = false;
}

bool
sdb_utf8_deferred(void)
{
    bool was = deferred;
    deferred = false;
    return was;
}

VALUE
sdb_utf8(VALUE string)
{
    if (!RB_TYPE_P(string, T_STRING)) return string;
    int coded = rb_enc_str_coderange(string);
    if (coded == ENC_CODERANGE_7BIT) return string;
    rb_encoding *from = rb_enc_get(string), *utf8 = rb_utf8_encoding();
    if (from == utf8 && coded == ENC_CODERANGE_VALID) return string;

    VALUE text = string;
    if (from == rb_ascii8bit_encoding() || from == rb_usascii_encoding()) text = as_utf8(string);
    else if (from != utf8 && defers) deferred = true;
    else if (from != utf8)
        text = rb_str_conv_enc_opts(string, from, utf8, ECONV_INVALID_REPLACE | ECONV_UNDEF_REPLACE,
                                    Qnil);
    if (rb_enc_get(text) != utf8) text = as_utf8(text); /* there is no way from its encoding */
    RB_GC_GUARD(string);
    return rb_enc_str_coderange(text) == ENC_CODERANGE_BROKEN ? scrubbed(text) : text;
}
