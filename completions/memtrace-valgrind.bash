# bash completion of memtrace-valgrind(1): options with a =, then a program and its own. A test
# compares it with `memtrace-valgrind --help`.

_memtrace_valgrind() {
    local cur prev words cword split
    _init_completion -n = || return
    local i
    for ((i = 1; i < cword; i++)); do
        if [[ ${words[i]} != -* ]]; then
            _command_offset "$i"
            return
        fi
    done
    local value=${cur#*=}
    case $cur in
        --tool=*) COMPREPLY=($(compgen -W 'memcheck' -- "$value")) ;;
        --leak-check=*) COMPREPLY=($(compgen -W 'no summary yes full' -- "$value")) ;;
        --leak-resolution=*) COMPREPLY=($(compgen -W 'low med high' -- "$value")) ;;
        --show-leak-kinds=* | --errors-for-leak-kinds=*)
            local before=
            [[ $value == *,* ]] && before=${value%,*},
            COMPREPLY=($(compgen -P "$before" -W 'definite indirect possible reachable all none' -- "${value##*,}")) ;;
        --leak-check-heuristics=*)
            local heuristics=
            [[ $value == *,* ]] && heuristics=${value%,*},
            COMPREPLY=($(compgen -P "$heuristics" -W 'stdstring length64 newarray multipleinheritance gobject gslice all none' -- "${value##*,}")) ;;
        --gen-suppressions=*) COMPREPLY=($(compgen -W 'no all' -- "$value")) ;;
        --show-reachable=* | --show-possibly-lost=* | --show-mismatched-frees=* | --default-suppressions=* | --xml=* | \
            --show-below-main=* | --trace-children=* | --child-silent-after-fork=*)
            COMPREPLY=($(compgen -W 'yes no' -- "$value")) ;;
        --suppressions=* | --log-file=* | --xml-file=*)
            cur=$value
            _filedir ;;
        --*=*) ;;
        -*)
            COMPREPLY=($(compgen -W '--quiet --verbose --tool= --leak-check= --show-leak-kinds=
                --errors-for-leak-kinds= --show-reachable= --show-possibly-lost= --show-mismatched-frees= --leak-resolution= --leak-check-heuristics=
                --num-callers= --show-below-main= --suppressions= --default-suppressions= --gen-suppressions=
                --error-exitcode= --log-file= --log-fd= --xml= --xml-file= --xml-fd=
                --xml-user-comment= --trace-children= --trace-children-skip=
                --trace-children-skip-by-arg= --child-silent-after-fork= --help --version' -- "$cur"))
            [[ ${COMPREPLY-} == *= ]] && compopt -o nospace ;;
        *) COMPREPLY=($(compgen -c -- "$cur")) ;;
    esac
} &&
    complete -F _memtrace_valgrind memtrace-valgrind
