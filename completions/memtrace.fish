# fish completion of memtrace(1). A test compares it with `memtrace COMMAND --help`.

# Is one of these the command on the line? Not behind `run PROGRAM`, which is the program's.
function __memtrace_command
    set -l words (commandline -poc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end
function __memtrace_no_command
    test (count (commandline -poc)) -eq 1
end
function __memtrace_trace
    __memtrace_command report rings diff trend dump info pack compare check
end

# Is the program of `run` on the line already? Then the rest is its own.
set -g __memtrace_run_values -o --output --stacks --children --leak-check --faults --sample-bytes --max-bytes --keep --cross-check \
    --sample-interval --library --finish
function __memtrace_program
    set -l words (commandline -poc)
    __memtrace_command run; or return
    set -l i 3
    while test $i -le (count $words)
        if test "$words[$i]" = --
            return 0
        else if contains -- $words[$i] $__memtrace_run_values
            set i (math $i + 2)
        else if string match -q -- '-*' $words[$i]
            set i (math $i + 1)
        else
            return 0
        end
    end
    return 1
end
function __memtrace_run
    __memtrace_command run; and not __memtrace_program
end

complete -c memtrace -f
complete -c memtrace -n __memtrace_no_command -a run -d 'Run a program and trace its memory'
complete -c memtrace -n __memtrace_no_command -a report -d 'Where the memory of a traced program went'
complete -c memtrace -n __memtrace_no_command -a rings -d 'Memory by source folder, file and function'
complete -c memtrace -n __memtrace_no_command -a import -d 'A trace from the log of another tool'
complete -c memtrace -n __memtrace_no_command -a diff -d 'What changed from one run to another'
complete -c memtrace -n __memtrace_no_command -a trend -d 'Which call sites grow from night to night'
complete -c memtrace -n __memtrace_no_command -a pages -d 'The pages of processes'
complete -c memtrace -n __memtrace_no_command -a check -d 'A gate for tests: fail on leaks and limits'
complete -c memtrace -n __memtrace_no_command -a leaks -d 'Ask a running program for its leaks'
complete -c memtrace -n __memtrace_no_command -a dump -d 'Every event in order'
complete -c memtrace -n __memtrace_no_command -a info -d 'What was traced, and what is missing'
complete -c memtrace -n __memtrace_no_command -a pack -d 'Make a raw trace small'
complete -c memtrace -n __memtrace_no_command -a compare -d 'A trace beside what Valgrind found in another run'
complete -c memtrace -n __memtrace_no_command -l version -d 'Print the version'
complete -c memtrace -n __memtrace_no_command -s h -l help -d 'List the commands'
complete -c memtrace -n __memtrace_run -s h -l help -d 'Explain the options'
complete -c memtrace -n __memtrace_trace -s h -l help -d 'Explain the options'
complete -c memtrace -n __memtrace_trace -k -a '(__fish_complete_suffix .mtr)'

complete -c memtrace -n __memtrace_run -s o -l output -rF -d 'Where the trace goes'
complete -c memtrace -n __memtrace_run -l stacks -xa 'all off' -d 'Record stacks'
complete -c memtrace -n __memtrace_run -l children -xa 'follow off' -d 'Trace the processes it starts'
complete -c memtrace -n __memtrace_run -l faults -xa 'auto user snapshots off' -d 'How page faults are looked for'
complete -c memtrace -n __memtrace_run -l leak-check -xa 'exit exit-early both off' -d 'When memory is scanned for leaks'
complete -c memtrace -n __memtrace_run -l free-stacks -d 'Record the stack of every free too'
complete -c memtrace -n __memtrace_run -l sample-bytes -x -d 'Record one allocation in so many bytes, for estimates'
complete -c memtrace -n __memtrace_run -l max-bytes -x -d 'Stop recording at this length'
complete -c memtrace -n __memtrace_run -l keep -xa 'oldest newest' -d 'What a trace keeps when it is as long'
complete -c memtrace -n __memtrace_run -l cross-check -x -d 'Unwind every N-th stack with libunwind too'
complete -c memtrace -n __memtrace_run -l sample-interval -x -d 'How often memory is sampled from outside'
complete -c memtrace -n __memtrace_run -l no-samples -d 'Do not sample memory from outside'
complete -c memtrace -n __memtrace_run -l library -rF -d 'The libmemtrace.so to preload'
complete -c memtrace -n __memtrace_run -l finish -xa '(__fish_complete_directories)' -d 'Pack what an interrupted run left'
complete -c memtrace -n __memtrace_run -s q -l quiet -d 'No line at the end'
complete -c memtrace -n __memtrace_run -s v -l verbose -d 'Say what is done'
complete -c memtrace -n __memtrace_run -xa '(__fish_complete_command)'
complete -c memtrace -n __memtrace_program -xa '(__fish_complete_subcommand --fcs-skip=2 $__memtrace_run_values)'

complete -c memtrace -n '__memtrace_command report' -s f -l format -xa 'text json csv mtrace valgrind valgrind-xml massif dhat folded pprof speedscope callgrind heaptrack sqlite html' -d 'How it is written'
complete -c memtrace -n '__memtrace_command report' -s o -l output -rF -d 'Write to this file'
complete -c memtrace -n '__memtrace_command report rings diff' -l from -x -d 'Only blocks allocated from then on'
complete -c memtrace -n '__memtrace_command report rings diff' -l to -x -d 'Only blocks allocated until then'
complete -c memtrace -n '__memtrace_command report' -l executable -x -d 'Of several traces, the sites of this executable only'
complete -c memtrace -n '__memtrace_command report rings diff leaks' -l thread -x -d 'Only blocks of threads with this name or tid'
complete -c memtrace -n '__memtrace_command report rings diff leaks' -l match -x -d 'Only sites with a frame that matches'
complete -c memtrace -n '__memtrace_command report rings diff leaks' -l function -x -d 'Only sites with a frame of such a function'
complete -c memtrace -n '__memtrace_command report rings diff leaks' -l file -x -d 'Only sites with a frame in such a source file'
complete -c memtrace -n '__memtrace_command report rings diff leaks' -l module -x -d 'Only sites with a frame in such a module'
complete -c memtrace -n '__memtrace_command report rings diff leaks' -l size -x -d 'Only blocks of this size'
complete -c memtrace -n '__memtrace_command report rings diff leaks' -l lifetime -x -d 'Only blocks that lived so long'
complete -c memtrace -n '__memtrace_command report rings diff leaks' -l age -x -d 'Only blocks live at the end and so old'
complete -c memtrace -n '__memtrace_command report' -l timeline-by -xa 'site thread module folder' -d 'The heap over time by this'
complete -c memtrace -n '__memtrace_command report' -l top -x -d 'Rows of each table'
complete -c memtrace -n '__memtrace_command report' -l sort -xa 'total wasted live blocks peak allocations frees temporary caller' -d 'The column that sorts the allocators'
complete -c memtrace -n '__memtrace_command report' -l measure -xa 'live blocks allocated allocations peak peak-blocks wasted temporary resident peak-resident' -d 'What folded, pprof, speedscope, callgrind show of a site'
complete -c memtrace -n '__memtrace_command report' -l table -l tables -xa '(__fish_append , summary leaks growing sites growth faults pressure invalid-frees temporary lifetimes reallocs sizes modules threads mappings timeline exchanges site-sizes timeline-by-site timeline-by-thread timeline-by-module timeline-by-folder processes executables)' -d 'Sections of the text, or a table of CSV'
complete -c memtrace -n '__memtrace_command report' -l scan -xa last -d 'The memory scan whose leaks are shown'
complete -c memtrace -n '__memtrace_command report' -l show-leak-kinds -xa '(__fish_append , definite indirect possible reachable all none)' -d 'Kinds of leaks'
complete -c memtrace -n '__memtrace_command report' -l leak-resolution -xa 'low med high' -d 'Frames that make two stacks one'
complete -c memtrace -n '__memtrace_command report' -l leak-check-heuristics -xa '(__fish_append , stdstring length64 newarray multipleinheritance gobject gslice all none)' -d 'Interior pointers that count'
complete -c memtrace -n '__memtrace_command report' -l leader -xa 'address sequence code' -d 'Of a lost cycle the definite one'
complete -c memtrace -n '__memtrace_command report' -l suppressions -rF -d 'Leaks to count apart'
complete -c memtrace -n '__memtrace_command report' -l suppress-children -d 'And what only they lead to'
complete -c memtrace -n '__memtrace_command report' -l graph -d 'What keeps the heap, by root and by site'
complete -c memtrace -n '__memtrace_command report' -l why -x -d 'What keeps the blocks of a site'
complete -c memtrace -n '__memtrace_command report' -l who-points-at -x -d 'Every pointer into the block at an address'
complete -c memtrace -n '__memtrace_command report' -l full -d 'Every row, every frame, nothing shortened'
complete -c memtrace -n '__memtrace_command report' -l color -xa 'auto always never' -d Colours
complete -c memtrace -n '__memtrace_command report' -l width -x -d 'Columns of text'
complete -c memtrace -n '__memtrace_command report' -l jobs -x -d 'Threads that read the trace'
complete -c memtrace -n '__memtrace_command report' -l debug-dir -xa '(__fish_complete_directories)' -d 'Separate debug files are here as well'
complete -c memtrace -n '__memtrace_command report' -l sysroot -xa '(__fish_complete_directories)' -d 'The files of the traced machine are below here'
complete -c memtrace -n '__memtrace_command report' -l debuginfod -d 'Fetch missing debug files'
complete -c memtrace -n '__memtrace_command report' -l symbol-cache -xa '(__fish_complete_directories) off' -d 'Keep names here for the next report'
complete -c memtrace -n '__memtrace_command report rings diff' -l at -x -d 'The heap as it was at that instant'
complete -c memtrace -n '__memtrace_command report' -l series -d 'Each site over time'
complete -c memtrace -n '__memtrace_command report' -l index -xa '(__fish_complete_directories) off' -d 'Keep here what makes the next report of the trace fast'

complete -c memtrace -n '__memtrace_command pages' -s h -l help -d 'Explain the options'
complete -c memtrace -n '__memtrace_command pages' -l all -d 'Every process'
complete -c memtrace -n '__memtrace_command pages' -l maps -d 'A line for each mapping, with its page map'
complete -c memtrace -n '__memtrace_command pages' -l snapshot -x -d 'Of a trace: which'
complete -c memtrace -n '__memtrace_command pages' -s f -l format -xa 'text csv json html svg raw' -d 'How it is written'
complete -c memtrace -n '__memtrace_command pages' -l table -xa 'regions mappings units alerts' -d 'Of csv'
complete -c memtrace -n '__memtrace_command pages' -s o -l output -rF -d 'Write to this file'
complete -c memtrace -n '__memtrace_command pages' -l no-counts -d 'Do not ask how often each page is mapped'
complete -c memtrace -n '__memtrace_command pages' -l no-compare -d 'Do not read the contents of private copies'
complete -c memtrace -n '__memtrace_command pages' -l top -x -d 'Rows of executables and libraries'
complete -c memtrace -n '__memtrace_command pages' -l color -xa 'auto always never' -d Colours
complete -c memtrace -n '__memtrace_command pages' -l width -x -d 'Columns of text'
complete -c memtrace -n '__memtrace_command pages' -xa '(__fish_complete_pids)'
complete -c memtrace -n '__memtrace_command rings' -l measure -xa 'live blocks allocated allocations peak peak-blocks wasted temporary resident peak-resident text data bss static' -d 'What the tree is sorted by'
complete -c memtrace -n '__memtrace_command rings' -l start -x -d 'Only this folder, file or function'
complete -c memtrace -n '__memtrace_command rings' -l depth -x -d 'Levels below the start'
complete -c memtrace -n '__memtrace_command rings' -l top -x -d 'Rows below each row'
complete -c memtrace -n '__memtrace_command rings' -l full -d 'Every level, every row'
complete -c memtrace -n '__memtrace_command rings' -l no-static -d 'Without text, data and bss'
complete -c memtrace -n '__memtrace_command rings' -s f -l format -xa 'text json csv' -d 'How it is written'
complete -c memtrace -n '__memtrace_command rings' -s o -l output -rF -d 'Write to this file'
complete -c memtrace -n '__memtrace_command rings' -l color -xa 'auto always never' -d Colours
complete -c memtrace -n '__memtrace_command rings' -l width -x -d 'Columns of text'
complete -c memtrace -n '__memtrace_command rings' -l debug-dir -xa '(__fish_complete_directories)' -d 'Separate debug files are here as well'
complete -c memtrace -n '__memtrace_command rings' -l sysroot -xa '(__fish_complete_directories)' -d 'The files of the traced machine are below here'
complete -c memtrace -n '__memtrace_command rings' -l debuginfod -d 'Fetch missing debug files'

complete -c memtrace -n '__memtrace_command import' -s h -l help -d 'Explain the options'
complete -c memtrace -n '__memtrace_command import' -xa ftrace
complete -c memtrace -n '__memtrace_command import' -F
complete -c memtrace -n '__memtrace_command import' -l system-map -rF -d 'System.map, or a copy of /proc/kallsyms'
complete -c memtrace -n '__memtrace_command import' -s o -l output -rF -d 'Where the trace goes'
complete -c memtrace -n '__memtrace_command import' -s q -l quiet -d 'No line at the end'

complete -c memtrace -n '__memtrace_command diff trend' -l by -xa 'live live-blocks peak allocated allocations temporary definite indirect possible reachable' -d 'What is compared'
complete -c memtrace -n '__memtrace_command diff trend' -l per -xa 'run second allocation' -d 'Amounts of a run, or divided'
complete -c memtrace -n '__memtrace_command diff trend' -l min -x -d 'Least change that counts'
complete -c memtrace -n '__memtrace_command trend' -l match -x -d 'Only sites that match'
complete -c memtrace -n '__memtrace_command diff trend' -l exit-code -d 'Exit with 1 when a site grew'
complete -c memtrace -n '__memtrace_command diff' -s f -l format -xa 'text json csv html' -d 'How it is written'
complete -c memtrace -n '__memtrace_command trend' -s f -l format -xa 'text json csv' -d 'How it is written'
complete -c memtrace -n '__memtrace_command diff trend' -s o -l output -rF -d 'Write to this file'
complete -c memtrace -n '__memtrace_command diff trend' -l top -x -d 'Rows of each table'
complete -c memtrace -n '__memtrace_command diff trend' -l full -d 'Every row'
complete -c memtrace -n '__memtrace_command diff trend' -l color -xa 'auto always never' -d Colours
complete -c memtrace -n '__memtrace_command diff trend' -l width -x -d 'Columns of text'
complete -c memtrace -n '__memtrace_command diff trend' -l debug-dir -xa '(__fish_complete_directories)' -d 'Separate debug files are here as well'
complete -c memtrace -n '__memtrace_command diff trend' -l sysroot -xa '(__fish_complete_directories)' -d 'The files of the traced machine are below here'
complete -c memtrace -n '__memtrace_command diff trend' -l debuginfod -d 'Fetch missing debug files'
complete -c memtrace -n '__memtrace_command trend' -l add -d 'Append a night to the history'
complete -c memtrace -n '__memtrace_command trend' -l label -x -d 'What to call the night'
complete -c memtrace -n '__memtrace_command trend' -l last -x -d 'Only the last so many nights'
complete -c memtrace -n '__memtrace_command trend' -l nights -x -d 'Fewest nights that tell a trend'
complete -c memtrace -n '__memtrace_command trend' -l chance -x -d 'How often chance alone may do that'
complete -c memtrace -n '__memtrace_command check' -l run -d 'Run the program behind -- and check its traces'
complete -c memtrace -n '__memtrace_command check' -l traces -xa '(__fish_complete_directories)' -d 'With --run: keep the traces here'
complete -c memtrace -n '__memtrace_command check' -l programs -x -d 'Judge only these'
complete -c memtrace -n '__memtrace_command check' -l fail-on -xa '(__fish_append , definite indirect possible reachable unfreed all none)' -d 'Kinds of leaks that fail'
complete -c memtrace -n '__memtrace_command check' -l suppressions -rF -d 'Leaks to pass over'
complete -c memtrace -n '__memtrace_command check' -l default-suppressions -xa 'yes no' -d 'Pass over what the runtime keeps'
complete -c memtrace -n '__memtrace_command check' -l gen-suppressions -rF -d 'Write suppressions for what fails'
complete -c memtrace -n '__memtrace_command check' -l baseline -rF -d 'Leaks that are known'
complete -c memtrace -n '__memtrace_command check' -l update-baseline -d 'Make the baseline what is found now'
complete -c memtrace -n '__memtrace_command check' -l tolerance -x -d 'By how much a known leak may grow'
complete -c memtrace -n '__memtrace_command check' -l max-leaked -x -d 'Bytes that a process may leak'
complete -c memtrace -n '__memtrace_command check' -l max-peak -x -d 'Bytes that it may have live at once'
complete -c memtrace -n '__memtrace_command check' -l max-invalid-frees -x -d 'Invalid frees that it may have'
complete -c memtrace -n '__memtrace_command check' -l max-mismatched-frees -x -d 'Mismatched frees that it may have'
complete -c memtrace -n '__memtrace_command check' -l max-allocations -x -d 'How often it may allocate'
complete -c memtrace -n '__memtrace_command check' -l max-growth -x -d 'Bytes by which it may grow between phases'
complete -c memtrace -n '__memtrace_command check' -l missing-evidence -xa 'fail report' -d 'What traces that prove nothing do'
complete -c memtrace -n '__memtrace_command check' -s f -l format -xa 'text json junit sarif gitlab' -d 'How it is written'
complete -c memtrace -n '__memtrace_command check' -s o -l output -rF -d 'Write to this file'
complete -c memtrace -n '__memtrace_command check' -l source-root -xa '(__fish_complete_directories)' -d 'Where the sources were'
complete -c memtrace -n '__memtrace_command check' -l top -x -d 'Leaks that the text shows'
complete -c memtrace -n '__memtrace_command check' -l full -d 'Every leak, every frame'
complete -c memtrace -n '__memtrace_command check' -s q -l quiet -d 'Only the verdict'
complete -c memtrace -n '__memtrace_command check' -l debug-dir -xa '(__fish_complete_directories)' -d 'Separate debug files are here as well'
complete -c memtrace -n '__memtrace_command check' -l sysroot -xa '(__fish_complete_directories)' -d 'The files of the traced machine are below here'

complete -c memtrace -n '__memtrace_command leaks' -s h -l help -d 'Explain the options'
complete -c memtrace -n '__memtrace_command leaks' -xa '(__fish_complete_pids)'
complete -c memtrace -n '__memtrace_command leaks' -s o -l output -rF -d 'Where the report goes'
complete -c memtrace -n '__memtrace_command leaks' -l show-leak-kinds -xa '(__fish_append , definite indirect possible reachable all none)' -d 'Which leaks'
complete -c memtrace -n '__memtrace_command leaks' -l new -d 'Only leaks that the scan before had not'
complete -c memtrace -n '__memtrace_command leaks' -l increased -d 'Only leaks that have grown since'
complete -c memtrace -n '__memtrace_command leaks' -l changed -d 'Only leaks that have changed since'
complete -c memtrace -n '__memtrace_command leaks' -l timeout -x -d 'How long to wait for an answer'
complete -c memtrace -n '__memtrace_command leaks' -l top -x -d 'Records that are shown'
complete -c memtrace -n '__memtrace_command leaks' -l full -d 'Every record, every frame, nothing shortened'
complete -c memtrace -n '__memtrace_command dump' -s o -l output -rF -d 'Where the lines go'
complete -c memtrace -n '__memtrace_command dump' -l from -x -d 'Only events from this time on'
complete -c memtrace -n '__memtrace_command dump' -l to -x -d 'Only events up to this time'

complete -c memtrace -n '__memtrace_command info' -l debug-dir -xa '(__fish_complete_directories)' -d 'Separate debug files are here as well'
complete -c memtrace -n '__memtrace_command info' -l sysroot -xa '(__fish_complete_directories)' -d 'The files of the traced machine are below here'

complete -c memtrace -n '__memtrace_command pack' -s o -l output -rF -d 'Where the packed trace goes'
complete -c memtrace -n '__memtrace_command pack' -l level -x -d 'How hard zstd tries, 1 to 19'

complete -c memtrace -n '__memtrace_command compare' -k -a '(__fish_complete_suffix .xml)'
complete -c memtrace -n '__memtrace_command compare' -s f -l format -xa 'text json html' -d 'How it is written'
complete -c memtrace -n '__memtrace_command compare' -s o -l output -rF -d 'Write to this file'
complete -c memtrace -n '__memtrace_command compare' -l full -d 'Every frame of every stack'
complete -c memtrace -n '__memtrace_command compare' -l debug-dir -xa '(__fish_complete_directories)' -d 'Separate debug files are here as well'
complete -c memtrace -n '__memtrace_command compare' -l sysroot -xa '(__fish_complete_directories)' -d 'The files of the traced machine are below here'
complete -c memtrace -n '__memtrace_command compare' -l debuginfod -d 'Fetch missing debug files'
