/* SPDX-License-Identifier: MIT
 *
 * calibrate_walk.c - see calibrate_walk.h. First the stack (thread, execution context, frames: those fit or
 * not as a whole), then the iseq's fields with the frames at hand.
 *
 * Runs on: any Ruby thread, GVL
 */
#include "vm/calibrate_walk.h"

#include "error.h"
#include "core/self_read.h"

#include <stdio.h>
#include <string.h>

enum {
    WORD = 8,
    THREAD_WORDS = 24, /* of rb_thread_t searched for the execution context */
    /* of the context searched for the way back to the thread; saved registers follow */
    EC_WORDS = 12,
    STACK_WORDS_AT = 5, /* the stack's three words are among so many first ones */
    FRAME_MIN_BYTES = 40,
    FRAME_MAX_BYTES = 96,
    BODY_WORDS = 8,       /* of rb_iseq_constant_body searched */
    ISEQ_WORDS = 8,       /* of rb_iseq_t searched for the body */
    ISEQ_MAX_WORDS = 200, /* none of the frames searched has so many instructions */
    STACK_MIN_WORDS = 1024,
    STACK_MAX_WORDS = 1 << 24,
    ENV_WORDS = 3, /* ep[-2], ep[-1], ep[0] */
    OLDEST_SP_MAX_BYTES = (ENV_WORDS + 64) * WORD,
    HITS_MAX = 8,
};

struct stack {
    uint64_t base, words, cfp;
};

struct search {
    const struct sdb_search_frame *frames;
    unsigned count;
    struct stack stack;
    unsigned frame_bytes;
    uint64_t copy[SDB_SEARCH_MAX_FRAMES * FRAME_MAX_BYTES /
                  WORD]; /* of [cfp, cfp + count * frame_bytes) */
    uint64_t ep[SDB_SEARCH_MAX_FRAMES];
};

static uint64_t
stack_end(const struct stack *stack)
{
    return stack->base + WORD * stack->words;
}

static bool
stack_plausible(const struct stack *stack)
{
    return stack->base != 0 && stack->base % WORD == 0 && stack->cfp % WORD == 0 &&
           stack->words >= STACK_MIN_WORDS && stack->words <= STACK_MAX_WORDS &&
           stack->cfp >= stack->base && stack->cfp < stack_end(stack);
}

/* The oldest frame begins as the dummy that rb_ec_initialize_vm_stack (vm.c) pushes on the empty stack: its sp
 * is three words above the stack's base, and stays within a few arguments of it (main's ep does not stay:
 * its environment is TOPLEVEL_BINDING's). A word like that in the last frame proves both ends of the stack at once. */
static bool
oldest_frame_fits(const struct stack *stack, unsigned frame_bytes)
{
    uint64_t frame[FRAME_MAX_BYTES / WORD];
    if ((stack_end(stack) - stack->cfp) % frame_bytes ||
        !sdb_self_read(stack_end(stack) - frame_bytes, frame, frame_bytes)) {
        return false;
    }
    for (unsigned i = 0; i < frame_bytes / WORD; i++) {
        uint64_t above = frame[i] - stack->base;
        if (above >= ENV_WORDS * WORD && above <= OLDEST_SP_MAX_BYTES) {
            return true;
        }
    }
    return false;
}

static uint64_t
frame_word(const struct search *s, unsigned frame, unsigned offset)
{
    return s->copy[(frame * s->frame_bytes + offset) / WORD];
}

