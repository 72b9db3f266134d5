/* SPDX-License-Identifier: MIT
 * Switches for negative controls. In libpliant-test.so (built with PLIANT_TEST_CONTROLS) the
 * variable PLIANT_TEST_OFF lists, with commas, mechanisms that are switched off; a test then
 * requires that the answer is wrong. In libpliant.so PL_OFF() is the constant false. */
#ifndef PLIANT_INTERPOSE_CONTROLS_H
#define PLIANT_INTERPOSE_CONTROLS_H

#include <stdbool.h>

#ifdef PLIANT_TEST_CONTROLS

#define PL_CONTROLS(CONTROL)                                                                       \
    CONTROL(arrays)    /* distributed and large replicated objects are moved */                    \
    CONTROL(pointers)  /* pointers are translated, not copied as bits */                           \
    CONTROL(offsets)   /* ... object and offset separately */                                      \
    CONTROL(end)       /* the end of an object is a place of its own */                            \
    CONTROL(stack)     /* words of the stack are carried over */                                   \
    CONTROL(registers) /* ... of the callee-saved registers */                                     \
    CONTROL(data)      /* ... of static data */                                                    \
    CONTROL(identity)  /* pointers count as changed by what they point to, not by their bits */    \
    CONTROL(zerofill)  /* allocations of the program are cleared */                                \
    CONTROL(scratch)   /* a trial writes to scratch files */                                       \
    CONTROL(drain)     /* messages left by a failed trial are received */

#define PL_CONTROL_NAME(name) PL_CONTROL_##name,
typedef enum pl_control { PL_CONTROLS(PL_CONTROL_NAME) PL_CONTROL_COUNT } pl_control_t;
#undef PL_CONTROL_NAME

/* Is it listed in PLIANT_TEST_OFF? The variable is read at the first call, names that do not exist
 * are logged. Safe inside malloc. */
bool pl_controls_off(pl_control_t control);

#define PL_OFF(name) pl_controls_off(PL_CONTROL_##name)

#else
#define PL_OFF(name) false
#endif

#endif
