/* SPDX-License-Identifier: MIT
 * What overhead_cases and the tool that reads its profiles both know. */
#ifndef PLIANT_TOOLS_BENCH_OVERHEAD_CASES_H
#define PLIANT_TOOLS_BENCH_OVERHEAD_CASES_H

/* Each statement runs so often, so often again, and twice as often. */
enum { CASE_ITERATIONS = 1000 };

/* The profile of pass 0, 1, 2 of a case has this number: each pass is between two marks, and what
 * comes before a mark is a profile too. */
#define CASE_PROFILE(number, pass) (6 * (number) + 2 * (pass) + 2)

#endif
