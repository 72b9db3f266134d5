/* SPDX-License-Identifier: MIT
 * void engine_point(void): calls engine_arrive(frame) with struct pl_frame on the stack, like the
 * generated stubs of the collectives. */
        .text
        .globl  engine_point
        .type   engine_point, @function
engine_point:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        pushq   %rbx
        .cfi_def_cfa_offset 24
        .cfi_offset 3, -24
        pushq   %r12
        .cfi_def_cfa_offset 32
        .cfi_offset 12, -32
        pushq   %r13
        .cfi_def_cfa_offset 40
        .cfi_offset 13, -40
        pushq   %r14
        .cfi_def_cfa_offset 48
        .cfi_offset 14, -48
        pushq   %r15
        .cfi_def_cfa_offset 56
        .cfi_offset 15, -56
        subq    $8, %rsp
        .cfi_def_cfa_offset 64
        movq    %rsp, %rdi
        call    engine_arrive@PLT
        addq    $8, %rsp
        .cfi_def_cfa_offset 56
        popq    %r15
        .cfi_def_cfa_offset 48
        .cfi_restore 15
        popq    %r14
        .cfi_def_cfa_offset 40
        .cfi_restore 14
        popq    %r13
        .cfi_def_cfa_offset 32
        .cfi_restore 13
        popq    %r12
        .cfi_def_cfa_offset 24
        .cfi_restore 12
        popq    %rbx
        .cfi_def_cfa_offset 16
        .cfi_restore 3
        popq    %rbp
        .cfi_def_cfa_offset 8
        .cfi_restore 6
        ret
        .cfi_endproc
        .size   engine_point, .-engine_point
        .section .note.GNU-stack,"",@progbits
