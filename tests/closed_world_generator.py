#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The generator of the MPI wrappers, on a tiny header."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CALLS = pathlib.Path(__file__).resolve().parent.parent / "interpose" / "calls"

HEADER = """
typedef int MPI_Comm; typedef int MPI_Datatype; typedef int MPI_Request; typedef long MPI_Count;
typedef int MPI_Win; typedef struct { int MPI_SOURCE; } MPI_Status;
int MPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
    __attribute__((pointer_with_type_tag(MPI, 1, 3)));
int MPI_Ibcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
               MPI_Request *request);
int MPI_Long(int a, int b, int c, int d, int e, int f, int g, int h, MPI_Comm comm);
int MPI_Ilong(int a, int b, int c, int d, int e, int f, int g, int h, MPI_Comm comm,
              MPI_Request *request);
int MPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm);
int MPI_Ibcast_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                 MPI_Request *request);
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm);
double MPI_Wtick(void);
"""

FACTS = """
MPI_Bcast coll root=root same=count:datatype reads=one:buffer:count:datatype
MPI_Ibcast request
MPI_Long coll
MPI_Ilong request
MPI_Comm_dup create makes
MPI_Wtick pass # a constant
MPI_Not_here local
"""


class Generator(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.output = self.folder / "generated"

    def generate(self, header=HEADER, facts=FACTS, libc="malloc # of the heap\n"):
        for name, text in (("mpi.h", header), ("calls.txt", facts), ("libc.txt", libc)):
            (self.folder / name).write_text(text)
        return subprocess.run(
            [sys.executable, "-B", CALLS / "generate.py", "--compiler", f"cc -I{self.folder}",
             "--facts", self.folder / "calls.txt", "--libc", self.folder / "libc.txt",
             "--output", self.output], capture_output=True, text=True, timeout=60, check=False)

    def text(self, name):
        return (self.output / name).read_text()

    def refused(self, words, **changes):
        done = self.generate(**changes)
        self.assertEqual(done.returncode, 1)
        self.assertIn(words, done.stderr)
        self.assertFalse(self.output.exists(), "nothing is written after an error")

    def test_tables_hold_the_names_of_the_header(self):
        done = self.generate()
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = [line for line in self.text("calls.def").splitlines() if line.startswith("CALL")]
        self.assertEqual(calls, [
            "CALL(Bcast, coll)", "CALL(Ibcast, request)", "CALL(Long, coll)",
            "CALL(Ilong, request)", "CALL(Bcast_c, coll)", "CALL(Ibcast_c, request)",
            "CALL(Comm_dup, create)", "CALL(Wtick, pass)"])
        self.assertIn("#pragma weak PMPI_Wtick\n", self.text("weak.h"))
        exports = self.text("exports.map")
        for name in ("MPI_Bcast", "MPI_Bcast_c", "MPI_Comm_dup", "malloc"):
            self.assertIn(f" {name};", exports)
        for name in ("MPI_Wtick", "MPI_Not_here", "PMPI"):
            self.assertNotIn(name, exports)

    def test_large_counts_take_the_line_of_the_base(self):
        self.generate()
        self.assertIn("PMPI_Ibcast_c(buffer, count, datatype, root, real_comm, &pl_request)",
                      self.text("wrappers.c"))

    def test_wrappers_translate_and_register(self):
        self.generate()
        wrappers = self.text("wrappers.c")
        self.assertIn("PMPI_Comm_dup(real_comm, newcomm)", wrappers)
        self.assertIn("pl_made_comm(real_comm, *newcomm, RETURN_ADDRESS)", wrappers)
        self.assertIn("pl_arrive(PL_CALL_Bcast, comm, rc)", wrappers)

    def test_stubs_forward_arguments_and_keep_registers(self):
        self.generate()
        (self.folder / "program.c").write_text("""
            #include <stdio.h>
            __thread void *pl_frame;
            int MPI_Long(int, int, int, int, int, int, int, int, int);
            int MPI_Bcast(void *, int, int, int, int);
            int pl_wrap_MPI_Bcast(void *p, int a, int b, int c, int d)
            { return p && a * 1000 + b * 100 + c * 10 + d == 1234; }
            int pl_wrap_MPI_Bcast_c(void) { return 0; }
            int pl_wrap_MPI_Long(int a, int b, int c, int d, int e, int f, int g, int h, int i)
            {
                char aligned[16] __attribute__((aligned(16)));
                int ok = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i == 285;
                __asm__ volatile("movaps %%xmm0, %0" : "=m"(aligned)); /* faults if misaligned */
                __asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15");
                return ok && ((unsigned long *)pl_frame)[2] == 77; /* r14 */
            }
            int main(void)
            {
                int byte = MPI_Bcast(&byte, 1, 2, 3, 4);
                register long r14 __asm__("r14") = 77;
                __asm__ volatile("" : "+r"(r14));
                int rc = MPI_Long(1, 2, 3, 4, 5, 6, 7, 8, 9);
                __asm__ volatile("" : "+r"(r14));
                printf("%d %d %ld\\n", byte, rc, r14);
                return 0;
            }""")
        program = self.folder / "program"
        subprocess.run(["cc", "-O1", "-o", program, self.folder / "program.c",
                        self.output / "stubs.S"], check=True, timeout=60)
        done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(done.stdout, "1 1 77\n")

    def test_a_function_without_a_line_is_named(self):
        self.refused("not in the table: MPI_New",
                     header=HEADER + "int MPI_New(MPI_Comm comm);\n")

    def test_wrong_tables_are_refused(self):
        for line, words in (("MPI_Bcast coll root=boss", "has no parameter 'boss'"),
                            ("MPI_Bcast coll colour=red", "unknown key 'colour'"),
                            ("MPI_Bcast odd", "unknown class 'odd'"),
                            ("MPI_Bcast", "expected NAME CLASS"),
                            ("MPI_Bcast block", "needs a reason"),
                            ("MPI_Bcast hand", "needs file="),
                            ("MPI_Bcast local makes", "0 parameters point to a handle")):
            with self.subTest(line):
                facts = "\n".join([line, *FACTS.strip().splitlines()[1:]])
                self.refused(words, facts=facts)
        self.refused("twice", facts=FACTS + "MPI_Bcast coll\n")
        self.refused("there is no MPI_Icomm_dup",
                     facts=FACTS.replace("dup create makes", "dup coll"))

    def test_a_missing_header_is_an_error(self):
        self.refused("mpi.h", header="#error no mpi.h here\n")
        self.refused("no prototypes", header="\n")


if __name__ == "__main__":
    unittest.main()
