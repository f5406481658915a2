# fish completion of memtrace-valgrind(1). A test compares it with `memtrace-valgrind --help`.

# The options of a program behind them are its own.
function __memtrace_valgrind_options
    not string match -qv -- '-*' (commandline -poc)[2..]
end

complete -c memtrace-valgrind -n __memtrace_valgrind_options -s q -l quiet -d 'Say less'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -s v -l verbose -d 'Say more'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -s h -l help -d 'List the options'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l version -d 'Print the version'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l tool -xa 'memcheck' -d 'The only one there is'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l leak-check -xa 'no summary yes full' -d 'What is said of leaks'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l show-leak-kinds -xa 'definite indirect possible reachable all none' -d 'Kinds that are shown'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l errors-for-leak-kinds -xa 'definite indirect possible reachable all none' -d 'Kinds that are errors'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l show-reachable -xa 'yes no' -d 'Show every kind'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l show-possibly-lost -xa 'yes no' -d 'Show what is possibly lost'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l show-mismatched-frees -xa 'yes no' -d 'Tell of mismatched frees'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l leak-resolution -xa 'low med high' -d 'Frames that make two stacks one'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l leak-check-heuristics -xa 'stdstring length64 newarray multipleinheritance gobject gslice all none' -d 'Interior pointers that count'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l num-callers -x -d 'Frames that are shown'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l show-below-main -xa 'yes no' -d 'The frames that run main too'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l suppressions -rF -d 'Leaks to pass over'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l default-suppressions -xa 'yes no' -d 'Those of the C and C++ runtime'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l gen-suppressions -xa 'no all' -d 'Write suppressions'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l error-exitcode -x -d 'Exit status where there are errors'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l log-file -rF -d 'Where the report goes'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l log-fd -x -d 'Where the report goes'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l xml -xa 'yes no' -d 'An XML report'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l xml-file -rF -d 'Where the XML goes'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l xml-fd -x -d 'Where the XML goes'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l xml-user-comment -x -d 'Text in the XML'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l trace-children -xa 'yes no' -d 'Programs that it starts'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l trace-children-skip -x -d 'But not these: patterns of files'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l trace-children-skip-by-arg -x -d 'But not these: patterns of arguments'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -l child-silent-after-fork -xa 'yes no' -d 'Say nothing of forked children'
complete -c memtrace-valgrind -n __memtrace_valgrind_options -xa '(__fish_complete_command)'
