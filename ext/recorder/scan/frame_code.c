/* SPDX-License-Identifier: MIT
 *
 * frame_code.c - see frame_code.h. Facts: vm_core.h (VM_FRAME_MAGIC_*, VM_FRAME_FLAG_*, rb_env_t) and
 * vm_insnhelper.c (check_method_entry, rb_vm_frame_method_entry) of CRuby 3.1 to 4.0; imemo.h for types.
 */
#include "scan/frame_code.h"

#include <string.h>
#include "core/safe_read.h"
#include "sdb_atomic.h"
#include "scan/thread_memory.h"

enum {
    MAGIC_MASK = 0x7fff0001,
    METHOD = 0x11110001,
    BLOCK = 0x22220001,
    CLASS = 0x33330001,
    TOP = 0x44440001,
    CFUNC = 0x55550001,
    IFUNC = 0x66660001,
    EVAL = 0x77770001,
    RESCUE = 0x78880001,
    DUMMY = 0x79990001,
    FLAG_LOCAL = 0x2,
    FLAG_BMETHOD = 0x40,
    MAX_EP_LEVELS = 64, /* blocks nested deeper are named without their class */
};

enum { T_IMEMO_TYPE = 0x1a, IMEMO_ENV = 0, IMEMO_SVAR = 2, IMEMO_MENT = 6 };

struct ep_words { /* as they lie: ep[-2], ep[-1], ep[0] */
    uint64_t me, spec, flags;
};

bool
sdb_frame_is_on_stack(const struct sdb_stack *s, uint64_t ep)
{
    return ep >= s->low + 16 && ep < s->high && !(ep & 7);
}

/* Without a system call: of an ep on a stack that may be loaded, or that was copied. */
static bool
read_ep_here(const struct sdb_stack *s, uint64_t ep, struct ep_words *out)
{
    if (!sdb_frame_is_on_stack(s, ep))
        return false; /* first: a wild ep (0, say) must not wrap around into a range */
    if (s->direct) {
        const uint64_t *p = (const uint64_t *)(uintptr_t)ep;
        out->me = sdb_load_relaxed(p - 2);
        out->spec = sdb_load_relaxed(p - 1);
        out->flags = sdb_load_relaxed(p);
        return true;
    }
    if (!s->values || ep < s->values_low + 16 || ep + 8 > s->values_high) return false;
    memcpy(out, s->values + (ep - 16 - s->values_low), sizeof *out);
    return true;
}

static bool
may_be_ep(uint64_t ep)
{
    return ep > 16 && !(ep & 7);
}

static bool
read_ep(const struct sdb_stack *s, uint64_t ep, struct ep_words *out)
{
    return read_ep_here(s, ep, out) ||
           (may_be_ep(ep) && sdb_safe_read(out, ep - 16, sizeof *out) == 0);
}

/* me, spec and flags of raw[0..n). A method that made a proc has its environment on the heap, and of those a request
 * of a Rails app has a dozen on its stack: they are read with one system call for many. flags stays 0, which no
 * frame has, where nothing could be read. */
static void
read_eps(const struct sdb_stack *s, struct sdb_raw_frame *raw, uint32_t n)
{
    struct sdb_safe_piece pieces[SDB_SAFE_PIECES_MAX];
    uint32_t owner[SDB_SAFE_PIECES_MAX];
    unsigned count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct sdb_raw_frame *f = &raw[i];
        struct ep_words w = {0};
        if (!read_ep_here(s, f->ep, &w) && may_be_ep(f->ep)) {
            owner[count] = i;
            pieces[count++] =
                (struct sdb_safe_piece){.dst = &f->me, .src = f->ep - 16, .bytes = sizeof w};
        }
        f->me = w.me;
        f->spec = w.spec;
        f->flags = w.flags;
        if (count == 0 || (count < SDB_SAFE_PIECES_MAX && i + 1 < n)) continue;
        sdb_safe_readv(pieces, count);
        for (unsigned k = 0; k < count; k++)
            if (pieces[k].err) raw[owner[k]].flags = 0;
        count = 0;
    }
}

