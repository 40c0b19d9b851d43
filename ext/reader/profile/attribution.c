/* SPDX-License-Identifier: MIT
 *
 * attribution.c - see attribution.h.
 *
 * Runs on: offline
 */
#include "profile/attribution.h"

#include "error.h"

#define MAX_TICKS ((1u << 29) - 1)

int
sdb_thread_push(struct sdb_thread *t, uint64_t ns, uint32_t stack, uint32_t state, uint64_t cpu_ns,
                uint32_t ticks)
{
    if (ns == 0) {
        t->carry_cpu_ns += cpu_ns;
        t->carry_ticks += ticks;
        return SDB_OK;
    }
    if (t->carry_cpu_ns | t->carry_ticks) {
        cpu_ns += t->carry_cpu_ns;
        ticks += t->carry_ticks;
        t->carry_cpu_ns = 0;
        t->carry_ticks = 0;
    }
    if (ticks > MAX_TICKS) ticks = MAX_TICKS;
    struct sdb_segment *last = t->segment_count ? &t->segments[t->segment_count - 1] : NULL;
    if (last && last->stack == stack && last->state == state && last->ticks + ticks <= MAX_TICKS) {
        last->cpu_ns += cpu_ns;
        last->ticks += ticks;
    } else {
        int err = sdb_grow(&t->segments, &t->segment_capacity, t->segment_count + 1,
                           sizeof(*t->segments));
        if (err) return err;
        t->segments[t->segment_count++] = (struct sdb_segment){t->end, cpu_ns, stack, ticks, state};
    }
    t->end += ns;
    return SDB_OK;
}

/* What is left to be dealt out, so that the shares add up exactly. */
struct shares {
    uint64_t busy_us, busy_cpu_us;
    uint64_t blocked_us, blocked_cpu_us;
};

static uint64_t
share(uint64_t *cpu_us, uint64_t *of_us, uint64_t part_us)
{
    uint64_t cpu;
    if (*cpu_us == *of_us) cpu = part_us;
    else if (part_us == *of_us) cpu = *cpu_us;
    else if ((*cpu_us | part_us) >> 32 == 0) cpu = *cpu_us * part_us / *of_us;
    else cpu = (uint64_t)((double)*cpu_us / (double)*of_us * (double)part_us);
    if (cpu > *cpu_us) cpu = *cpu_us;
    *cpu_us -= cpu;
    *of_us -= part_us;
    return cpu * 1000;
}

/* One part of a step. Its tick goes with the first part of P and the last of S, however short. */
static int
deal(struct sdb_thread *t, struct shares *s, uint64_t us, uint32_t stack, uint32_t state,
     uint32_t ticks)
{
    if (us == 0 && ticks == 0) return SDB_OK;
    uint64_t cpu_ns = 0;
    if (us && state == SDB_BLOCKED) cpu_ns = share(&s->blocked_cpu_us, &s->blocked_us, us);
    if (us && state != SDB_BLOCKED && state != SDB_GVL_WAIT)
        cpu_ns = share(&s->busy_cpu_us, &s->busy_us, us);
    return sdb_thread_push(t, us * 1000, stack, state, cpu_ns, ticks);
}

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool
ran(uint32_t state)
{
    return state == SDB_RUNNING || state == SDB_GC;
}

/* S's part of `total` us spent in a state without the GVL. */
static uint64_t
off_gvl_of_s(const struct sdb_step *step, uint32_t state, uint64_t total)
{
    if (step->p_state != state) return total;
    if (step->s_state != state) return 0;
    /* inferred states have no age: it was seen in the same state before and after, but not for the same span */
    if (step->has_age) return least(total, step->age_us);
    if (step->has_change) return least(total, step->after_change_us);
    /* from one wait to another, somewhere in the last interval */
    return step->p_stack != step->s_stack ? least(total, step->uncertain_us) / 2 : 0;
}

