/* SPDX-License-Identifier: MIT
 *
 * stop.c - see stop.h.
 *
 * Runs on: offline
 */
#include "log/stop.h"

_Thread_local const int *sdb_stop_flag;