/* Whether the word at `offset` is each frame's ep: its environment names the method that the VM names. */
static bool
ep_fits(struct search *s, unsigned offset)
{
    uint64_t specval[SDB_SEARCH_MAX_FRAMES];
    for (unsigned i = 0; i < s->count; i++) {
        uint64_t env[ENV_WORDS], ep = frame_word(s, i, offset);
        if (ep % WORD || ep < s->stack.base + (ENV_WORDS - 1) * WORD || ep >= s->stack.cfp ||
            !sdb_self_read(ep - (ENV_WORDS - 1) * WORD, env, sizeof(env))) {
            return false;
        }
        bool method = s->frames[i].kind == SDB_SEARCH_C || s->frames[i].kind == SDB_SEARCH_METHOD;
        if (method && env[0] != s->frames[i].entry) {
            return false;
        }
        s->ep[i] = ep;
        specval[i] = env[1];
    }
    for (unsigned i = 0; i < s->count; i++) {
        if (s->frames[i].kind == SDB_SEARCH_BLOCK &&
            (specval[i] & ~3ull) != s->ep[s->frames[i].home]) {
            return false;
        }
    }
    return true;
}

/* Whether the word at `offset` is each frame's iseq. */
static bool
iseq_fits(const struct search *s, unsigned offset)
{
    for (unsigned i = 0; i < s->count; i++) {
        const struct sdb_search_frame *frame = &s->frames[i];
        uint64_t iseq = frame_word(s, i, offset);
        if (frame->kind == SDB_SEARCH_C) {
            if (iseq != 0) {
                return false;
            }
            continue;
        }
        if (iseq == 0 || iseq % WORD ||
            (frame->kind == SDB_SEARCH_BMETHOD && iseq != frame->entry)) {
            return false;
        }
        for (unsigned j = 0; j < i; j++) { /* one code, one iseq */
            bool same = s->frames[j].entry == frame->entry && s->frames[j].kind == frame->kind;
            if (s->frames[j].kind != SDB_SEARCH_C && (frame_word(s, j, offset) == iseq) != same) {
                return false;
            }
        }
    }
    return true;
}

struct hits {
    struct sdb_layout at[HITS_MAX];
    unsigned count; /* may exceed HITS_MAX */
};

static void
hits_add(struct hits *hits, const struct sdb_layout *layout)
{
    if (hits->count < HITS_MAX) {
        hits->at[hits->count] = *layout;
    }
    hits->count++;
}

/* Every frame size, ep and iseq that fit this stack. */
static void
try_frames(struct search *s, struct sdb_layout *layout, struct hits *hits)
{
    uint64_t depth_bytes = stack_end(&s->stack) - s->stack.cfp;
    for (unsigned bytes = FRAME_MIN_BYTES; bytes <= FRAME_MAX_BYTES; bytes += WORD) {
        s->frame_bytes = bytes;
        if (depth_bytes % bytes || depth_bytes / bytes <= s->count ||
            !sdb_self_read(s->stack.cfp, s->copy, (size_t)s->count * bytes) ||
            !oldest_frame_fits(&s->stack, bytes)) {
            continue;
        }
        for (unsigned ep = 0; ep < bytes; ep += WORD) {
            if (!ep_fits(s, ep)) {
                continue;
            }
            for (unsigned iseq = 0; iseq < bytes; iseq += WORD) {
                if (iseq != ep && iseq_fits(s, iseq)) {
                    layout->cfp_bytes = bytes;
                    layout->cfp_ep = ep;
                    layout->cfp_iseq = iseq;
                    hits_add(hits, layout);
                }
            }
        }
    }
}

/* Every place of the stack's three words in this execution context. */
static void
try_context(struct search *s, const uint64_t ec[EC_WORDS], struct sdb_layout *layout,
            struct hits *hits)
{
    for (unsigned base = 0; base < STACK_WORDS_AT; base++) {
        for (unsigned words = 0; words < STACK_WORDS_AT; words++) {
            for (unsigned cfp = 0; cfp < STACK_WORDS_AT; cfp++) {
                s->stack = (struct stack){ec[base], ec[words], ec[cfp]};
                if (stack_plausible(&s->stack)) {
                    layout->ec_vm_stack = base * WORD;
                    layout->ec_vm_stack_size = words * WORD;
                    layout->ec_cfp = cfp * WORD;
                    try_frames(s, layout, hits);
                }
            }
        }
    }
}

