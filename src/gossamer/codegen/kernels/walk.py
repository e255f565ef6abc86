"""The walker: the one function that Python calls. It runs the commands of a program with a team of threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from string import Template
from typing import Literal, get_args

from gossamer.codegen.spec import KernelSpec
from gossamer.programs import team
from gossamer.records import record
from gossamer.targets import Target

PAUSES = 80
"""Turns of waiting before a thread yields: 16 each of 1, 2, 4, 8 and 16 pauses, some 10 us in all. Fewer, and a thread
that waits for another's few microseconds gives its slice away to another process; more, and two threads on one CPU
crawl."""

LOOKING = 4000
"""What loops may cost until the clock is looked at once more: some nanoseconds (`Jump.cost`)."""

# Commands are three words: kernel, arguments, whether a barrier follows. Without a kernel it is a jump of one of the
# kinds of programs/team.py, `Jump`, and its words are the arguments. Where a byte decides that commands have
# written, threads meet first, so that all see the same.
#
# Where a loop goes back, thread 0 counts what a turn costs, looks at the clock now and then, and at the program's word
# for faults. When it is time to end, it says so before the threads meet, and all see that too. A loop has a barrier
# somewhere before it comes back, so nobody is late to look at either.
#
# Where threads part, thread 0 goes on as if it were alone, and the others wait for it where they join again. If its
# time is up meanwhile, all leave, and the run goes on with one thread, which stops where others should join it.
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

define internal i64 @jump(ptr %jump, i64 %following, ptr %team, i64 %tid, i64 %here, i64 %nt) nounwind noinline {
entry:
  $load_jump
  %ended_at = getelementptr i8, ptr %team, i64 $ended_at
  %next_at = getelementptr i8, ptr %team, i64 $next_at
  %alone_at = getelementptr i8, ptr %team, i64 $alone_at
  %leads = icmp eq i64 %tid, 0
  %is_back = icmp eq i64 %kind, $back
  %by_flag = icmp uge i64 %kind, $by_flag
  br i1 %by_flag, label %ask, label %other
other:
  %parts = icmp eq i64 %kind, $part
  %stays = and i1 %parts, %leads
  %aim = select i1 %stays, i64 %following, i64 %target
  %joins = icmp eq i64 %kind, $join
  br i1 %joins, label %join, label %away
away:
  ret i64 %aim
join:
  %few = icmp eq i64 %nt, 1
  br i1 %few, label %look_for_others, label %meet_others
meet_others:
  call void @barrier(ptr %team, i64 %nt)
  br label %look_for_others
look_for_others:
  %is_alone = load i64, ptr %alone_at
  %is_whole = icmp eq i64 %is_alone, 0
  br i1 %is_whole, label %go_on, label %lacks
go_on:
  ret i64 %following
lacks:
  br i1 %few, label %hand_back, label %leave
hand_back:
  store i64 0, ptr %alone_at
  store i64 $paused, ptr %ended_at
  store i64 %following, ptr %next_at
  ret i64 -1
ask:
  %counts = and i1 %is_back, %leads
  br i1 %counts, label %count, label %gather
count:
  %credit_at = getelementptr i8, ptr %team, i64 $credit_at
  %credit = load i64, ptr %credit_at
  %left = sub i64 %credit, %cost
  store i64 %left, ptr %credit_at
  %broke = icmp slt i64 %left, 0
  br i1 %broke, label %look_up, label %check
look_up:
  store i64 $looking, ptr %credit_at
  %now = call i64 @now(ptr %team)
  %since_at = getelementptr i8, ptr %team, i64 $since_at
  %since = load i64, ptr %since_at
  %begins = icmp eq i64 %since, 0
  br i1 %begins, label %begin, label %compare
begin:
  store i64 %now, ptr %since_at
  br label %check
compare:
  %slice_at = getelementptr i8, ptr %team, i64 $slice_at
  %slice = load i64, ptr %slice_at
  %passed = sub i64 %now, %since
  %over = icmp sge i64 %passed, %slice
  br i1 %over, label %pause_here, label %check
pause_here:
  store i64 $paused, ptr %ended_at
  br label %check
check:
  %may_fault = icmp ne ptr %fault, null
  br i1 %may_fault, label %check_fault, label %gather
check_fault:
  %fault_is = load i64, ptr %fault
  %is_faulty = icmp ne i64 %fault_is, 0
  br i1 %is_faulty, label %give_up, label %gather
give_up:
  store i64 $faulty, ptr %ended_at
  br label %gather
gather:
  %alone = icmp eq i64 %here, 1
  br i1 %alone, label %decide, label %meet
meet:
  call void @barrier(ptr %team, i64 %nt)
  br label %decide
decide:
  %byte = load i8, ptr %flag
  %is_set = icmp ne i8 %byte, 0
  %unless = icmp eq i64 %kind, $unless
  %goes = xor i1 %is_set, %unless
  %next = select i1 %goes, i64 %target, i64 %following
  br i1 %is_back, label %may_end, label %go
may_end:
  %ended = load i64, ptr %ended_at
  %goes_on = icmp eq i64 %ended, 0
  br i1 %goes_on, label %go, label %end
end:
  br i1 %leads, label %note, label %leave
note:
  store i64 %next, ptr %next_at
  %left_alone = icmp ne i64 %here, %nt
  br i1 %left_alone, label %call_others, label %leave
call_others:
  store i64 1, ptr %alone_at
  call void @barrier(ptr %team, i64 %nt)
  br label %leave
leave:
  ret i64 -1
go:
  ret i64 %next
}

$define_look
define internal void @walk(ptr %commands, i64 %first, i64 %count, ptr %team, i64 %tid, i64 %nt) nounwind noinline {
entry:$begin_look
  %some = icmp slt i64 %first, %count
  br i1 %some, label %command, label %end
command:
  %number = phi i64 [ %first, %entry ], [ %following, %after ], [ %next, %jumped ]
  %here = phi i64 [ %nt, %entry ], [ %here, %after ], [ %here_then, %jumped ]
  %alone = icmp eq i64 %here, 1
  %kernel_at = getelementptr [3 x i64], ptr %commands, i64 %number
  %arguments_at = getelementptr i64, ptr %kernel_at, i64 1
  %barrier_at = getelementptr i64, ptr %kernel_at, i64 2
  %kernel = load ptr, ptr %kernel_at
  %arguments = load ptr, ptr %arguments_at
  %barrier = load i64, ptr %barrier_at
  %following = add i64 %number, 1
  %jumps = icmp eq ptr %kernel, null
  br i1 %jumps, label %jump, label %call
call:
  call void %kernel(ptr %arguments, i64 %tid, i64 %here)
  %is_last = icmp eq i64 %following, %count
  %free = icmp eq i64 %barrier, 0
  %goes_on = xor i1 %is_last, true
  %passes = and i1 %free, %goes_on
  %skip = or i1 %alone, %passes
  br i1 %skip, label %after, label %meet
meet:
  call void @barrier(ptr %team, i64 %nt)
  br label %after
after:$look
  br i1 %is_last, label %end, label %command
jump:
  %next = call i64 @jump(ptr %arguments, i64 %following, ptr %team, i64 %tid, i64 %here, i64 %nt)
  %kind = load i64, ptr %arguments
  %parts = icmp eq i64 %kind, $part
  %joins = icmp eq i64 %kind, $join
  %together = select i1 %joins, i64 %nt, i64 %here
  %here_then = select i1 %parts, i64 1, i64 %together
  br label %jumped
jumped:$look
  %is_inside = icmp ult i64 %next, %count
  br i1 %is_inside, label %command, label %leave
leave:
  %is_single = icmp eq i64 %nt, 1
  br i1 %is_single, label %end, label %meet_again
meet_again:
  call void @barrier(ptr %team, i64 %nt)
  br label %end
end:
  ret void
}

define $convention i64 @k(ptr %call) nounwind {
entry:
  $load_call
  %ticket_at = getelementptr i8, ptr %team, i64 $ticket_at
  %commands_at = getelementptr i8, ptr %team, i64 $commands_at
  %count_at = getelementptr i8, ptr %team, i64 $count_at
  %first_at = getelementptr i8, ptr %team, i64 $first_at
  %leads = icmp eq i64 %tid, 0
  br i1 %leads, label %lead, label %attend
lead:
  %alone = icmp eq i64 %nt, 1
  br i1 %alone, label %run, label %announce
announce:
  store ptr %commands, ptr %commands_at
  store i64 %count, ptr %count_at
  store i64 %first, ptr %first_at
  store atomic i64 %ticket, ptr %ticket_at release, align 8
  br label %run
run:
  call void @walk(ptr %commands, i64 %first, i64 %count, ptr %team, i64 0, i64 %nt)
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
  %their_first = load i64, ptr %first_at
  call void @walk(ptr %their_commands, i64 %their_first, i64 %their_count, ptr %team, i64 %tid, i64 %nt)
  br label %attend
leave:
  ret i64 %handled
}
""")

