# bash completion of memtrace(1). A test compares it with `memtrace COMMAND --help`.

# The position of the program behind `memtrace run`, or nothing while it is not typed.
_memtrace_program_index() {
    local i
    for ((i = 2; i <= cword; i++)); do
        case ${words[i]} in
            --) echo $((i + 1)); return ;;
            -o | --output | --library) ((++i)) ;;
            -*) ;;
            *) echo "$i"; return ;;
        esac
    done
}

_memtrace() {
    local cur prev words cword split options='' program
    _init_completion -s || return
    local commands='run report dump info pack'

    if ((cword == 1)); then
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W '--help --version' -- "$cur"))
        else
            COMPREPLY=($(compgen -W "$commands" -- "$cur"))
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

    case $prev in
        --format) COMPREPLY=($(compgen -W 'text json csv mtrace' -- "$cur")); return ;;
        --debug-dir | --sysroot) _filedir -d; return ;;
        -o | --output | --library) _filedir; return ;;
        --from | --to | --thread | --match | --top) return ;;
    esac
    $split && return

    case ${words[1]} in
        run) options='--help --output' ;;
        report) options='--help --format' ;;
        dump) options='--help' ;;
        info) options='--help' ;;
        pack) options='--help --output' ;;
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$cur"))
    else
        _filedir mtr
    fi
} &&
    complete -F _memtrace memtrace