static int
find_stack(struct search *s, uint64_t th, struct sdb_layout *out, char reason[SDB_REASON_BYTES])
{
    uint64_t thread[THREAD_WORDS], ec[EC_WORDS];
    struct hits hits = {.count = 0};
    unsigned contexts = 0;
    if (!sdb_self_read(th, thread, sizeof(thread))) {
        snprintf(reason, SDB_REASON_BYTES, "cannot read the thread's struct");
        return SDB_ERR_UNSUPPORTED;
    }
    for (unsigned at = 0; at < THREAD_WORDS; at++) {
        if (thread[at] < 4096 || thread[at] % WORD || !sdb_self_read(thread[at], ec, sizeof(ec))) {
            continue;
        }
        for (unsigned back = 0; back < EC_WORDS; back++) {
            if (ec[back] == th) {
                struct sdb_layout layout = {.thread_ec = at * WORD, .ec_thread = back * WORD};
                contexts++;
                try_context(s, ec, &layout, &hits);
            }
        }
    }
    if (hits.count != 1) {
        snprintf(reason, SDB_REASON_BYTES,
                 hits.count ? "the stack fits %u layouts, and not one"
                 : contexts ? "the frames on the stack are not those that rb_profile_frames "
                              "returns, for any of the known shapes"
                            : "no execution context found in the thread's struct",
                 hits.count);
        return SDB_ERR_UNSUPPORTED;
    }
    *out = hits.at[0];
    s->stack = (struct stack){0, 0, 0}; /* of the last try; fill again from the hit */
    s->frame_bytes = out->cfp_bytes;
    uint64_t context = thread[out->thread_ec / WORD];
    if (!sdb_self_read(context + out->ec_cfp, &s->stack.cfp, WORD) ||
        !sdb_self_read(s->stack.cfp, s->copy, (size_t)s->count * s->frame_bytes)) {
        snprintf(reason, SDB_REASON_BYTES, "the stack moved while it was read");
        return SDB_ERR_UNSUPPORTED;
    }
    return 0;
}

/* ---- the iseq ---- */

/* Whether, with these offsets, each frame's pc lies in its iseq's instructions, at the right line. */
static bool
pc_fits(const struct search *s, const struct sdb_layout *layout, sdb_search_line *line_of)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (s->frames[i].kind == SDB_SEARCH_C) {
            continue;
        }
        uint64_t iseq = frame_word(s, i, layout->cfp_iseq), pc = frame_word(s, i, layout->cfp_pc),
                 body, encoded;
        if (!sdb_self_read(iseq + layout->iseq_body, &body, WORD) || body < 4096 || body % WORD ||
            !sdb_self_read(body + layout->body_iseq_encoded, &encoded, WORD) || encoded % WORD ||
            pc <= encoded || (pc - encoded) % WORD) {
            return false;
        }
        uint64_t position = (pc - encoded) / WORD - 1; /* pc is that of the next instruction */
        if (position < SDB_SEARCH_MIN_POS || position > SDB_SEARCH_MAX_POS ||
            line_of(iseq, (unsigned)position) != (unsigned)s->frames[i].line) {
            return false;
        }
    }
    return true;
}

/* Whether body + size_at is a 32-bit count of instructions: each pc is below it, and all methods'
 * last instruction is the same, the one that leaves a method. */
