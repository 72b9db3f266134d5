# Puts the variables' list and the version into the manual page.
execute_process(COMMAND ${PLIANT} options --man OUTPUT_VARIABLE OPTIONS
                COMMAND_ERROR_IS_FATAL ANY)
configure_file(${INPUT} ${OUTPUT} @ONLY)
