/* SPDX-License-Identifier: MIT
 *
 * symbols.c - see symbols.h. rb_profile_frame_* calls rb_bug on anything that is neither iseq nor method
 * entry (vm_backtrace.c:frame2iseq), so both are proven first by a read that cannot fault.
 */
#include "vm/symbols.h"

#include <ruby/debug.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/safe_read.h"
#include "core/string_table.h"
#include "sdb_atomic.h"
#include "scan/frame_code.h"
#include "vm/utf8.h"
#include "vm/vm_heap.h"

/* iseq.c, exported from 3.1 to 4.0, in no public header */
unsigned int rb_iseq_line_no(const void *iseq, size_t pos);

enum {
    NAME_BYTES = 4096,
    MAX_LINE_RUNS = SDB_LINE_RUNS_MAX,
    CALLED_ID_OFF = 24 /* rb_callable_method_entry_t.called_id */
};

struct text {
    char bytes[NAME_BYTES + 1]; /* one more than is kept: then it was cut, and says so */
    size_t n;
};

static void
put(struct text *t, const char *s, size_t n)
{
    if (n > sizeof t->bytes - t->n) n = sizeof t->bytes - t->n;
    memcpy(t->bytes + t->n, s, n);
    t->n += n;
}

static void
finish(struct text *t)
{
    t->n = sdb_text_put(t->bytes, t->bytes, t->n, NAME_BYTES);
}

