/* SPDX-License-Identifier: MIT
 *
 * doctor.c - the native half of lib/sdb/doctor.rb: measured layout, ways to read memory, cost of a tick.
 *
 * Runs on: any Ruby thread, GVL
 */
#include "glue/doctor.h"

#include "core/safe_read.h"
#include "core/pacing.h"
#include "core/tick_cost.h"
#include "error.h"
#include "vm/layout.h"

#include <ruby/thread.h>

static VALUE
symbol(const char *name)
{
    return ID2SYM(rb_intern(name));
}

static void
add_row(const char *field, uint32_t table, uint32_t measured, bool compared, void *rows)
{
    VALUE row = rb_hash_new();
    rb_hash_aset(row, symbol("field"), rb_str_new_cstr(field));
    rb_hash_aset(row, symbol("table"), UINT2NUM(table));
    rb_hash_aset(row, symbol("measured"), compared ? UINT2NUM(measured) : Qnil);
    rb_hash_aset(row, symbol("compared"), compared ? Qtrue : Qfalse);
    rb_ary_push((VALUE)rows, row);
}

/* doctor_layout -> {rows: [{field:, table:, measured:, compared:}], reason: nil or String}: reason says why
 * this Ruby cannot be scanned. rows is empty when nothing could be measured. */
static VALUE
doctor_layout(VALUE self)
{
    char reason[SDB_REASON_BYTES] = "";
    struct sdb_layout proven;
    VALUE rows = rb_ary_new(), result = rb_hash_new();
    int err = sdb_layout_each(add_row, (void *)rows, reason);
    if (!err) {
        err = sdb_layout_prove(&proven, reason);
    }
    rb_hash_aset(result, symbol("rows"), rows);
    rb_hash_aset(result, symbol("reason"), err ? rb_str_new_cstr(reason) : Qnil);
    return result;
}

/* doctor_facts -> {safe_read: "process_vm_readv" | "/proc/self/mem" | "none", exact_states: bool} */
static VALUE
doctor_facts(VALUE self)
{
    VALUE result = rb_hash_new();
    /* Known already while recording; a probe must not run beside the scanner's reads. */
    if (sdb_safe_read_way() == SDB_SAFE_READ_NONE) {
        (void)sdb_safe_read_probe();
    }
    rb_hash_aset(result, symbol("safe_read"), rb_str_new_cstr(sdb_safe_read_way_name()));
#ifdef HAVE_RB_INTERNAL_THREAD_ADD_EVENT_HOOK
    rb_hash_aset(result, symbol("exact_states"), Qtrue);
#else
    rb_hash_aset(result, symbol("exact_states"), Qfalse);
#endif
    return result;
}

struct measurement {
    uint64_t budget_ns;
    struct sdb_tick_cost cost;
    int err;
};

static void *
measure_without_gvl(void *argument)
{
    struct measurement *m = argument;
    m->err = sdb_tick_cost_measure(m->budget_ns, &m->cost);
    return NULL;
}

/* doctor_tick_cost(seconds) -> {same_core_ns:, same_off_ns:, other_core_ns:, other_off_ns:, own_cpu_ns:, displaced_ns:,
 * cpus:, ticks:, disturbed:}, or a String with the reason. The two other_ are nil on one core; displaced_ns is what the
 * governor counts (core/pacing.h). Not interruptible. */
static VALUE
doctor_tick_cost(VALUE self, VALUE seconds)
{
    struct measurement m = {.budget_ns = (uint64_t)(NUM2DBL(seconds) * 1e9)};
    rb_thread_call_without_gvl(measure_without_gvl, &m, NULL, NULL);
    if (m.err) {
        return rb_str_new_cstr(sdb_error_text(m.err));
    }
    VALUE result = rb_hash_new();
    bool others = m.cost.cpus > 1;
    rb_hash_aset(result, symbol("same_core_ns"), LL2NUM(m.cost.same_core_ns));
    rb_hash_aset(result, symbol("same_off_ns"), LL2NUM(m.cost.same_off_ns));
    rb_hash_aset(result, symbol("other_core_ns"), others ? LL2NUM(m.cost.other_core_ns) : Qnil);
    rb_hash_aset(result, symbol("other_off_ns"), others ? LL2NUM(m.cost.other_off_ns) : Qnil);
    rb_hash_aset(result, symbol("own_cpu_ns"), ULL2NUM(m.cost.own_cpu_ns));
    rb_hash_aset(result, symbol("displaced_ns"), UINT2NUM(SDB_DISPLACED_NS));
    rb_hash_aset(result, symbol("cpus"), UINT2NUM(m.cost.cpus));
    rb_hash_aset(result, symbol("ticks"), UINT2NUM(m.cost.ticks));
    rb_hash_aset(result, symbol("disturbed"), m.cost.disturbed ? Qtrue : Qfalse);
    return result;
}

void
Init_sdb_doctor(VALUE module)
{
    rb_define_singleton_method(module, "doctor_layout", doctor_layout, 0);
    rb_define_singleton_method(module, "doctor_facts", doctor_facts, 0);
    rb_define_singleton_method(module, "doctor_tick_cost", doctor_tick_cost, 1);
}