# What the timed form has besides: thread 0 looks at the clock before the first command, and after each when its barrier
# is passed. The others of its team may be inside the plain form meanwhile.
_LOOK = Template("""
define internal void @begin_look(ptr %team, i64 %tid) nounwind noinline {
entry:
  %leads = icmp eq i64 %tid, 0
  br i1 %leads, label %look, label %end
look:
  %now = call i64 @now(ptr %team)
  %times_at = getelementptr i8, ptr %team, i64 $times_at
  %times = load ptr, ptr %times_at
  store i64 %now, ptr %times
  br label %end
end:
  ret void
}

define internal void @look(i64 %number, ptr %team, i64 %tid) nounwind noinline {
entry:
  %leads = icmp eq i64 %tid, 0
  br i1 %leads, label %look, label %end
look:
  %now = call i64 @now(ptr %team)
  %times_at = getelementptr i8, ptr %team, i64 $times_at
  %times = load ptr, ptr %times_at
  %before = load i64, ptr %times
  store i64 %now, ptr %times
  %ticks = sub i64 %now, %before
  %at = getelementptr [2 x i64], ptr %times, i64 %number
  %sum_at = getelementptr i64, ptr %at, i64 1
  %runs_at = getelementptr i64, ptr %at, i64 2
  %sum = load i64, ptr %sum_at
  %more = add i64 %sum, %ticks
  store i64 %more, ptr %sum_at
  %runs = load i64, ptr %runs_at
  %one_more = add i64 %runs, 1
  store i64 %one_more, ptr %runs_at
  br label %end
end:
  ret void
}
""")
_CALL_BEGIN_LOOK = "\n  call void @begin_look(ptr %team, i64 %tid)"
_CALL_LOOK = "\n  call void @look(i64 %number, ptr %team, i64 %tid)"

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

