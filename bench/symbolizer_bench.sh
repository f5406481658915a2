#!/bin/sh
# How long N addresses of one file take: our symbolizer, binutils, elfutils, LLVM.
#
#   bench/symbolizer_bench.sh [BUILD_DIR [N [ROUNDS]]]
#
# Every tool is started once with all N addresses (random ones inside the file's
# functions), ROUNDS times in turn with the others; the median is printed, and
# how many times as long as ours it is. A tool that needs more than TIMEOUT
# seconds is asked once for a hundredth of the addresses, and multiplied.
#
# Files: one with symbols only (cc1plus or libLLVM), libc with its debug file
# from libc6-dbg, and a C++ library with DWARF (the tests' subject). A ratio
# below 1 means that another tool is faster than ours. A tool that fails is said
# to have failed, and then so has the bench: its exit status is 1.
set -eu
build=${1:-build}
count=${2:-20000}
rounds=${3:-3}
timeout=${TIMEOUT:-60}
result=0
ours=$build/tests/memtrace-symbolize
if [ ! -x "$ours" ]; then
  echo "symbolizer_bench: $ours is missing: cmake --build $build --target memtrace-symbolize" >&2
  exit 2
fi
llvm=$(command -v llvm-symbolizer || command -v llvm-symbolizer-14 || true)
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# random_addresses FILE-WITH-SYMBOLS: $count addresses inside functions, by a fixed seed.
random_addresses() {
  { nm -S --defined-only "$1"; nm -D -S --defined-only "$1"; } 2>/dev/null |
    awk 'NF == 4 && $3 ~ /[tTwWi]/ { print $1, $2 }' |
    python3 -c '
import random, sys
random.seed(1)
functions = [(int(a, 16), int(s, 16)) for a, s in map(str.split, sys.stdin)]
functions = [f for f in functions if f[1]]
for _ in range(int(sys.argv[1])):
    address, size = random.choice(functions)
    print("0x%x" % (address + random.randrange(size)))' "$2"
}

# run TOOL FILE INPUT: seconds on standard output; or false, and the tool is noted as slow when it
# took too long, else as failed.
run() {
  status=0
  begin=$(date +%s%N)
  case $1 in
    memtrace) timeout "$timeout" "$ours" "$2" ;;
    llvm-symbolizer) timeout "$timeout" "$llvm" --obj="$2" ;;
    addr2line) timeout "$timeout" addr2line -i -f -C -e "$2" ;;
    eu-addr2line) timeout "$timeout" eu-addr2line -i -f -C -e "$2" ;;
  esac <"$3" >"$directory/out" 2>/dev/null || status=$?
  end=$(date +%s%N)
  # eu-addr2line says 1 of an address without a line in a source, and goes on.
  if [ "$1" = eu-addr2line ] && [ "$status" -eq 1 ]; then status=0; fi
  # Each answers with a line for each address at least.
  if [ "$status" -eq 0 ] && [ "$(wc -l <"$directory/out")" -lt "$(wc -l <"$3")" ]; then
    status=1
  fi
  case $status in
    0) ;;
    124) : >"$directory/$1.slow"; return 1 ;;
    *) : >"$directory/$1.failed"; return 1 ;;
  esac
  awk -v ns=$((end - begin)) 'BEGIN { printf "%.3f\n", ns / 1e9 }'
}

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

measure() { # TITLE FILE FILE-WITH-SYMBOLS
  [ -e "$2" ] && [ -e "$3" ] || { echo "$1: $2 is not there, left out"; return 0; }
  random_addresses "$3" "$count" >"$directory/all"
  random_addresses "$3" $((count / 100)) >"$directory/few"
  tools="memtrace addr2line eu-addr2line"
  [ -z "$llvm" ] || tools="$tools llvm-symbolizer"
  for tool in $tools; do : >"$directory/$tool"; done
  round=0
  while [ "$round" -lt "$rounds" ]; do
    for tool in $tools; do
      [ ! -e "$directory/$tool.slow" ] && [ ! -e "$directory/$tool.failed" ] || continue
      run "$tool" "$2" "$directory/all" >>"$directory/$tool" || true
      if [ -e "$directory/$tool.slow" ]; then
        run "$tool" "$2" "$directory/few" >"$directory/seconds" || true
        awk '{ print $1 * 100 }' "$directory/seconds" >"$directory/$tool"
      fi
    done
    round=$((round + 1))
  done
  echo "$1: $count addresses, median of $rounds"
  base=$(median <"$directory/memtrace")
  for tool in $tools; do
    seconds=$(median <"$directory/$tool")
    mark=""
    [ ! -e "$directory/$tool.slow" ] || mark="  (from a hundredth of the addresses)"
    if [ -e "$directory/$tool.failed" ]; then
      seconds=failed
      result=1
    elif [ -z "$seconds" ]; then
      seconds="timed out"
    fi
    awk -v tool="$tool" -v s="$seconds" -v base="$base" -v mark="$mark" 'BEGIN {
      if (s + 0 == 0) printf "  %-16s %s\n", tool, s
      else if (base + 0 == 0) printf "  %-16s %8.3f s%s\n", tool, s, mark
      else printf "  %-16s %8.3f s %8.1f x%s\n", tool, s, s / base, mark }'
    rm -f "$directory/$tool.slow" "$directory/$tool.failed"
  done
}

libc=$(ldconfig -p | awk '/libc\.so\.6 .*x86-64/ { print $NF; exit }')
id=$(readelf -n "$libc" 2>/dev/null | awk '/Build ID/ { print $3; exit }')
big=$(ls -d /usr/lib/gcc/*/*/cc1plus /usr/lib/*/libLLVM-*.so.1 2>/dev/null | tail -1)
measure "symbols only, $big" "$big" "$big"
measure "DWARF in C, $libc" "$libc" \
  "/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug"
subject=$build/tests/symbolizer/libsubject_gcc.so
measure "DWARF in C++ by gcc, $subject" "$subject" "$subject"
subject=$build/tests/symbolizer/libsubject_clang.so
measure "DWARF in C++ by clang, $subject" "$subject" "$subject"
exit "$result"
