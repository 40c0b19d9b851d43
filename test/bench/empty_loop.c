/* SPDX-License-Identifier: MIT
 *
 * empty_loop.c - the floor of every sampler: a thread that wakes each millisecond and does nothing. Prints the CPU
 * it used, ns a second. usage: empty_loop SECONDS
 */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static unsigned long
now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

int
main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    unsigned long begin = now_ns(CLOCK_MONOTONIC), next = begin,
                  cpu = now_ns(CLOCK_THREAD_CPUTIME_ID), ticks = 0;
    while (next - begin < seconds * 1e9) {
        next += 1000000;
        struct timespec t = {(time_t)(next / 1000000000ul), (long)(next % 1000000000ul)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        ticks++;
    }
    double took = (double)(now_ns(CLOCK_MONOTONIC) - begin) / 1e9;
    printf("%.0f %.0f\n", (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / took,
           (double)ticks / took);
    return 0;
}
