"""Holds the verdicts of the ways against each other, and prints them."""

import collections
import json
import os

from piece_runner import file_name

WAYS = ("preload", "run", "again")


def load(results, suite, piece, way):
    try:
        with open(os.path.join(results, suite.name, way, file_name(piece) + ".json")) as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def differences(plain, other):
    """[(test, verdict plain, verdict there)], the piece's own status among them."""
    found = []
    for test in sorted(plain["verdicts"].keys() | other["verdicts"].keys()):
        pair = plain["verdicts"].get(test, "absent"), other["verdicts"].get(test, "absent")
        if pair[0] != pair[1]:
            found.append((test, *pair))
    if plain["status"] != other["status"]:
        found.append(("(exit status)", plain["status"], other["status"]))
    return found


def counts(verdicts):
    tally = collections.Counter(verdicts.values())
    return " ".join(f"{tally[kind]} {kind}" for kind in ("pass", "fail", "skip") if tally[kind])


def print_piece(results, suite, piece):
    plain = load(results, suite, piece, "plain")
    line = f"{suite.name} {piece}: "
    if plain:
        line += f"{counts(plain['verdicts']) or 'nothing'} in {plain['seconds']} s"
    for way in WAYS:
        result = load(results, suite, piece, way)
        if not result:
            continue
        line += f"; {way} {result['seconds']} s, {result['traces']['count']} traces"
        for loss, files in result["traces"]["losses"].items():
            line += f"\n  {way}: {loss}: {'; '.join(files)}"
        for trace in result["traces"]["unreadable"]:
            line += f"\n  {way}: unreadable: {trace}"
        for test, here, there in differences(plain, result) if plain else ():
            line += f"\n  {way}: {test}: {here} plain, {there}"
    print(line, flush=True)


def print_suite(results, suite, pieces):
    """A Markdown row for each way. True if all is the same and nothing was lost."""
    same = True
    print("\n| suite | way | tests | pass | fail | skip | differ | processes | traces read | "
          "events in them | lost | seconds, plain |\n|---|---|---|---|---|---|---|---|---|---|---|---|")
    for way in WAYS:
        tests = collections.Counter()
        differ = processes = read = events = lost = 0
        seconds = plain_seconds = 0.0
        compared = 0
        for piece in pieces:
            plain, other = (load(results, suite, piece, name) for name in ("plain", way))
            if not plain or not other:
                continue
            compared += 1
            tests.update(other["verdicts"].values())
            differ += len(differences(plain, other))
            traces = other["traces"]
            processes += traces["count"]
            read += traces["read"]
            events += traces["events"]
            lost += sum(map(len, traces["losses"].values())) + len(traces["unreadable"])
            seconds += other["seconds"]
            plain_seconds += plain["seconds"]
        if not compared:
            continue
        if way != "again":
            same = same and differ == 0 and lost == 0
        print(f"| {suite.title()}, {compared} pieces | {way} | {sum(tests.values())} | "
              f"{tests['pass']} | {tests['fail']} | {tests['skip']} | {differ} | {processes} | "
              f"{read} | {events} | {lost} | {seconds:.0f}, {plain_seconds:.0f} |")
    return same
