package fiojob

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// CommandPriority gives single operations a priority of their own, for reads and writes. The zero value gives none.
type CommandPriority struct {
	Percent [2]int             // of operations
	Class   [2]int             // of the kernel: 1 realtime, which 0 means too; 2 best effort, 3 idle
	Level   [2]int             // 0, the highest, to 7
	Split   [2][]PrioritySplit // by block size, in place of Percent
}

// PrioritySplit is one entry of cmdprio_bssplit: Percent of the operations of this size have the priority.
type PrioritySplit struct {
	Bytes        int64
	Percent      int
	Class, Level int // 0 best effort where there is a level; -1: those of cmdprio_class and cmdprio
}

// Active reports whether any operation has a priority of its own.
func (c *CommandPriority) Active() bool {
	return c.Percent != [2]int{} || len(c.Split[Read])+len(c.Split[Write]) > 0
}

var commandPriority = []spec{
	{name: "cmdprio_percentage", does: "share of operations that have a priority of their own, for reads and writes",
		apply: pairOf(func(j *Job) *[2]int { return &j.CommandPriority.Percent }, 0, 100)},
	{name: "cmdprio_class", does: "class of that priority: 1 realtime, the default, 2 best effort, 3 idle",
		apply: pairOf(func(j *Job) *[2]int { return &j.CommandPriority.Class }, 1, 3)},
	{name: "cmdprio", does: "that priority within its class, 0 is the highest",
		apply: pairOf(func(j *Job) *[2]int { return &j.CommandPriority.Level }, 0, 7)},
	{name: "cmdprio_bssplit", does: "that share by block size, as size/percent or size/percent/class/priority with : between them",
		apply: setPrioritySplit},
}

// pairOf reads "read[,write]"; one value holds for both.
func pairOf(field func(*Job) *[2]int, low, high int64) apply {
	return func(j *Job, a *arg) {
		if strings.Count(a.seen, ",") > 1 {
			a.bad("want at most two values, for read and write")
			return
		}
		a.triple(func(d Direction, text string) (string, bool) {
			if d == Trim {
				return "", true
			}
			v, ok := a.number(text, low, high)
			if ok {
				field(j)[d] = int(v)
			}
			return strconv.FormatInt(v, 10), ok
		})
	}
}

// setPrioritySplit reads "64k/40/1/0:4k/20,1024k/60": two or four numbers an entry.
func setPrioritySplit(j *Job, a *arg) {
	if strings.Count(a.seen, ",") > 1 {
		a.bad("want at most two lists, for read and write")
		return
	}
	a.triple(func(d Direction, text string) (string, bool) {
		if d == Trim {
			return "", true
		}
		list, exact, ok := a.prioritySplits(strings.TrimSpace(text))
		if ok {
			j.CommandPriority.Split[d] = list
		}
		return exact, ok
	})
}

func (a *arg) prioritySplits(text string) (list []PrioritySplit, exact string, ok bool) {
	var printed []string
	sums := map[int64]int{}
	for entry := range strings.SplitSeq(text, ":") {
		parts := strings.Split(entry, "/")
		s := PrioritySplit{Class: -1, Level: -1}
		size, err := a.bytesNumber(parts[0])
		bad := err != nil || size.isPct || size.value < 1 || size.value > blockBytesMax || len(parts) != 2 && len(parts) != 4
		if !bad {
			s.Bytes = size.value
			fields := []struct {
				to  *int
				max int
			}{{&s.Percent, 100}, {&s.Class, 3}, {&s.Level, 7}}
			for i, part := range parts[1:] {
				n, err := strconv.Atoi(strings.TrimSpace(part))
				bad = bad || err != nil || n < 0 || n > fields[i].max
				*fields[i].to = n
			}
		}
		switch {
		case bad:
			a.bad(fmt.Sprintf("want size/percent or size/percent/class/priority, and not %q", entry))
			return nil, "", false
		case len(list) >= splitsMax:
			a.bad(fmt.Sprintf("more than %d entries", splitsMax))
			return nil, "", false
		}
		if sums[s.Bytes] += s.Percent; sums[s.Bytes] > 100 {
			a.bad(fmt.Sprintf("the percentages of blocks of %s add up to %d", FormatBytes(s.Bytes), sums[s.Bytes]))
			return nil, "", false
		}
		a.explain(size)
		text := fmt.Sprintf("%s/%d", FormatBytes(s.Bytes), s.Percent)
		if len(parts) == 4 {
			text += fmt.Sprintf("/%d/%d", s.Class, s.Level)
		}
		printed, list = append(printed, text), append(list, s)
	}
	return list, strings.Join(printed, ":"), true
}

// checkPriorities finds what only several options of CommandPriority show together.
func checkPriorities(j *Job, at func(string) (Option, bool), blame func(diag.Severity, Option, string, string, string)) {
	c := &j.CommandPriority
	if c.Percent != [2]int{} && len(c.Split[Read])+len(c.Split[Write]) > 0 {
		o, _ := at("cmdprio_bssplit")
		blame(diag.SeverityError, o, "two-priorities", "cmdprio_bssplit and cmdprio_percentage say the same thing twice",
			"take one of them; fio refuses both together too")
		return
	}
	for _, key := range []string{"cmdprio_class", "cmdprio"} {
		if o, found := at(key); found && !c.Active() {
			blame(diag.SeverityWarning, o, "priority-without-share", key+" has no effect without cmdprio_percentage or cmdprio_bssplit",
				"write the share of operations beside it, such as cmdprio_percentage=10")
			return
		}
	}
}