uint64_t
sdb_frame_method_entry(const struct sdb_stack *s, uint64_t ep)
{
    struct ep_words w;
    return read_ep(s, ep, &w) ? w.me : 0;
}

bool
sdb_frame_words_hold(const struct sdb_stack *s, const struct sdb_raw_frame *f)
{
    if (!f->on_stack)
        return true; /* a heap env lives while the frame, which was read again, points to it */
    struct ep_words now;
    return read_ep(s, f->ep, &now) && now.me == f->me && now.spec == f->spec &&
           now.flags == f->flags;
}

/* imemo type of a heap object, -1 when it is none or cannot be read now (compaction protects pages). */
static int
imemo_type(uint64_t value, uint64_t words[3])
{
    if (!value || value & 7 || sdb_safe_read(words, value, 3 * sizeof *words) != 0) return -1;
    if ((words[0] & 0x1f) != T_IMEMO_TYPE) return -1;
    return (int)(words[0] >> 12 & 15);
}

/* rb_callable_method_entry_t.def and rb_method_definition_struct: type in the low four bits, 0 an iseq method, and
 * body.iseq.iseqptr (method.h, 3.1 to 4.0). Believed when so many pairs that the symbolizer proved by
 * their names agree. */
enum { ENTRY_DEF_OFF = 16, DEF_TYPE_MASK = 15, DEF_ISEQ_OFF = 8, PAIRS_NEEDED = 16 };
static uint64_t pairs_agreed; /* shared: atomic; written by the symbolizer */

/* 1 the entry is of this iseq, 0 of another, -1 cannot be told. */
static int
entry_is_of(uint64_t method_entry, uint64_t iseq)
{
    uint64_t def, words[2];
    if (sdb_safe_read(&def, method_entry + ENTRY_DEF_OFF, sizeof def) != 0 || !def || def & 7)
        return -1;
    if (sdb_safe_read(words, def, sizeof words) != 0 || words[0] & DEF_TYPE_MASK) return -1;
    return words[DEF_ISEQ_OFF / 8] == iseq;
}

void
sdb_frame_learn_pair(uint64_t iseq, uint64_t method_entry)
{
    /* what disagrees says nothing: an eval in a method has the method's entry and name, and an iseq of its own */
    if (entry_is_of(method_entry, iseq) == 1) sdb_add_relaxed(&pairs_agreed, 1);
}

/* True when the entry is known to be another iseq's. */
static bool
contradicts(uint64_t method_entry, uint64_t iseq)
{
    return sdb_load_relaxed(&pairs_agreed) >= PAIRS_NEEDED && entry_is_of(method_entry, iseq) == 0;
}

/* What ep[-2] of a METHOD frame means: a method entry, or an svar that holds it. false: unreadable, or of another
 * iseq. own: iseq is the method's, not that of a block in it. *entry: of the code table, when it was found there. */
static bool
resolve_me(const struct sdb_code_table *codes, uint64_t iseq, bool own, uint64_t me, uint64_t *ment,
           uint32_t *entry)
{
    *entry = sdb_code_table_find(codes, iseq, me);
    if (*entry) { /* known, pinned: no other object can lie there */
        *ment = me;
        return true;
    }
    uint64_t words[3];
    int type = imemo_type(me, words);
    if (type == IMEMO_SVAR) {
        me = words[1];
        *entry = sdb_code_table_find(codes, iseq, me);
        if (*entry) {
            *ment = me;
            return true;
        }
        type = imemo_type(me, words);
    }
    if (type < 0) return false;
    *ment = type == IMEMO_MENT ? me : 0;
    return !own || !*ment || !contradicts(*ment, iseq);
}