Convention = Literal["", "win64"]
"""How Python calls, where that is not how kernels call each other: on Windows, they keep to System V."""

CONVENTIONS: Mapping[Convention, str] = {"": "ccc", "win64": "win64cc"}
"""The same in LLVM's words."""


@record(frozen=True)
class WalkSpec(KernelSpec):
    """``i64 k(ptr call)``: the words of ``call`` are team, commands, count, tid, nt, ticket, patience and first.

    (For seven arguments Python takes five times as long as for one, and small models feel it.)

    Thread 0 announces run ``ticket`` to its team, takes its part in it, from command ``first`` on, and returns when all
    is done, or a loop has taken too long. The others enter with the last ticket that they know, take part in every
    later run, and return the last ticket once ``patience`` turns of waiting have brought no other.
    """

    convention: Convention = ""
    timed: bool = False
    """Whether thread 0 looks at the clock after every command: `Team.run` says where it writes what it sees."""

    @property
    def parts(self) -> tuple[str, ...]:
        return ("walk", "timed" * self.timed)

    @property
    def variant(self) -> str:
        return self.convention

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        conventions = get_args(Convention) if target.triple.startswith("x86_64") else ("",)
        yield from (cls(target.name, *form) for form in product(conventions, (False, True)))

    def emit(self, target: Target) -> str:
        declare_pause, pause = _PAUSE[target.triple.partition("-")[0]]
        return _TEXT.substitute(
            declare_pause=declare_pause,
            pause=pause,
            convention=CONVENTIONS[self.convention],
            pauses=PAUSES,
            looking=LOOKING,
            paused=team.PAUSED,
            faulty=team.FAULTY,
            ask_clock=_ASK_CLOCK[self.convention].substitute(which_at=team.WHICH_CLOCK),
            load_call=load_words("call", team.CALL),
            load_jump=load_words("jump", team.JUMP),
            part=team.Jump.PART.value,
            join=team.Jump.JOIN.value,
            by_flag=team.Jump.IF.value,
            unless=team.Jump.UNLESS.value,
            back=team.Jump.BACK.value,
            ticket_at=team.TICKET,
            commands_at=team.COMMANDS,
            count_at=team.COUNT,
            first_at=team.FIRST,
            arrived_at=team.ARRIVED,
            generation_at=team.GENERATION,
            waited_at=team.WAITED,
            yield_at=team.YIELD,
            clock_at=team.CLOCK,
            slice_at=team.SLICE,
            alone_at=team.ALONE,
            ended_at=team.ENDED,
            credit_at=team.CREDIT,
            since_at=team.SINCE,
            next_at=team.NEXT,
            define_look=_LOOK.substitute(times_at=team.TIMES) if self.timed else "",
            begin_look=_CALL_BEGIN_LOOK if self.timed else "",
            look=_CALL_LOOK if self.timed else "",
        )


def load_words(block: str, words: Mapping[str, str]) -> str:
    """The text that loads the words of a block by their names."""
    lines = []
    for number, (name, type) in enumerate(words.items()):
        lines.append(f"%{name}_word = getelementptr i64, ptr %{block}, i64 {number}")
        lines.append(f"%{name} = load {type}, ptr %{name}_word")
    return "\n  ".join(lines)
