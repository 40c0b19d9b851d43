/* SPDX-License-Identifier: MIT
 *
 * oomd_descriptor.h - may this descriptor, which somebody else opened, be touched at all?
 *
 * On a file system whose answers come from another process (FUSE, NFS, ...) fstat, read and even close wait
 * for that process, for ever if it likes. So the kind of file system is found out first, from numbers
 * in /proc that no file system is asked for; what is not known to be local is closed on a thread of its own.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_DESCRIPTOR_H
#define SDB_OOMD_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* true when fd is a readable regular file of min to max bytes on a local file system. sender: the process it
 * came from, whose mounts are looked at too; 0 for our own. Else false with words in *why; *hostile when an
 * honest process would not have such a descriptor. */
bool oomd_descriptor_usable(int fd, uint32_t sender, uint64_t max_bytes, const char **why,
                            bool *hostile);

/* Closes it without ever waiting for it. false when too many are waited for already: then it is leaked. */
bool oomd_descriptor_discard(int fd);

/* The kind of file system with that mount number in text of the form of /proc/PID/mountinfo; false when there is
 * none. kind: at most n - 1 bytes. */
bool oomd_mountinfo_find(const char *text, unsigned mount, char *kind, size_t n);

#endif
