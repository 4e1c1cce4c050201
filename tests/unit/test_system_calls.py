"""The filters of system calls, run instruction by instruction."""

import struct

import pytest

from minifuse.runtime import system_calls


def result(text, architecture, number, first=0):
    """What a program returns for a call, by the meaning of its three instructions."""
    program = [struct.unpack_from("<HBBI", text, 8 * k) for k in range(len(text) // 8)]
    at, word = 0, 0
    while True:
        code, yes, no, value = program[at]
        at += 1
        if code == system_calls.LOAD_WORD:
            word = {0: number, 4: architecture, 16: first}[value]
        elif code == system_calls.JUMP_IF_EQUAL:
            at += yes if word == value else no
        else:
            return value


@pytest.mark.parametrize("machine", system_calls.NEEDED)
def test_what_is_needed_is_allowed_and_nothing_else(machine):
    own, text = system_calls.AUDIT_ARCH[machine], system_calls.program_of_needed(machine)
    allowed = {number for number in range(600) if result(text, own, number) == system_calls.ALLOW}
    assert allowed == set(system_calls.NEEDED[machine].values())
    assert result(text, 0x40000003, 0) == system_calls.KILL  # 32-bit calls have other numbers


@pytest.mark.parametrize("machine", system_calls.OUTSIDE)
def test_what_leads_outside_is_taken_and_nothing_else(machine):
    own, text = system_calls.AUDIT_ARCH[machine], system_calls.program_of_inside(machine)
    taken = {number for number in range(600) if result(text, own, number) != system_calls.ALLOW}
    socket = system_calls.SOCKET[machine]
    assert taken == {*system_calls.OUTSIDE[machine].values(), socket}
    kinds = [kind for kind in range(46) if result(text, own, socket, kind) == system_calls.ALLOW]
    assert kinds == [system_calls.AF_UNIX]
    assert result(text, 0x40000003, 0) == system_calls.KILL
