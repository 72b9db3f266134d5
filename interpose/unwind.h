/* SPDX-License-Identifier: MIT
 * The only place that includes libunwind. */
#ifndef PLIANT_INTERPOSE_UNWIND_H
#define PLIANT_INTERPOSE_UNWIND_H

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#endif
