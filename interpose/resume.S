/* SPDX-License-Identifier: MIT
 * _Noreturn void pl_resume(void *frame, const void *copy, size_t bytes, int rc)
 *
 * Puts a saved stack back, beginning with the frame of the stub that was interrupted, and returns
 * rc from that stub. Uses no stack above `frame` while it copies. */
        .text
        .globl  pl_resume
        .hidden pl_resume
        .type   pl_resume, @function
pl_resume:
        movq    %rdi, %rsp
        movl    %ecx, %eax
        movq    %rdx, %rcx
        cld
        rep movsb
        addq    $8, %rsp
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        ret
        .size   pl_resume, .-pl_resume
        .section .note.GNU-stack,"",@progbits