static uint64_t
busy_of_s(const struct sdb_step *step, uint64_t busy, uint64_t off_gvl_s)
{
    uint64_t late = least(busy, step->uncertain_us);
    /* P was seen before its thread's span or tags changed, S after: neither gets time of the
     * other's span */
    if (step->has_change) {
        return least(late,
                     step->after_change_us > off_gvl_s ? step->after_change_us - off_gvl_s : 0);
    }
    if (ran(step->p_state)) return ran(step->s_state) ? late / 2 : 0;
    return late;
}

static uint64_t
gc_of_s(const struct sdb_step *step, uint64_t gc, uint64_t busy, uint64_t busy_s)
{
    bool p = step->p_state == SDB_GC, s = step->s_state == SDB_GC;
    if (s && !p) return least(gc, busy_s);
    if (p && !s) return gc - least(gc, busy - busy_s);
    if (busy == 0) return 0;
    uint64_t part = (uint64_t)((double)gc * (double)busy_s / (double)busy);
    /* what P has left must hold the rest of the GC */
    uint64_t least_s = gc > busy - busy_s ? gc - (busy - busy_s) : 0;
    if (part < least_s) part = least_s;
    return least(part, least(busy_s, gc));
}

int
sdb_unseen_stack(struct sdb_profile *p, uint32_t before, uint32_t after, uint32_t *stack)
{
    *stack = before;
    if (before == after) return SDB_OK;
    uint32_t a = before, b = after, a_child = SDB_STACK_ROOT, b_child = SDB_STACK_ROOT;
    while (a != b) { /* a parent's number is below its child's */
        if (a > b) {
            a_child = a;
            a = p->stacks[a].parent;
        } else {
            b_child = b;
            b = p->stacks[b].parent;
        }
    }
    int err = SDB_OK;
    uint32_t frame;
    /* the same function on another line went on all the time */
    if (a_child && b_child &&
        p->frames[p->stacks[a_child].frame].func == p->frames[p->stacks[b_child].frame].func) {
        err = sdb_profile_frame(p, p->frames[p->stacks[a_child].frame].func, 0, &frame);
        if (!err) err = sdb_profile_stack(p, a, frame, &a);
    }
    if (!err) err = sdb_profile_frame(p, SDB_FUNC_UNKNOWN, 0, &frame);
    return err ? err : sdb_profile_stack(p, a, frame, stack);
}

/* Takes of P's what is to be hidden. */
static uint64_t
hide(uint64_t *of_p, uint64_t *hidden)
{
    uint64_t us = least(*of_p, *hidden);
    *of_p -= us;
    *hidden -= us;
    return us;
}

