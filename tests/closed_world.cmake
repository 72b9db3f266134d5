# The MPI wrappers: the generator, and what libpliant.so exports.
add_executable(closed_world_program closed_world_program.c)
target_link_libraries(closed_world_program PRIVATE pliant_mpi)
set_target_properties(closed_world_program PROPERTIES C_EXTENSIONS ON)
# MPI_STATUSES_IGNORE is a pointer to nothing, which gcc takes for a small array.
target_compile_options(closed_world_program PRIVATE -Wall -Wextra -Wno-stringop-overflow)

add_test(NAME unit.closed_world_generator
         COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/closed_world_generator.py)
set_tests_properties(unit.closed_world_generator PROPERTIES LABELS unit TIMEOUT 120)

# The wrappers alone, linked in front of MPI, with fakes for what is behind the border.
foreach(program closed_world_program closed_world_handles)
  add_executable(${program}_faked ${program}.c closed_world_fakes.c)
  target_link_libraries(${program}_faked PRIVATE pliant_calls pliant_common pliant_border
                                                 pliant_mpi)
  target_compile_options(${program}_faked PRIVATE -Wno-stringop-overflow)
  set_target_properties(${program}_faked PROPERTIES C_EXTENSIONS ON)
endforeach()
# 1000 generations need more than the 2046 communicators MPICH has; windows are slow on 3 ranks.
set(generations_1 1000)
set(generations_3 25)
foreach(ranks 1 3)
  add_test(NAME preload.closed_world_handles.${ranks}
           COMMAND ${PLIANT_MPIEXEC} -n ${ranks} $<TARGET_FILE:closed_world_handles_faked>
                   ${generations_${ranks}})
  foreach(setting NONE FAKE_WORLD FAKE_TRIAL "FAKE_WORLD FAKE_TRIAL")
    string(REPLACE " " "_" name ${setting})
    add_test(NAME preload.closed_world_wrappers.${name}.${ranks}
             COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/closed_world_same.py
                     ${PLIANT_MPIEXEC} ${ranks} $<TARGET_FILE:closed_world_program>
                     $<TARGET_FILE:closed_world_program_faked> ${setting})
    list(APPEND faked preload.closed_world_wrappers.${name}.${ranks})
  endforeach()
  list(APPEND faked preload.closed_world_handles.${ranks})
endforeach()
set_tests_properties(${faked} PROPERTIES LABELS preload TIMEOUT 120 PROCESSORS 2 ENVIRONMENT
                                         MPIR_CVAR_POLLS_BEFORE_YIELD=1)

if(TARGET pliant_preload)
  add_test(NAME preload.closed_world
           COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/closed_world.py
                   --library $<TARGET_FILE:pliant_preload> --program $<TARGET_FILE:closed_world_program>
                   --calls ${PROJECT_SOURCE_DIR}/interpose/calls --mpicc ${PLIANT_MPICC_PATH}
                   --mpiexec ${PLIANT_MPIEXEC})
  set_tests_properties(preload.closed_world PROPERTIES LABELS preload TIMEOUT 300 PROCESSORS 2)
endif()
