# Flags of every target of the project; a target takes them by linking pliant_flags.
add_library(pliant_flags INTERFACE)
target_compile_options(pliant_flags INTERFACE -Wall -Wextra -Werror -fno-omit-frame-pointer)
target_compile_definitions(pliant_flags INTERFACE _GNU_SOURCE)
target_include_directories(pliant_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
if(PLIANT_SANITIZE)
  target_compile_options(pliant_flags INTERFACE -fsanitize=${PLIANT_SANITIZE})
  target_link_options(pliant_flags INTERFACE -fsanitize=${PLIANT_SANITIZE})
endif()