static void
put_string(struct text *t, VALUE string)
{
    if (!RB_TYPE_P(string, T_STRING)) return;
    string = sdb_utf8(string);
    put(t, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
    RB_GC_GUARD(string);
}

/* "#<Class:0x000...>" -> "#<Class>": addresses differ from run to run and name nothing. */
static void
put_class(struct text *t, VALUE path)
{
    if (!RB_TYPE_P(path, T_STRING)) return;
    path = sdb_utf8(path);
    const char *s = RSTRING_PTR(path), *end = s + RSTRING_LEN(path);
    while (s < end) {
        if (end - s > 3 && !memcmp(s, ":0x", 3)) {
            const char *digits = s + 3;
            while (digits < end && strchr("0123456789abcdef", *digits)) digits++;
            if (digits - s > 8) {
                s = digits;
                continue;
            }
        }
        put(t, s++, 1);
    }
    RB_GC_GUARD(path);
}

static bool
strip(const char **s, size_t *n, const char *prefix)
{
    size_t length = strlen(prefix);
    if (*n < length || memcmp(*s, prefix, length)) return false;
    *s += length;
    *n -= length;
    return true;
}

static bool
same_string(VALUE a, VALUE b)
{
    return a == b ||
           (RB_TYPE_P(a, T_STRING) && RB_TYPE_P(b, T_STRING) && RSTRING_LEN(a) == RSTRING_LEN(b) &&
            !memcmp(RSTRING_PTR(a), RSTRING_PTR(b), (size_t)RSTRING_LEN(a)));
}

/* ID under which a method entry was called. The public API has none for define_method bodies; the field
 * is believed only after it agreed with the public name of another entry in this process. */
static VALUE
called_name(VALUE ment)
{
    static bool proven, refuted;
    VALUE name = rb_profile_frame_method_name(ment);
    if (proven && RB_TYPE_P(name, T_STRING)) return name;
    uint64_t id;
    if (refuted || sdb_safe_read(&id, (uint64_t)ment + CALLED_ID_OFF, sizeof id) != 0) return name;
    if (RB_TYPE_P(name, T_STRING)) {
        /* compare as symbols: to turn an unproven word into a name could crash */
        VALUE symbol = rb_check_symbol(&name);
        if (RB_SYMBOL_P(symbol) && (uint64_t)rb_sym2id(symbol) == id) proven = true;
        return name;
    }
    return proven ? rb_id2str((ID)id) : Qnil;
}

/* "Foo#" or "Foo.", nothing for a method without a class. */
static void
put_owner(struct text *t, VALUE ment)
{
    size_t before = t->n;
    put_class(t, rb_profile_frame_classpath(ment));
    if (t->n == before) return;
    put(t, RTEST(rb_profile_frame_singleton_method_p(ment)) ? "." : "#", 1);
}

/* "block (2 levels) in bar" + Foo's entry of bar -> "block (2 levels) in Foo#bar". Since 3.4 a backtrace
 * shows the method for its rescue and ensure parts (vm_backtrace.c:calculate_iseq_label): so do we. */
static void
put_iseq_name(struct text *t, VALUE iseq, VALUE ment, bool bmethod_body)
{
    VALUE label = sdb_utf8(rb_profile_frame_label(iseq));
    VALUE base = sdb_utf8(rb_profile_frame_base_label(iseq));
    if (!RB_TYPE_P(label, T_STRING)) return;
    const char *s = RSTRING_PTR(label);
    size_t n = (size_t)RSTRING_LEN(label);
    while (strip(&s, &n, "rescue in ") || strip(&s, &n, "ensure in ")) {}
    if (!ment) {
        put(t, s, n);
        return;
    }
    VALUE method =
        rb_profile_frame_path(ment); /* nil for a define_method entry: it has no iseq of its own */
    bool bmethod = bmethod_body || NIL_P(method);
    VALUE name = bmethod ? called_name(ment) : base;
    if (!RB_TYPE_P(name, T_STRING)) {
        put(t, s, n);
        return;
    }
    if (!bmethod_body) {
        size_t base_bytes = RB_TYPE_P(base, T_STRING) ? (size_t)RSTRING_LEN(base) : 0;
        if (bmethod) put(t, "block in ", 9);
        else if (n >= base_bytes && !memcmp(s + n - base_bytes, RSTRING_PTR(base), base_bytes)) {
            put(t, s, n - base_bytes);
        }
    }
    put_owner(t, ment);
    put_string(t, name);
    RB_GC_GUARD(label);
    RB_GC_GUARD(base);
}

static VALUE
code_path(VALUE frame)
{
    VALUE path = rb_profile_frame_absolute_path(frame);
    if (!RB_TYPE_P(path, T_STRING)) path = rb_profile_frame_path(frame);
    return path;
}

/* Template engines give their own lines of a template numbers below 1. */
static uint32_t
known_line(long line)
{
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static uint32_t
line_runs(VALUE iseq, uint32_t count, struct sdb_line_run *runs)
{
    uint32_t n = 0, last = UINT32_MAX;
    for (uint32_t i = 0; i < count && n < MAX_LINE_RUNS; i++) {
        uint32_t line = known_line((int)rb_iseq_line_no((const void *)iseq, i));
        if (line == last) continue;
        if (n + 1 == MAX_LINE_RUNS) line = 0; /* from here on not known */
        runs[n++] = (struct sdb_line_run){.index = i, .line = line};
        last = line;
    }
    return n;
}

static struct sdb_named *
build(const struct sdb_symbol *s, const struct text *name, const struct text *path,
      const struct text *class, const struct sdb_line_run *runs)
{
    size_t runs_bytes = s->line_run_count * sizeof *runs;
    size_t bytes = sizeof(struct sdb_named) + runs_bytes + name->n + path->n + class->n;
    struct sdb_named *named = malloc(bytes);
    if (!named) return NULL;
    struct sdb_line_run *own_runs = (struct sdb_line_run *)(named + 1);
    char *text = (char *)own_runs + runs_bytes;
    *named = (struct sdb_named){.symbol = *s, .pin = UINT32_MAX, .memory_bytes = (uint32_t)bytes};
    if (runs_bytes) memcpy(own_runs, runs, runs_bytes);
    memcpy(text, name->bytes, name->n);
    memcpy(text + name->n, path->bytes, path->n);
    memcpy(text + name->n + path->n, class->bytes, class->n);
    named->symbol.line_runs = own_runs;
    named->symbol.name = text;
    named->symbol.path = text + name->n;
    named->symbol.class_name = text + name->n + path->n;
    named->symbol.name_bytes = (uint32_t)name->n;
    named->symbol.path_bytes = (uint32_t)path->n;
    named->symbol.class_bytes = (uint32_t) class->n;
    return named;
}

/* The address must still be the iseq that was scanned: its kind, and a pc that lies inside it. */
static bool
prove_iseq(const struct sdb_layout *l, const struct sdb_young *young, uint64_t *base,
           uint32_t *count)
{
    uint64_t body, encoded;
    uint32_t size;
    if (!sdb_vm_is_iseq((VALUE)young->iseq)) return false;
    if (sdb_safe_read(&body, young->iseq + l->iseq_body, 8) != 0) return false;
    if (sdb_safe_read(&size, body + l->body_iseq_size, 4) != 0) return false;
    if (sdb_safe_read(&encoded, body + l->body_iseq_encoded, 8) != 0) return false;
    if (young->pc && (young->pc < encoded || young->pc > encoded + 8ull * size)) return false;
    *base = encoded;
    *count = size;
    return true;
}

struct sdb_named *
sdb_symbol_make(const struct sdb_layout *layout, const struct sdb_young *young)
{
    static struct text name, path, class; /* GVL: one symbolizer at a time */
    static struct sdb_line_run runs[MAX_LINE_RUNS];
    VALUE iseq = (VALUE)young->iseq, ment = (VALUE)(young->ment & ~(uint64_t)SDB_CODE_BMETHOD);
    bool bmethod_body = young->ment & SDB_CODE_BMETHOD;
    struct sdb_symbol s = {
        .kind = SDB_CODE_INVALID, .iseq = (uint64_t)iseq, .method_entry = (uint64_t)ment};
    name.n = path.n = class.n = 0;

    uint64_t base = 0;
    uint32_t count = 0;
    if (ment && !sdb_vm_is_ment(ment)) return build(&s, &name, &path, &class, runs);
    if (iseq && !prove_iseq(layout, young, &base, &count))
        return build(&s, &name, &path, &class, runs);
    if (!iseq && !ment) return build(&s, &name, &path, &class, runs);
    if (iseq && ment && !bmethod_body) {
        /* a half-published frame may join one method's iseq with another's entry */
        VALUE label = rb_profile_frame_label(iseq), mine = rb_profile_frame_base_label(iseq);
        VALUE theirs = rb_profile_frame_base_label(ment);
        if (!NIL_P(theirs) && same_string(label, mine) && !same_string(mine, theirs)) {
            return build(&s, &name, &path, &class, runs);
        }
        if (!NIL_P(theirs) && same_string(label, mine))
            sdb_frame_learn_pair(young->iseq, (uint64_t)ment);
    }
    VALUE frame = iseq ? iseq : ment;
    if (iseq) {
        put_iseq_name(&name, iseq, ment, bmethod_body);
    } else {
        put_owner(&name, ment);
        put_string(&name, called_name(ment));
    }
    VALUE where = code_path(frame), first = rb_profile_frame_first_lineno(frame);
    put_string(&path, where);
    if (path.n == 7 && !memcmp(path.bytes, "<cfunc>", 7))
        path.n = 0; /* what the API says of a C function */
    if (ment) put_class(&class, rb_profile_frame_classpath(ment));
    s.kind = iseq || path.n ? SDB_CODE_RUBY : SDB_CODE_C;
    s.first_line = FIXNUM_P(first) ? known_line(FIX2LONG(first)) : 0;
    s.base = base;
    s.instruction_count = count;
    s.line_run_count = iseq ? line_runs(iseq, count, runs) : 0;
    if (!name.n) put(&name, "(anonymous)", 11);
    finish(&name);
    finish(&path);
    finish(&class);
    return build(&s, &name, &path, &class, runs);
}
