# fish completion of memtrace(1). A test compares it with `memtrace COMMAND --help`.

# Which command is on the line; behind `run PROGRAM` it is the program's line.
function __memtrace_command
    set -l words (commandline -poc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end
function __memtrace_no_command
    test (count (commandline -poc)) -eq 1
end

complete -c memtrace -f
complete -c memtrace -n __memtrace_no_command -a run -d 'Trace a program'
complete -c memtrace -n __memtrace_no_command -a report -d 'Where the memory went'
complete -c memtrace -n __memtrace_no_command -a dump -d 'Every event in order'
complete -c memtrace -n __memtrace_no_command -a info -d 'What was traced, and what is missing'
complete -c memtrace -n __memtrace_no_command -a pack -d 'Make a raw trace small'
complete -c memtrace -n __memtrace_no_command -l version -d 'Print the version'
complete -c memtrace -n __memtrace_no_command -s h -l help -d 'Explain the commands'
