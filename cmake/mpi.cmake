# The MPI that describes the interface and runs the tests. libpliant.so itself is not linked to it:
# pliant_mpi_headers gives the headers only, pliant_mpi also the library (for test programs).
find_program(PLIANT_MPICC_PATH NAMES ${PLIANT_MPICC} REQUIRED)
execute_process(COMMAND ${PLIANT_MPICC_PATH} -show OUTPUT_VARIABLE mpicc_show
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(mpi_flags UNIX_COMMAND "${mpicc_show}")
set(mpi_include_flags ${mpi_flags})
list(FILTER mpi_include_flags INCLUDE REGEX "^-I")
set(mpi_link_flags ${mpi_flags})
list(FILTER mpi_link_flags INCLUDE REGEX "^-(L|l|Wl,)")
list(TRANSFORM mpi_include_flags REPLACE "^-I" "" OUTPUT_VARIABLE mpi_include_dirs)

add_library(pliant_mpi_headers INTERFACE)
target_include_directories(pliant_mpi_headers SYSTEM INTERFACE ${mpi_include_dirs})
# As libraries, since they must come behind the objects. Our own objects may refer to MPI by weak
# symbols only, for which a linker does not keep a library by itself.
add_library(pliant_mpi INTERFACE)
target_link_libraries(pliant_mpi INTERFACE pliant_mpi_headers -Wl,--push-state,--no-as-needed
                                           ${mpi_link_flags} -Wl,--pop-state)
find_program(PLIANT_MPIEXEC mpiexec.mpich NAMES mpiexec.mpich mpiexec.hydra mpiexec REQUIRED)
