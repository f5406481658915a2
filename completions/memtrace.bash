# bash completion of memtrace(1). A test compares it with `memtrace COMMAND --help`.

# The position of the program behind `memtrace run`, or nothing while it is not typed.
_memtrace_program_index() {
    local i
    for ((i = 2; i <= cword; i++)); do
        case ${words[i]} in
            --) echo $((i + 1)); return ;;
            -o | --output | --stacks | --children | --leak-check | --faults | --sample-bytes | --max-bytes | \
                --keep | --cross-check | --sample-interval | --library | --finish) ((++i)) ;;
            -*) ;;
            *) echo "$i"; return ;;
        esac
    done
}

# The names in a list that is separated by commas: the last one is being typed.
_memtrace_list() {
    local typed=''
    [[ $cur != *,* ]] || typed=${cur%,*},
    COMPREPLY=($(compgen -P "$typed" -W "$1" -- "${cur##*,}"))
    compopt -o nospace 2>/dev/null
}

_memtrace() {
    local cur prev words cword split program options=''
    _init_completion -s || return

    if ((cword == 1)); then
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W '--help --version' -- "$cur"))
        else
            COMPREPLY=($(compgen -W 'run report rings leaks diff trend pages dump info pack compare check import' -- "$cur"))
        fi
        return
    fi

    if [[ ${words[1]} == run ]]; then
        program=$(_memtrace_program_index)
        if [[ -n $program ]] && ((cword >= program)); then
            _command_offset "$program"
            return
        fi
    fi

    # What stands behind `check --run -- ` is the program's.
    if [[ ${words[1]} == check ]]; then
        local i
        for ((i = 2; i < cword; i++)); do
            [[ ${words[i]} == -- ]] || continue
            [[ " ${words[*]:2:i-2} " == *' --run '* ]] && _command_offset $((i + 1))
            return
        done
        case $prev in
            -f | --format) COMPREPLY=($(compgen -W 'text json junit sarif gitlab' -- "$cur")); return ;;
            --fail-on) _memtrace_list 'definite indirect possible reachable unfreed all none'; return ;;
            --default-suppressions) COMPREPLY=($(compgen -W 'yes no' -- "$cur")); return ;;
            --missing-evidence) COMPREPLY=($(compgen -W 'fail report' -- "$cur")); return ;;
            --traces | --source-root) _filedir -d; return ;;
            --suppressions | --gen-suppressions | --baseline) _filedir; return ;;
            --programs | --tolerance | --max-leaked | --max-peak | --max-allocations | --max-growth | --max-invalid-frees | \
            --max-mismatched-frees) return ;;
        esac
    fi

    if [[ ${words[1]} == pages ]]; then
        case $prev in
            -f | --format) COMPREPLY=($(compgen -W 'text csv json html svg raw' -- "$cur")); return ;;
            --table) COMPREPLY=($(compgen -W 'regions mappings units alerts' -- "$cur")); return ;;
        esac
    fi

    case $prev in
        --by)
            COMPREPLY=($(compgen -W 'live live-blocks peak allocated allocations temporary definite indirect possible reachable' \
                -- "$cur"))
            return ;;
        --per) COMPREPLY=($(compgen -W 'run second allocation' -- "$cur")); return ;;
        -f | --format)
            if [[ ${words[1]} == diff ]]; then
                COMPREPLY=($(compgen -W 'text json csv html' -- "$cur"))
            elif [[ ${words[1]} == @(trend|rings) ]]; then
                COMPREPLY=($(compgen -W 'text json csv' -- "$cur"))
            elif [[ ${words[1]} == compare ]]; then
                COMPREPLY=($(compgen -W 'text json html' -- "$cur"))
            else
                COMPREPLY=($(compgen -W 'text json csv mtrace valgrind valgrind-xml massif dhat folded pprof speedscope callgrind heaptrack sqlite html' -- "$cur"))
            fi
            return ;;
        --measure)
            if [[ ${words[1]} == rings ]]; then
                COMPREPLY=($(compgen -W 'live blocks allocated allocations peak peak-blocks wasted temporary resident peak-resident text data bss static' -- "$cur"))
            else
                COMPREPLY=($(compgen -W 'live blocks allocated allocations peak peak-blocks wasted temporary resident peak-resident' -- "$cur"))
            fi
            return ;;
        --sort)
            COMPREPLY=($(compgen -W 'total wasted live blocks peak allocations frees temporary caller' \
                -- "$cur"))
            return ;;
        --timeline-by) COMPREPLY=($(compgen -W 'site thread module folder' -- "$cur")); return ;;
        --table | --tables)
            _memtrace_list 'summary leaks growing sites growth faults pressure invalid-frees temporary lifetimes reallocs sizes modules threads mappings timeline exchanges site-sizes timeline-by-site timeline-by-thread timeline-by-module timeline-by-folder processes executables'
            return ;;
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
        --stacks) COMPREPLY=($(compgen -W 'all off' -- "$cur")); return ;;
        --faults) COMPREPLY=($(compgen -W 'auto user snapshots off' -- "$cur")); return ;;
        --leak-check) COMPREPLY=($(compgen -W 'exit exit-early both off' -- "$cur")); return ;;
        --keep) COMPREPLY=($(compgen -W 'oldest newest' -- "$cur")); return ;;
        --children) COMPREPLY=($(compgen -W 'follow off' -- "$cur")); return ;;
        --debug-dir | --sysroot | --finish | --symbol-cache | --index) _filedir -d; return ;;
        -o | --output | --library | --suppressions | --system-map) _filedir; return ;;
        --start | --depth | --at | --from | --to | --level | --executable | --thread | --match | --function | --file | --module | --size | --lifetime | --age | --top | --width | --jobs | --sample-bytes | --max-bytes | \
            --cross-check | --sample-interval | --min | --label | --last | --nights | --chance | --timeout | --why | --who-points-at) return ;;
    esac
    $split && return

    local times='--at --from --to'
    local blocks='--thread --match --function --file --module --size --lifetime --age'
    case ${words[1]} in
        run)
            options='--help --output --stacks --free-stacks --children --leak-check --faults --sample-bytes --max-bytes --keep --cross-check
                --sample-interval --no-samples --library --finish --quiet --verbose' ;;
        report)
            options="--help --format --output $times --series --executable $blocks --timeline-by --top --sort --measure --table
                --tables --scan --show-leak-kinds --leak-resolution --leak-check-heuristics --leader
                --suppressions --suppress-children --graph --why --who-points-at
                --full --color --width --jobs --debug-dir --sysroot --debuginfod --symbol-cache --index" ;;
        rings)
            options="--help --measure --start --depth --top --full --no-static --format --output $times $blocks
                --color --width --debug-dir --sysroot --debuginfod" ;;
        import)
            options='--help --system-map --output --quiet' ;;
        diff)
            options="--help --by --per --min $times $blocks --exit-code --format --output --top --full --color
                --width --debug-dir --sysroot --debuginfod" ;;
        pages)
            options='--help --all --maps --snapshot --format --table --output --no-counts --no-compare --top --color --width' ;;
        trend)
            options='--help --add --label --by --per --min --match --last --nights --chance --exit-code
                --format --output --top --full --color --width --debug-dir --sysroot --debuginfod' ;;
        check)
            options='--help --run --traces --programs --fail-on --suppressions --default-suppressions --gen-suppressions
                --baseline --update-baseline --tolerance --max-leaked --max-peak --max-allocations --max-invalid-frees
                --max-mismatched-frees
                --max-growth --missing-evidence --format --output --source-root --top --full --quiet
                --debug-dir --sysroot' ;;
        leaks) options="--help --output --show-leak-kinds --new --increased --changed $blocks --timeout --top --full" ;;
        dump) options='--help --output --from --to' ;;
        info) options='--help --debug-dir --sysroot' ;;
        pack) options='--help --output --level' ;;
        compare) options='--help --format --output --full --debug-dir --sysroot --debuginfod' ;;
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$cur"))
    elif [[ ${words[1]} == run ]]; then
        COMPREPLY=($(compgen -c -- "$cur"))
    elif [[ ${words[1]} == leaks ]]; then
        _pids
    elif [[ ${words[1]} == compare ]]; then
        _filedir '@(mtr|xml)'
    elif [[ ${words[1]} == import ]]; then
        [[ $cword == 2 ]] && COMPREPLY=($(compgen -W 'ftrace' -- "$cur")) || _filedir
    else
        _filedir mtr
    fi
} &&
    complete -F _memtrace memtrace
