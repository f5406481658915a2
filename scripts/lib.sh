# Shared by the scripts of this directory, which source it: where the tree is,
# how they talk, and the Debian packages of scripts/packages.
# shellcheck shell=bash

MEMTRACE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SCRIPT_NAME=scripts/$(basename "$0")

# A terminal gets bold step lines; a pipe or a log gets plain ones.
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  BOLD=$'\e[1m' PLAIN=$'\e[0m'
else
  BOLD='' PLAIN=''
fi

# usage: the head comment of the script, which is its help.
usage() { awk 'NR == 1 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "$0"; }

say() { printf '%s==> %s%s\n' "$BOLD" "$*" "$PLAIN"; }

# fail CAUSE [CURE...]: the cause on the first line, the cures under it.
fail() {
  printf '%s: %s\n' "$SCRIPT_NAME" "$1" >&2
  shift
  if (($#)); then printf '  %s\n' "$@" >&2; fi
  exit 1
}

# package_sections: the sections of scripts/packages, in one line.
package_sections() {
  local sections
  mapfile -t sections < <(sed -n 's/^\([a-z]*\):.*/\1/p' "$MEMTRACE_ROOT/scripts/packages")
  echo "${sections[*]}"
}

# packages_of SECTION...: names, one a line.
packages_of() {
  awk -v wanted=" $* " '
    { sub(/#.*/, ""); gsub(/[ \t]/, "") }
    /:$/ { section = substr($0, 1, length($0) - 1); next }
    $0 != "" && index(wanted, " " section " ") { print }
  ' "$MEMTRACE_ROOT/scripts/packages"
}

# missing_packages NAME...: those that dpkg does not have installed.
missing_packages() {
  local installed name
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for name in "$@"; do
    # A nodejs that is not Debian's has npm inside and conflicts with the package.
    if [[ $name == npm ]] && command -v npm >/dev/null; then continue; fi
    grep -qxF "installed $name" <<<"$installed" || echo "$name"
  done
}

# Whether somebody sits there who can be asked for a password. Steps below have another standard input.
if [[ -t 0 ]]; then MAY_ASK=1; else MAY_ASK=0; fi

# as_root COMMAND...: by sudo where we are not root. Asks for a password only on a terminal.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif ((MAY_ASK)); then
    sudo -- "$@"
  else
    sudo -n -- "$@"
  fi
}

# become_root PACKAGE...: that as_root will work, before anything is begun; else how to install them.
become_root() {
  local by_hand
  ((EUID != 0)) || return 0
  by_hand="as root: apt-get install --no-install-recommends $*"
  if ! command -v sudo >/dev/null; then
    fail "Debian packages are missing, and this is neither root nor is there sudo" "$by_hand"
  fi
  sudo -n true 2>/dev/null && return
  if ((!MAY_ASK)); then
    fail "Debian packages are missing, and sudo wants a password but there is no terminal" "$by_hand"
  fi
  say "apt-get runs by sudo, which asks for your password"
  sudo -v || fail "Debian packages are missing, and sudo refused: it said why" "$by_hand"
}

# apt_get LOG ARGS...: what it says goes to LOG, in English, as tell_progress reads it.
apt_get() {
  local log=$1
  shift
  as_root env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a \
    apt-get -o DPkg::Lock::Timeout=300 -q "$@" >"$log" 2>&1 </dev/null
}

# tell_progress LOG: what `apt-get install` has said in LOG so far: how much it will be, as soon as that
# is known, and on a terminal how far it is, every 15 seconds. Runs until it is killed.
tell_progress() {
  local log=$1 packages='' line now said=-15
  SECONDS=0
  # An interrupt ends the script but not what it has in the background.
  while kill -0 $$ && sleep 1 >/dev/null; do
    if [[ -z $packages ]]; then
      packages=$(sed -n 's/^.* upgraded, \([0-9]*\) newly installed.*/\1/p' "$log" || true)
      line=$(grep -E '^(Need to get|After this operation)' "$log" | sed 's/\.$//' | paste -sd';' || true)
      if [[ -z $packages || $line != *After* ]]; then
        packages=''
        continue
      fi
      printf '    %s packages with what they need. %s.\n' "$packages" "${line//;/. }"
      said=$SECONDS
    elif [[ -t 1 ]] && ((SECONDS - said >= 15)); then
      now=$(awk '/^Get:/ { ++got } /^Unpacking / { ++unpacked } /^Setting up / { ++ready }
        END { printf "fetched %d, unpacked %d, ready %d", got, unpacked, ready }' "$log")
      printf '    %s of %s packages\n' "$now" "$packages"
      said=$SECONDS
    fi
  done </dev/null 2>/dev/null
}

# fetch_packages NAME...: says why when it fails. That the lists could not be
# read is told only then: a broken third-party source often does not matter.
fetch_packages() {
  local logs status=0 what='reading the package lists' teller
  logs=$(mktemp -d)
  if apt_get "$logs/update" update; then
    what='installing the packages'
    tell_progress "$logs/install" &
    teller=$!
    apt_get "$logs/install" install -y --no-install-recommends "$@" || status=$?
    kill "$teller" 2>/dev/null || true
    wait "$teller" 2>/dev/null || true
  else
    status=$?
  fi
  if ((status)); then
    {
      printf '%s: %s failed: apt-get: exit status %d. It said:\n' "$SCRIPT_NAME" "$what" "$status"
      cat "$logs/update" "$logs/install" 2>/dev/null | grep -E '^(W|E|Err|sudo)[: ]' | head -n 6 |
        sed 's/^/  /' || true
      tail -q -n 10 "$logs/install" 2>/dev/null | sed 's/^/  /' || true
    } >&2
  fi
  rm -rf "$logs"
  return "$status"
}

# install_packages SECTION...: what is missing, and nothing when nothing is.
install_packages() {
  local wanted missing
  mapfile -t wanted < <(packages_of "$@")
  ((${#wanted[@]})) || fail "no packages in section(s) '$*' of scripts/packages"
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    local system='this system'
    if [[ -r /etc/os-release ]]; then
      system=$(. /etc/os-release && printf '%s' "${PRETTY_NAME:-$system}")
    fi
    fail "$system has no apt-get: only Debian and its derivatives are set up automatically" \
      "install what scripts/packages lists by the means of your system, then build by hand:" \
      "cmake --preset release -DMEMTRACE_TESTS=OFF -DMEMTRACE_BENCHES=OFF && cmake --build --preset release"
  fi
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  if ((${#missing[@]} == 0)); then
    say "Debian packages ($*): all ${#wanted[@]} are installed"
    return
  fi
  become_root "${missing[@]}"
  say "Debian packages ($*): installing ${#missing[@]} of ${#wanted[@]}: ${missing[*]}"
  fetch_packages "${missing[@]}" || exit 1
}

# As many compilers as there are processors, but not more than memory allows:
# a heavy C++ file takes about 1 GiB.
build_jobs() {
  local processors memory_kib jobs
  processors=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null || true)
  jobs=$((${memory_kib:-1048576} / 1048576))
  ((jobs < 1)) && jobs=1
  echo $((jobs < processors ? jobs : processors))
}

# tell_what_is_left_out BUILD_DIRECTORY: a build without node or npm's packages works, but for one format.
tell_what_is_left_out() {
  local why
  why=$(sed -n 's/^MEMTRACE_HTML_LEFT_OUT:INTERNAL=//p' "$1/CMakeCache.txt")
  [[ -n $why ]] || return 0
  say "left out: memtrace report --format html, for $why"
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    echo "    with it: apt-get install nodejs npm, then $SCRIPT_NAME again"
  fi
}

# A step whose output matters only when it fails.
quietly() {
  local what=$1 log status=0
  shift
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  if ((status)); then
    {
      printf '%s: %s failed: %s: exit status %d. Its last lines:\n' \
        "$SCRIPT_NAME" "$what" "$*" "$status"
      tail -n 40 "$log" | sed 's/^/  /'
    } >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}