/* The method a block stands in, by walking its environments. false: one was seen mid-change. */
static bool
walk_environments(const struct sdb_code_table *codes, const struct sdb_stack *s, uint64_t iseq,
                  uint64_t ep, uint64_t *ment)
{
    for (int level = 0; level < MAX_EP_LEVELS; level++) {
        struct ep_words w;
        if (!read_ep(s, ep, &w)) return false;
        if (!(w.flags & 1)) {
            /* the env moved to the heap and left its object here: go on in the object's own copy */
            uint64_t env[3];
            if (imemo_type(w.flags, env) != IMEMO_ENV || env[2] == ep) return false;
            ep = env[2];
            continue;
        }
        if (w.flags & FLAG_BMETHOD) {
            *ment = w.me;
            return true;
        }
        if (w.flags & FLAG_LOCAL) {
            uint64_t magic = w.flags & MAGIC_MASK;
            *ment = 0;
            if (magic == CFUNC) *ment = w.me;
            uint32_t unused;
            if (magic == METHOD) return resolve_me(codes, iseq, false, w.me, ment, &unused);
            return true;
        }
        ep = w.spec & ~(uint64_t)3;
    }
    *ment = 0;
    return true;
}

/* The method that the block in raw[i] stands in. Its frame is usually on the stack too: then what was found
 * for that frame holds, without any read. */
static bool
enclosing(const struct sdb_code_table *codes, const struct sdb_stack *s,
          const struct sdb_scan *scan, uint32_t from, const struct sdb_raw_frame *raw, uint32_t i,
          uint64_t *ment)
{
    uint64_t parent = raw[i].spec & ~(uint64_t)3;
    for (uint32_t j = i; j-- > 0;) {
        if (raw[j].ep != parent) continue;
        *ment = raw[j].ment & ~(uint64_t)SDB_CODE_BMETHOD;
        return true;
    }
    for (uint32_t j = from; j-- > 0;) {
        if (scan->frames[j].ep != parent) continue;
        *ment = scan->frames[j].ment & ~(uint64_t)SDB_CODE_BMETHOD;
        return true;
    }
    return walk_environments(codes, s, raw[i].iseq, parent, ment);
}

uint32_t
sdb_frame_codes(const struct sdb_code_table *codes, const struct sdb_stack *s,
                const struct sdb_scan *scan, uint32_t from, struct sdb_raw_frame *raw, uint32_t n)
{
    read_eps(s, raw, n);
    for (uint32_t i = 0; i < n; i++) {
        struct sdb_raw_frame *f = &raw[i];
        f->shown = f->c_frame = false;
        f->ment = 0;
        f->shown_iseq = 0;
        f->entry = 0;
        f->on_stack = sdb_frame_is_on_stack(s, f->ep);
        if (!(f->flags & 1)) return i;

        bool known = true;
        f->shown_iseq = f->iseq;
        switch (f->flags & MAGIC_MASK) {
        case METHOD:
            known = resolve_me(codes, f->iseq, true, f->me, &f->ment, &f->entry);
            break;
        case CFUNC:
            f->c_frame = true;
            f->shown_iseq = 0;
            f->ment = f->me;
            break;
        case IFUNC:
            f->c_frame = true;
            f->shown_iseq = 0; /* an imemo_ifunc is no iseq: the method it stands in is shown */
            if (f->flags & FLAG_BMETHOD) f->ment = f->me;
            else known = enclosing(codes, s, scan, from, raw, i, &f->ment);
            break;
        case BLOCK:
            if (f->flags & FLAG_BMETHOD) {
                f->ment = f->me | SDB_CODE_BMETHOD;
                break;
            }
            /* fall through */
        case RESCUE:
        case EVAL:
            known = enclosing(codes, s, scan, from, raw, i, &f->ment);
            break;
        case TOP:
        case CLASS:
            break;
        case DUMMY:
            f->shown_iseq = 0;
            continue;
        default:
            return i;
        }
        if (!known) return i;
        /* the bottom frame of 3.3+ has an iseq that never runs: no pc */
        f->shown = f->shown_iseq ? f->pc || f->jit : f->ment != 0;
    }
    return n;
}
