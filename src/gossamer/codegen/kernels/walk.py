"""The walker: the one function that Python calls. It runs the commands of a program with a team of threads."""

from __future__ import annotations

from string import Template
from typing import Literal

from gossamer.codegen.spec import KernelSpec
from gossamer.programs import team
from gossamer.records import record
from gossamer.targets import Target

PAUSES = 80
"""Turns of waiting before a thread yields: 16 each of 1, 2, 4, 8 and 16 pauses, some 10 us in all. Fewer, and a thread
that waits for another's few microseconds gives its slice away to another process; more, and two threads on one CPU
crawl."""

# Commands are three words: kernel, arguments, whether a barrier follows.
#
# Threads meet by counting arrivals; the last sets the count to zero and moves the generation on, for which the others
# wait. Who waits pauses, longer each time, and then gives the CPU away at every turn, so that more threads than CPUs
# come to an end too; the time that this takes is added up, for programs/throttle.py. A run always ends with a barrier:
# when thread 0 returns, all work is done and nobody reads the commands any more.

_TEXT = Template("""\
$declare_pause

define internal i64 @now(ptr %team) nounwind noinline {
entry:
  %time = alloca { i64, i64 }
  %clock_at = getelementptr i8, ptr %team, i64 $clock_at
  %clock = load ptr, ptr %clock_at
  $ask_clock
  ret i64 %now
}

define internal void @yield(ptr %team) nounwind noinline {
entry:
  %yield_at = getelementptr i8, ptr %team, i64 $yield_at
  %function = load ptr, ptr %yield_at
  %ignored = call $convention i32 %function()
  ret void
}

define internal void @pause(i64 %turn) nounwind noinline {
entry:
  %shift = lshr i64 %turn, 4
  %times = shl i64 1, %shift
  br label %again
again:
  %done = phi i64 [ 0, %entry ], [ %more, %again ]
  $pause
  %more = add i64 %done, 1
  %enough = icmp uge i64 %more, %times
  br i1 %enough, label %end, label %again
end:
  ret void
}

define internal void @barrier(ptr %team, i64 %nt) nounwind noinline {
entry:
  %arrived_at = getelementptr i8, ptr %team, i64 $arrived_at
  %generation_at = getelementptr i8, ptr %team, i64 $generation_at
  %generation = load atomic i64, ptr %generation_at monotonic, align 8
  %before = atomicrmw add ptr %arrived_at, i64 1 acq_rel
  %arrived = add i64 %before, 1
  %last = icmp eq i64 %arrived, %nt
  br i1 %last, label %open, label %wait
open:
  store atomic i64 0, ptr %arrived_at monotonic, align 8
  %following = add i64 %generation, 1
  store atomic i64 %following, ptr %generation_at release, align 8
  ret void
wait:
  %turn = phi i64 [ 0, %entry ], [ %next_turn, %paused ]
  %seen = load atomic i64, ptr %generation_at acquire, align 8
  %opened = icmp ne i64 %seen, %generation
  br i1 %opened, label %end, label %closed
closed:
  %long = icmp uge i64 %turn, $pauses
  br i1 %long, label %stall, label %paused
paused:
  call void @pause(i64 %turn)
  %next_turn = add i64 %turn, 1
  br label %wait
stall:
  %since = call i64 @now(ptr %team)
  br label %stalled
stalled:
  call void @yield(ptr %team)
  %seen_then = load atomic i64, ptr %generation_at acquire, align 8
  %opened_then = icmp ne i64 %seen_then, %generation
  br i1 %opened_then, label %count, label %stalled
count:
  %until = call i64 @now(ptr %team)
  %time = sub i64 %until, %since
  %waited_at = getelementptr i8, ptr %team, i64 $waited_at
  %so_far = atomicrmw add ptr %waited_at, i64 %time monotonic
  br label %end
end:
  ret void
}

$define_look
define internal void @walk(ptr %commands, i64 %count, ptr %team, i64 %tid, i64 %nt) nounwind noinline {
entry:$look_first
  %alone = icmp eq i64 %nt, 1
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %command, label %end
command:
  %number = phi i64 [ 0, %entry ], [ %next, %after ]
  %kernel_at = getelementptr [3 x i64], ptr %commands, i64 %number
  %arguments_at = getelementptr i64, ptr %kernel_at, i64 1
  %barrier_at = getelementptr i64, ptr %kernel_at, i64 2
  %kernel = load ptr, ptr %kernel_at
  %arguments = load ptr, ptr %arguments_at
  %barrier = load i64, ptr %barrier_at
  call void %kernel(ptr %arguments, i64 %tid, i64 %nt)
  %next = add i64 %number, 1
  %is_last = icmp eq i64 %next, %count
  %free = icmp eq i64 %barrier, 0
  %goes_on = xor i1 %is_last, true
  %passes = and i1 %free, %goes_on
  %skip = or i1 %alone, %passes
  br i1 %skip, label %after, label %meet
meet:
  call void @barrier(ptr %team, i64 %nt)
  br label %after
after:$look_again
  br i1 %is_last, label %end, label %command
end:
  ret void
}

define $convention i64 @k(ptr %call) nounwind {
entry:
  $load_call
  %ticket_at = getelementptr i8, ptr %team, i64 $ticket_at
  %commands_at = getelementptr i8, ptr %team, i64 $commands_at
  %count_at = getelementptr i8, ptr %team, i64 $count_at
  %leads = icmp eq i64 %tid, 0
  br i1 %leads, label %lead, label %attend
lead:
  %alone = icmp eq i64 %nt, 1
  br i1 %alone, label %run, label %announce
announce:
  store ptr %commands, ptr %commands_at
  store i64 %count, ptr %count_at
  store atomic i64 %ticket, ptr %ticket_at release, align 8
  br label %run
run:
  call void @walk(ptr %commands, i64 %count, ptr %team, i64 0, i64 %nt)
  ret i64 %ticket
attend:
  %handled = phi i64 [ %ticket, %entry ], [ %handled, %idle ], [ %posted, %work ]
  %turn = phi i64 [ 0, %entry ], [ %next_turn, %idle ], [ 0, %work ]
  %posted = load atomic i64, ptr %ticket_at acquire, align 8
  %is_new = icmp ne i64 %posted, %handled
  br i1 %is_new, label %work, label %wait
wait:
  %weary = icmp sge i64 %turn, %patience
  br i1 %weary, label %leave, label %wait_on
wait_on:
  %next_turn = add i64 %turn, 1
  %long = icmp uge i64 %turn, $pauses
  br i1 %long, label %give_way, label %rest
give_way:
  call void @yield(ptr %team)
  br label %idle
rest:
  call void @pause(i64 %turn)
  br label %idle
idle:
  br label %attend
work:
  %their_commands = load ptr, ptr %commands_at
  %their_count = load i64, ptr %count_at
  call void @walk(ptr %their_commands, i64 %their_count, ptr %team, i64 %tid, i64 %nt)
  br label %attend
leave:
  ret i64 %handled
}
""")

