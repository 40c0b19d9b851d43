/* SPDX-License-Identifier: MIT
 *
 * layout.c - compares the table's row for the running Ruby (layout_table.c) with what calibration measured.
 * Versions that the table does not list are refused with words.
 *
 * Runs on: any Ruby thread, GVL
 */
#include "vm/layout.h"
#include "vm/layout_fields.h"

#include "error.h"
#include "vm/protect.h"

#include <ruby.h>
#include <ruby/version.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct field {
    const char *name;
    size_t at;
    bool measured;
};

#define FIELD(words, member, measured) {words, offsetof(struct sdb_layout, member), measured},
static const struct field fields[] = {SDB_LAYOUT_FIELDS(FIELD)};
#undef FIELD
enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };
_Static_assert(sizeof(struct sdb_layout) == FIELD_COUNT * sizeof(uint32_t),
               "every field of struct sdb_layout is in SDB_LAYOUT_FIELDS");

/* guarded by the GVL; only tests set it */
static struct {
    bool on;
    uint32_t value;
} forced[FIELD_COUNT][2];

static uint32_t
field_get(const struct sdb_layout *layout, const struct field *field)
{
    uint32_t value;
    memcpy(&value, (const char *)layout + field->at, sizeof(value));
    return value;
}

static void
apply_forced(struct sdb_layout *layout, bool measured)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (forced[i][measured].on) {
            memcpy((char *)layout + fields[i].at, &forced[i][measured].value, sizeof(uint32_t));
        }
    }
}

/* Whether ZJIT compiles, into the VALUE at `on`; unchanged where there is none. */
static VALUE
ask_zjit(VALUE on)
{
    VALUE vm = rb_path2class("RubyVM");
    ID zjit = rb_intern("ZJIT"), enabled = rb_intern("enabled?");
    if (!rb_const_defined_at(vm, zjit)) {
        return Qnil;
    }
    VALUE module = rb_const_get_at(vm, zjit);
    if (rb_respond_to(module, enabled)) {
        *(VALUE *)on = rb_funcall(module, enabled, 0);
    }
    return Qnil;
}

static bool
zjit_is_on(void)
{
    VALUE on = Qfalse;
    return sdb_protect(ask_zjit, (VALUE)&on, NULL) && RTEST(on);
}

const struct sdb_layout *
sdb_layout_table(char reason[SDB_REASON_BYTES])
{
    if (strcmp(ruby_engine, "ruby") != 0) {
        snprintf(reason, SDB_REASON_BYTES, "%s is not CRuby", ruby_engine);
        return NULL;
    }
    /* Of the running libruby, not of the headers that this file was compiled with. */
    char version[16];
    snprintf(version, sizeof(version), "%d.%d", ruby_api_version[0], ruby_api_version[1]);
    const struct sdb_layout *found = sdb_layout_for(version);
    if (!found) {
        /* From 4.1 on ZJIT keeps frames on the native stack, where no scanner of VM stacks finds them. */
        snprintf(reason, SDB_REASON_BYTES,
                 "Ruby %s is not one of the versions known to this sdb (%s)%s", ruby_version,
                 SDB_LAYOUT_VERSIONS,
                 zjit_is_on() ? "; and ZJIT is on, whose frames may be on the native stack" : "");
    }
    return found;
}

/* Both layouts as the proof sees them. */
static int
both_layouts(struct sdb_layout *table, struct sdb_layout *measured, char reason[SDB_REASON_BYTES])
{
    const struct sdb_layout *row = sdb_layout_table(reason);
    if (!row) {
        return SDB_ERR_UNSUPPORTED;
    }
    *table = *row;
    apply_forced(table, false);
    memset(measured, 0, sizeof(*measured));
    int err = sdb_calibrate(measured, reason);
    if (err) {
        return err;
    }
    apply_forced(measured, true);
    return 0;
}

int
sdb_layout_prove(struct sdb_layout *out, char reason[SDB_REASON_BYTES])
{
    struct sdb_layout table, measured;
    int err = both_layouts(&table, &measured, reason);
    if (err) {
        return err;
    }
    size_t used = 0;
    for (size_t i = 0; i < FIELD_COUNT && used < SDB_REASON_BYTES; i++) {
        uint32_t a = field_get(&table, &fields[i]), b = field_get(&measured, &fields[i]);
        if (fields[i].measured && a != b) {
            used += (size_t)snprintf(reason + used, SDB_REASON_BYTES - used,
                                     "%s%s: table %u, measured %u", used ? "; " : "",
                                     fields[i].name, a, b);
        }
    }
    if (used) {
        return SDB_ERR_UNSUPPORTED;
    }
    *out = table;
    return 0;
}

bool
sdb_layout_force(const char *field, bool measured, uint32_t value)
{
    if (!field) {
        memset(forced, 0, sizeof(forced));
        return true;
    }
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (strcmp(fields[i].name, field) == 0) {
            forced[i][measured].on = true;
            forced[i][measured].value = value;
            return true;
        }
    }
    return false;
}

int
sdb_layout_each(sdb_layout_visit *visit, void *data, char reason[SDB_REASON_BYTES])
{
    struct sdb_layout table, measured;
    int err = both_layouts(&table, &measured, reason);
    if (err) {
        return err;
    }
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        visit(fields[i].name, field_get(&table, &fields[i]), field_get(&measured, &fields[i]),
              fields[i].measured, data);
    }
    return 0;
}