static bool
size_fits(const struct search *s, const struct sdb_layout *layout, unsigned size_at)
{
    uint64_t leave = 0;
    for (unsigned i = 0; i < s->count; i++) {
        if (s->frames[i].kind == SDB_SEARCH_C) {
            continue;
        }
        uint64_t iseq = frame_word(s, i, layout->cfp_iseq), pc = frame_word(s, i, layout->cfp_pc);
        uint64_t body, encoded, last;
        uint32_t size;
        if (!sdb_self_read(iseq + layout->iseq_body, &body, WORD) ||
            !sdb_self_read(body + layout->body_iseq_encoded, &encoded, WORD) ||
            !sdb_self_read(body + size_at, &size, sizeof(size)) || size > ISEQ_MAX_WORDS ||
            pc > encoded + (uint64_t)WORD * size ||
            !sdb_self_read(encoded + (uint64_t)WORD * (size - 1), &last, WORD)) {
            return false;
        }
        if (s->frames[i].kind == SDB_SEARCH_METHOD) {
            if (leave && last != leave) {
                return false;
            }
            leave = last;
        }
    }
    return true;
}

static int
find_iseq(const struct search *s, sdb_search_line *line_of, struct sdb_layout *out,
          char reason[SDB_REASON_BYTES])
{
    struct hits hits = {.count = 0}, sized = {.count = 0};
    struct sdb_layout layout = *out;
    for (layout.cfp_pc = 0; layout.cfp_pc < s->frame_bytes; layout.cfp_pc += WORD) {
        if (layout.cfp_pc == layout.cfp_ep || layout.cfp_pc == layout.cfp_iseq) {
            continue;
        }
        for (layout.iseq_body = WORD; layout.iseq_body < ISEQ_WORDS * WORD;
             layout.iseq_body += WORD) {
            for (layout.body_iseq_encoded = 0; layout.body_iseq_encoded < BODY_WORDS * WORD;
                 layout.body_iseq_encoded += WORD) {
                if (pc_fits(s, &layout, line_of)) {
                    hits_add(&hits, &layout);
                }
            }
        }
    }
    if (hits.count != 1) {
        snprintf(
            reason, SDB_REASON_BYTES,
            "%s: rb_iseq_line_no and rb_profile_frames agree for %u places of pc and instructions",
            "the instructions of a frame were not found", hits.count);
        return SDB_ERR_UNSUPPORTED;
    }
    layout = hits.at[0];
    for (unsigned at = 0; at < BODY_WORDS * WORD; at += sizeof(uint32_t)) {
        layout.body_iseq_size = at;
        if (size_fits(s, &layout, at)) {
            hits_add(&sized, &layout);
        }
    }
    if (sized.count != 1) {
        snprintf(reason, SDB_REASON_BYTES,
                 "the number of a frame's instructions fits %u places, and not one", sized.count);
        return SDB_ERR_UNSUPPORTED;
    }
    *out = sized.at[0];
    return 0;
}

int
sdb_search_find(uint64_t th, const struct sdb_search_frame *frames, unsigned count,
                sdb_search_line *line_of, struct sdb_layout *out, char reason[SDB_REASON_BYTES])
{
    struct search s = {.frames = frames, .count = count};
    struct sdb_layout layout;
    if (count > SDB_SEARCH_MAX_FRAMES) {
        snprintf(reason, SDB_REASON_BYTES, "more frames than calibration knows");
        return SDB_ERR_UNSUPPORTED;
    }
    int err = find_stack(&s, th, &layout, reason);
    if (!err) {
        err = find_iseq(&s, line_of, &layout, reason);
    }
    if (!err) {
        *out = layout;
    }
    return err;
}

int
sdb_search_check(const struct sdb_layout *layout, uint64_t th)
{
    uint64_t ec, back;
    struct stack stack;
    bool fits = sdb_self_read(th + layout->thread_ec, &ec, WORD) &&
                sdb_self_read(ec + layout->ec_thread, &back, WORD) && back == th &&
                sdb_self_read(ec + layout->ec_vm_stack, &stack.base, WORD) &&
                sdb_self_read(ec + layout->ec_vm_stack_size, &stack.words, WORD) &&
                sdb_self_read(ec + layout->ec_cfp, &stack.cfp, WORD) && stack_plausible(&stack) &&
                oldest_frame_fits(&stack, layout->cfp_bytes);
    return fits ? 0 : SDB_ERR_AGAIN;
}