# What the timed form has besides: thread 0 writes down the time before the first command, and after each when its
# barrier is passed. The others of its team may be inside the plain form meanwhile.
_LOOK = Template("""
define internal void @look(i64 %number, ptr %team, i64 %tid) nounwind noinline {
entry:
  %leads = icmp eq i64 %tid, 0
  br i1 %leads, label %look, label %end
look:
  %now = call i64 @now(ptr %team)
  %times_at = getelementptr i8, ptr %team, i64 $times_at
  %times = load ptr, ptr %times_at
  %time_at = getelementptr i64, ptr %times, i64 %number
  store i64 %now, ptr %time_at
  br label %end
end:
  ret void
}
""")
_CALL_LOOK = Template("\n  call void @look(i64 $number, ptr %team, i64 %tid)")

_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"),
}

# clock_gettime(which, &time): seconds and nanoseconds. QueryPerformanceCounter(&time): ticks.
_ASK_CLOCK = {
    "": Template("""\
%which_at = getelementptr i8, ptr %team, i64 $which_at
  %which = load i32, ptr %which_at
  %ignored = call i32 %clock(i32 %which, ptr %time)
  %nanoseconds_at = getelementptr i8, ptr %time, i64 8
  %seconds = load i64, ptr %time
  %nanoseconds = load i64, ptr %nanoseconds_at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %nanoseconds"""),
    "win64": Template("""\
%ignored = call win64cc i32 %clock(ptr %time)
  %now = load i64, ptr %time"""),
}


@record(frozen=True)
class WalkSpec(KernelSpec):
    """``i64 k(ptr call)``: the words of ``call`` are team, commands, count, tid, nt, ticket and patience.

    (For seven arguments Python takes five times as long as for one, and small models feel it.)

    Thread 0 announces run ``ticket`` to its team, takes its part in it and returns when all is done. The others enter
    with the last ticket that they know, take part in every later run, and return the last ticket once ``patience``
    turns of waiting have brought no other.
    """

    convention: Literal["", "win64"] = ""
    """How Python calls it, where that is not how kernels call each other: on Windows, they keep to System V."""

    timed: bool = False
    """Whether thread 0 looks at the clock after every command: `Team.run` says where it writes what it sees."""

    @property
    def parts(self) -> tuple[str, ...]:
        return ("walk", "timed" * self.timed)

    @property
    def variant(self) -> str:
        return self.convention

    def emit(self, target: Target) -> str:
        declare_pause, pause = _PAUSE[target.triple.partition("-")[0]]
        return _TEXT.substitute(
            declare_pause=declare_pause,
            pause=pause,
            convention={"": "ccc", "win64": "win64cc"}[self.convention],
            pauses=PAUSES,
            ask_clock=_ASK_CLOCK[self.convention].substitute(which_at=team.WHICH_CLOCK),
            load_call=_load_call(),
            ticket_at=team.TICKET,
            commands_at=team.COMMANDS,
            count_at=team.COUNT,
            arrived_at=team.ARRIVED,
            generation_at=team.GENERATION,
            waited_at=team.WAITED,
            yield_at=team.YIELD,
            clock_at=team.CLOCK,
            define_look=_LOOK.substitute(times_at=team.TIMES) if self.timed else "",
            look_first=_CALL_LOOK.substitute(number=0) if self.timed else "",
            look_again=_CALL_LOOK.substitute(number="%next") if self.timed else "",
        )


def _load_call() -> str:
    lines = []
    for number, (name, type) in enumerate(team.CALL.items()):
        lines.append(f"%{name}_word = getelementptr i64, ptr %call, i64 {number}")
        lines.append(f"%{name} = load {type}, ptr %{name}_word")
    return "\n  ".join(lines)