int
sdb_attribute(struct sdb_thread *t, const struct sdb_step *step)
{
    uint64_t wait = least(step->wait_us, step->elapsed_us);
    uint64_t blocked = least(step->blocked_us, step->elapsed_us - wait);
    uint64_t all_busy = step->elapsed_us - wait - blocked;
    uint64_t gc = least(step->gc_us, all_busy);
    uint64_t idle =
        step->blocked_is_guess && ran(step->p_state) ? least(blocked, step->unseen_us) : 0;
    blocked -= idle;
    uint64_t unseen = least(step->unseen_us - idle, all_busy - gc);
    uint64_t busy = all_busy - unseen;
    /* Where nobody looked, only CPU says that there was work, and what the seen time can hold is the seen time's: a
     * process that was stopped, or frozen, did nothing. */
    uint64_t worked = least(unseen, step->cpu_us > busy ? step->cpu_us - busy : 0);
    idle += unseen - worked;

    uint64_t wait_s = off_gvl_of_s(step, SDB_GVL_WAIT, wait);
    uint64_t blocked_s = off_gvl_of_s(step, SDB_BLOCKED, blocked);
    if (step->has_change) { /* S's stack was not there before it */
        wait_s = least(wait_s, step->after_change_us);
        blocked_s = least(blocked_s, step->after_change_us - wait_s);
    }
    uint64_t busy_s = busy_of_s(step, busy, wait_s + blocked_s),
             gc_s = gc_of_s(step, gc, busy, busy_s);
    /* all that lies behind the change is S's, even when nobody saw it block or wait there */
    if (step->has_change && wait_s + blocked_s + busy_s < step->after_change_us) {
        uint64_t missing = step->after_change_us - wait_s - blocked_s - busy_s;
        uint64_t more = least(blocked - blocked_s, missing);
        blocked_s += more;
        wait_s += least(wait - wait_s, missing - more);
    }
    uint64_t run_s = busy_s - gc_s, run_p = busy - busy_s - (gc - gc_s), gc_p = gc - gc_s,
             wait_p = wait - wait_s, blocked_p = blocked - blocked_s;
    uint64_t hidden = step->hidden_us, run_h = hide(&run_p, &hidden),
             blocked_h = hide(&blocked_p, &hidden), wait_h = hide(&wait_p, &hidden),
             gc_h = hide(&gc_p, &hidden);

    /* More CPU than busy time: C code that ran without the GVL. Without blocked time it is rounding. */
    uint64_t on_cpu = busy + worked;
    uint64_t busy_cpu = blocked ? least(step->cpu_us, on_cpu) : step->cpu_us;
    struct shares shares = {on_cpu, busy_cpu, blocked, step->cpu_us - busy_cpu};
    if (on_cpu == 0 && blocked == 0) t->carry_cpu_ns += step->cpu_us * 1000;

    uint32_t p = step->p_stack, s = step->s_stack;
    bool changed = p != s || step->p_state != step->s_state;
    uint32_t own = changed && step->ticks ? 1 : 0, before = step->ticks - own;
    int err = SDB_OK;
    /* P's: first the state it was seen in */
    if (!err)
        err = deal(t, &shares, wait_p, p, SDB_GVL_WAIT, step->p_state == SDB_GVL_WAIT ? before : 0);
    if (!err)
        err =
            deal(t, &shares, blocked_p, p, SDB_BLOCKED, step->p_state == SDB_BLOCKED ? before : 0);
    if (!err && step->p_state == SDB_GC) err = deal(t, &shares, gc_p, p, SDB_GC, before);
    if (!err)
        err = deal(t, &shares, run_p, p, SDB_RUNNING, step->p_state == SDB_RUNNING ? before : 0);
    if (!err && step->p_state != SDB_GC) err = deal(t, &shares, gc_p, p, SDB_GC, 0);
    /* nobody's */
    if (!err) err = deal(t, &shares, wait_h, SDB_STACK_UNKNOWN, SDB_GVL_WAIT, 0);
    if (!err) err = deal(t, &shares, blocked_h, SDB_STACK_UNKNOWN, SDB_BLOCKED, 0);
    if (!err) err = deal(t, &shares, gc_h, SDB_STACK_UNKNOWN, SDB_GC, 0);
    if (!err) err = deal(t, &shares, run_h, SDB_STACK_UNKNOWN, SDB_RUNNING, 0);
    if (!err) err = deal(t, &shares, worked, step->unseen_stack, step->unseen_state, 0);
    if (!err && idle) err = sdb_thread_push(t, idle * 1000, SDB_STACK_UNKNOWN, SDB_UNKNOWN, 0, 0);
    /* S's: last the state it was seen in */
    if (!err && step->s_state != SDB_BLOCKED) err = deal(t, &shares, blocked_s, s, SDB_BLOCKED, 0);
    if (!err && step->s_state != SDB_GVL_WAIT) err = deal(t, &shares, wait_s, s, SDB_GVL_WAIT, 0);
    if (!err && step->s_state == SDB_GC) err = deal(t, &shares, run_s, s, SDB_RUNNING, 0);
    if (!err) err = deal(t, &shares, gc_s, s, SDB_GC, step->s_state == SDB_GC ? own : 0);
    if (!err && step->s_state != SDB_GC)
        err = deal(t, &shares, run_s, s, SDB_RUNNING, step->s_state == SDB_RUNNING ? own : 0);
    if (!err && step->s_state == SDB_GVL_WAIT) err = deal(t, &shares, wait_s, s, SDB_GVL_WAIT, own);
    if (!err && step->s_state == SDB_BLOCKED)
        err = deal(t, &shares, blocked_s, s, SDB_BLOCKED, own);
    return err;
}
